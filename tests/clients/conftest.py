# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the client tests: one node and the three stock clients, for all modules."""
import pytest

import kraft
import peers
import records


@pytest.fixture(scope='package')
def node():
    """One combined node for the tests of peers."""
    with kraft.Cluster() as c:
        yield c.single()


@pytest.fixture(scope='package')
def confluent(node):
    yield peers.Confluent(node)


@pytest.fixture(scope='package')
def kcat(node):
    yield peers.Kcat(node)


@pytest.fixture(scope='package')
def java(node):
    peer = peers.Java(node)
    yield peer
    peer.close()


@pytest.fixture(scope='session')
def million_lines():
    return records.million_lines()
