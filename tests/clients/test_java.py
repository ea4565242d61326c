# SPDX-License-Identifier: Apache-2.0
"""The Java client and Kafka's own command-line tools."""
import itertools
import os
import subprocess

import pytest

import kafka
import kraft

CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd']


@pytest.fixture(scope='module')
def check():
    """Runs ClientCheck, compiled once."""
    classes = kafka.compile_source(os.path.join(kraft.TOP, 'tests', 'clients', 'java', 'ClientCheck.java'), os.path.join(kraft.BUILD, 'java-classes'))

    def run(*args):
        done = subprocess.run(['java', '-Xmx1g', '-XX:+UseSerialGC', '-cp', f'{classes}:{kafka.classpath()}', 'ClientCheck', *map(str, args)],
                              capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, f'{args}: {done.stdout[-1000:]}{done.stderr[-2000:]}'
    return run


@pytest.mark.parametrize('codec,acks', list(itertools.product(CODECS, ['0', '1', 'all'])))
def test_20000_records_come_back_equal(shared_node, check, codec, acks):
    check(shared_node.address, f'java-{codec}-{acks}', codec, acks, 20000)


@pytest.mark.parametrize('codec', CODECS)
def test_a_million_lines_of_text_come_back_equal(shared_node, check, codec):
    check(shared_node.address, f'java-million-{codec}', codec, 'all', 1000000, os.path.join(kraft.TOP, 'LICENSE'))


