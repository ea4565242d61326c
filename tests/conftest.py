# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the cluster and client tests."""
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib'))

import kraft  # noqa: E402


@pytest.fixture
def cluster():
    """An empty cluster; its nodes are killed and its directory removed at the end."""
    with kraft.Cluster() as c:
        yield c


@pytest.fixture(scope='module')
def shared_node():
    """One combined node for all tests of a module."""
    with kraft.Cluster() as c:
        yield c.single()
