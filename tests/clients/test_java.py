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


def test_kafka_topics_lists_creates_and_describes(shared_node):
    at = ['--bootstrap-server', shared_node.address]
    kafka.java(kafka.TOOLS + 'TopicCommand', *at, '--create', '--topic', 'tool', '--partitions', '3', '--replication-factor', '1', '--config', 'retention.ms=1000')
    assert 'tool' in kafka.java(kafka.TOOLS + 'TopicCommand', *at, '--list').stdout.split()
    described = kafka.java(kafka.TOOLS + 'TopicCommand', *at, '--describe', '--topic', 'tool').stdout
    assert 'PartitionCount: 3' in described and 'retention.ms=1000' in described


def test_kafka_configs_sees_what_it_altered(shared_node):
    at = ['--bootstrap-server', shared_node.address, '--entity-type', 'topics', '--entity-name', 'tool']
    kafka.java('kafka.admin.ConfigCommand', *at, '--alter', '--add-config', 'max.message.bytes=54321')
    kraft.wait_for('the config', lambda: 'max.message.bytes=54321' in kafka.java('kafka.admin.ConfigCommand', *at, '--describe').stdout, step=0.5)


def test_kafka_metadata_quorum_describes_the_quorum(shared_node):
    out = kafka.java(kafka.TOOLS + 'MetadataQuorumCommand', '--bootstrap-server', shared_node.address, 'describe', '--status').stdout
    assert 'LeaderId:              1' in out and shared_node_cluster_id(shared_node) in out
    out = kafka.java(kafka.TOOLS + 'MetadataQuorumCommand', '--bootstrap-controller', f'{kraft.HOST}:{shared_node.controller_port}', 'describe', '--replication').stdout
    assert 'Leader' in out


def shared_node_cluster_id(node):
    with open(os.path.join(node.data, 'meta.properties')) as f:
        return dict(line.strip().split('=', 1) for line in f if '=' in line)['cluster.id']


def test_kafka_dump_log_reads_the_metadata_log_and_a_data_log(shared_node):
    folder = os.path.join(shared_node.data, '__cluster_metadata-0')
    logs = sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(('.log', '.checkpoint')))
    out = kafka.java(kafka.TOOLS + 'DumpLogSegments', '--cluster-metadata-decoder', '--files', ','.join(logs)).stdout
    assert 'REGISTER_BROKER_RECORD' in out and 'LeaderChange' in out.replace('_', '').replace('LEADERCHANGE', 'LeaderChange')
    data = os.path.join(shared_node.data, 'java-none-1-0', '00000000000000000000.log')
    out = kafka.java(kafka.TOOLS + 'DumpLogSegments', '--files', data).stdout
    assert 'isvalid: true' in out and 'isvalid: false' not in out


def test_kafka_console_tools_and_offsets(shared_node):
    out = kafka.java(kafka.TOOLS + 'GetOffsetShell', '--bootstrap-server', shared_node.address, '--topic', 'java-none-all').stdout
    assert 'java-none-all:0:20000' in out
    out = kafka.java(kafka.TOOLS + 'ProducerPerformance', '--topic', 'java-none-all', '--num-records', '1000', '--record-size', '100', '--throughput', '-1',
                     '--producer-props', f'bootstrap.servers={shared_node.address}').stdout
    assert '1000 records sent' in out
