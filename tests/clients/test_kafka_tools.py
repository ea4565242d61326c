# SPDX-License-Identifier: Apache-2.0
"""Kafka's own command-line tools against a Kraft node, and on its files: one test a tool or verb."""
import json
import os
import re
import shutil
import subprocess

import pytest

import kafka
import kraft
import quorum


@pytest.fixture(scope='module')
def node():
    """A combined node with the topic 'data': two partitions, 100 keyed records in partition 0."""
    with kraft.Cluster() as c:
        n = c.single(extra={'log.index.interval.bytes': '100', 'metadata.log.max.record.bytes.between.snapshots': '3000'})
        kraft.admin(n.address, 'topics', 'create', '--topic', 'data', '--partitions', '2')
        lines = ''.join(f'key-{i}\tvalue-{i}\n' for i in range(100))
        subprocess.run(['kcat', '-b', n.address, '-P', '-t', 'data', '-p', '0', '-K', '\t', '-X', 'batch.num.messages=10', '-X', 'enable.idempotence=true'],
                       input=lines, text=True, check=True, timeout=30)
        yield n


def broker(node):
    return ['--bootstrap-server', node.address]


def controller(node):
    return ['--bootstrap-controller', f'{kraft.HOST}:{node.controller_port}']


def cluster_id(node):
    with open(os.path.join(node.data, 'meta.properties')) as f:
        return dict(line.strip().split('=', 1) for line in f if '=' in line)['cluster.id']


def fields(out):
    """'Name:   value' lines as a dict."""
    return dict(re.split(r':\s+', line, maxsplit=1) for line in out.splitlines() if re.match(r'\w+:\s', line))


def test_topics_are_created_listed_described_grown_and_deleted(node):
    kafka.tool('TopicCommand', *broker(node), '--create', '--topic', 'tool', '--partitions', '3', '--replication-factor', '1', '--config', 'retention.ms=1000')
    assert 'tool' in kafka.tool('TopicCommand', *broker(node), '--list').split()
    described = kafka.tool('TopicCommand', *broker(node), '--describe', '--topic', 'tool')
    assert 'PartitionCount: 3\tReplicationFactor: 1\tConfigs: retention.ms=1000' in described
    assert described.count('Leader: 1\tReplicas: 1\tIsr: 1') == 3
    kafka.tool('TopicCommand', *broker(node), '--alter', '--topic', 'tool', '--partitions', '5')
    assert 'PartitionCount: 5' in kafka.tool('TopicCommand', *broker(node), '--describe', '--topic', 'tool')
    kafka.tool('TopicCommand', *broker(node), '--delete', '--topic', 'tool')
    assert 'tool' not in kafka.tool('TopicCommand', *broker(node), '--list').split()


@pytest.mark.parametrize('args,says', [
    (['--create', '--topic', 'data'], 'already exists'),
    (['--create', '--topic', 'bad/name'], "name 'bad/name'"),
    (['--create', '--topic', 'big', '--replication-factor', '3'], 'eplication factor'),
    (['--create', '--topic', 'cfg', '--config', 'retention.ms=soon'], 'retention.ms'),
    (['--describe', '--topic', 'nowhere'], 'does not exist')])
def test_topics_refuses_with_a_sentence(node, args, says):
    done = kafka.java(kafka.TOOLS + 'TopicCommand', *broker(node), *args, check=False)
    assert done.returncode == 1
    assert says in done.stdout + done.stderr


def test_configs_of_a_topic_are_altered_described_and_reset(node):
    at = [*broker(node), '--entity-type', 'topics', '--entity-name', 'data']
    kafka.tool('ConfigCommand', *at, '--alter', '--add-config', 'max.message.bytes=54321,cleanup.policy=[delete,compact]')
    out = kafka.tool('ConfigCommand', *at, '--describe')
    assert 'max.message.bytes=54321 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:max.message.bytes=54321, DEFAULT_CONFIG:message.max.bytes=1048588}' in out
    assert 'cleanup.policy=delete,compact ' in out
    kafka.tool('ConfigCommand', *at, '--alter', '--delete-config', 'max.message.bytes,cleanup.policy')
    assert kafka.tool('ConfigCommand', *at, '--describe').strip() == 'Dynamic configs for topic data are:'
    done = kafka.java(kafka.TOOLS + 'ConfigCommand', *at, '--alter', '--add-config', 'min.insync.replicas=0', check=False)
    assert done.returncode == 1 and 'min.insync.replicas' in done.stdout + done.stderr


def test_configs_of_brokers_have_defaults_and_their_own(node):
    default = ['--entity-type', 'brokers', '--entity-default']
    one = ['--entity-type', 'brokers', '--entity-name', '1']
    kafka.tool('ConfigCommand', *broker(node), *default, '--alter', '--add-config', 'log.retention.ms=1234567')
    kafka.tool('ConfigCommand', *broker(node), *one, '--alter', '--add-config', 'log.retention.ms=7654321')
    assert 'log.retention.ms=1234567 ' in kafka.tool('ConfigCommand', *broker(node), *default, '--describe')
    out = kafka.tool('ConfigCommand', *broker(node), *one, '--describe')
    assert ('log.retention.ms=7654321 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=7654321, '
            'DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=1234567, DEFAULT_CONFIG:log.retention.hours=168}') in out
    assert 'log.retention.ms=7654321' in kafka.tool('ConfigCommand', *controller(node), *one, '--describe')
    everything = kafka.tool('ConfigCommand', *broker(node), *one, '--describe', '--all')
    assert 'node.id=1 sensitive=false synonyms={STATIC_BROKER_CONFIG:node.id=1' in everything
    for at in (default, one):
        kafka.tool('ConfigCommand', *broker(node), *at, '--alter', '--delete-config', 'log.retention.ms')


@pytest.mark.parametrize('by', [broker, controller])
def test_metadata_quorum_tells_status_and_replication(node, by):
    status = fields(kafka.tool('MetadataQuorumCommand', *by(node), 'describe', '--status'))
    assert status['ClusterId'] == cluster_id(node) and status['LeaderId'] == '1'
    assert int(status['LeaderEpoch']) > 0 and int(status['HighWatermark']) > 0 and status['MaxFollowerLag'] == '0'
    voters = json.loads(status['CurrentVoters'])
    assert [(v['id'], v['endpoints']) for v in voters] == [(1, [f'CONTROLLER://{kraft.HOST}:{node.controller_port}'])]
    assert json.loads(status['CurrentObservers']) == []
    head, row = [line.split() for line in kafka.tool('MetadataQuorumCommand', *by(node), 'describe', '--replication').strip().splitlines()]
    row = dict(zip(head, row))
    assert row['NodeId'] == '1' and row['Status'] == 'Leader' and row['Lag'] == '0' and row['DirectoryId'] == voters[0]['directoryId']
    assert int(row['LastCaughtUpTimestamp']) > 1700000000000


@pytest.mark.parametrize('by', [broker, controller])
def test_features_are_described(node, by):
    out = kafka.tool('FeatureCommand', *by(node), 'describe')
    finalized = dict(re.findall(r'Feature: (\S+).*FinalizedVersionLevel: (\S+)', out))
    assert finalized['metadata.version'].startswith('4.') and finalized['kraft.version'] == '1' and finalized['group.version'] in '01'


def test_features_are_upgraded_and_refused(node):
    assert 'streams.version was upgraded to 1' in kafka.tool('FeatureCommand', *broker(node), 'upgrade', '--feature', 'streams.version=1')
    done = kafka.java(kafka.TOOLS + 'FeatureCommand', *broker(node), 'upgrade', '--feature', 'streams.version=99', check=False)
    assert done.returncode == 1 and '99' in done.stdout + done.stderr


def test_log_dirs_tells_the_sizes(node):
    out = kafka.tool('LogDirsCommand', *broker(node), '--describe', '--topic-list', 'data')
    found = json.loads(out.splitlines()[-1])['brokers']
    assert [b['broker'] for b in found] == [1] and found[0]['logDirs'][0]['logDir'] == node.data and found[0]['logDirs'][0]['error'] is None
    sizes = {p['partition']: p['size'] for p in found[0]['logDirs'][0]['partitions']}
    assert sizes == {'data-0': os.path.getsize(os.path.join(node.data, 'data-0', '00000000000000000000.log')), 'data-1': 0}


def test_get_offsets_of_each_kind(node):
    def offsets(time):
        return kafka.tool('GetOffsetShell', *broker(node), '--topic', 'data', '--time', time).split()
    assert offsets('latest') == ['data:0:100', 'data:1:0']
    assert offsets('earliest') == ['data:0:0', 'data:1:0']
    assert offsets('0') == ['data:0:0']  # an empty partition has none
    assert re.fullmatch(r'data:0:\d\d?', offsets('max-timestamp')[0])


def test_delete_records_moves_the_start(node, tmp_path):
    kraft.admin(node.address, 'topics', 'create', '--topic', 'trim', '--partitions', '1')
    kafka.tool('ConsoleProducer', *broker(node), '--topic', 'trim', input='a\nb\nc\n')
    wanted = tmp_path / 'offsets.json'
    wanted.write_text('{"version": 1, "partitions": [{"topic": "trim", "partition": 0, "offset": 2}]}')
    assert 'partition: trim-0\tlow_watermark: 2' in kafka.tool('DeleteRecordsCommand', *broker(node), '--offset-json-file', wanted)
    wanted.write_text('{"version": 1, "partitions": [{"topic": "trim", "partition": 0, "offset": 9}]}')
    assert 'OffsetOutOfRangeException' in kafka.tool('DeleteRecordsCommand', *broker(node), '--offset-json-file', wanted)


@pytest.mark.parametrize('by,port,kind', [(broker, 'port', 'broker'), (controller, 'controller_port', 'controller')])
def test_cluster_tool_tells_id_and_endpoints(node, by, port, kind):
    assert kafka.tool('ClusterTool', 'cluster-id', *by(node)).strip() == f'Cluster ID: {cluster_id(node)}'
    row = kafka.tool('ClusterTool', 'list-endpoints', *by(node)).strip().splitlines()[1].split()
    assert row[:4] == ['1', kraft.HOST, str(getattr(node, port)), 'null'] and row[-1] == kind


def test_console_producer_and_consumer_with_keys_and_headers(node):
    kraft.admin(node.address, 'topics', 'create', '--topic', 'console', '--partitions', '1')
    kafka.tool('ConsoleProducer', *broker(node), '--topic', 'console', '--compression-codec', 'zstd',
               *[a for p in ('parse.key=true', 'parse.headers=true', 'null.marker=NULL', 'key.separator=|', 'headers.delimiter=|') for a in ('--reader-property', p)],
               input='h:1|k|one\nh:2,i:3|NULL|two\nh:4|k|NULL\n')
    out = kafka.tool('consumer.ConsoleConsumer', *broker(node), '--topic', 'console', '--partition', '0', '--offset', 'earliest', '--max-messages', '3', '--timeout-ms', '20000',
                     *[a for p in ('key', 'headers', 'offset', 'partition') for a in ('--formatter-property', f'print.{p}=true')])
    assert out.splitlines() == ['Partition:0\tOffset:0\th:1\tk\tone', 'Partition:0\tOffset:1\th:2,i:3\tnull\ttwo', 'Partition:0\tOffset:2\th:4\tk\tnull']


def test_producer_and_consumer_performance_tools(node):
    kraft.admin(node.address, 'topics', 'create', '--topic', 'fast', '--partitions', '1')
    out = kafka.tool('ProducerPerformance', '--topic', 'fast', '--num-records', '20000', '--record-size', '100', '--throughput', '-1',
                     '--command-property', f'bootstrap.servers={node.address}', 'acks=all', 'compression.type=lz4')
    assert '20000 records sent' in out
    assert kafka.tool('GetOffsetShell', *broker(node), '--topic', 'fast').split() == ['fast:0:20000']


def test_api_versions_are_shown(node):
    out = kafka.tool('BrokerApiVersionsCommand', *broker(node))
    assert out.startswith(f'{kraft.HOST}:{node.port} (id: 1 rack: null')
    usable = dict(re.findall(r'(\w+)\(\d+\): .*\[usable: (\d+)\]', out))
    assert usable['Produce'] == '13' and usable['Fetch'] == '18' and usable['Metadata'] == '13' and usable['ApiVersions'] == '5'
    assert 'UNKNOWN' not in out


def test_preferred_leaders_are_elected(node):
    assert 'Error' not in kafka.tool('LeaderElectionCommand', *broker(node), '--election-type', 'preferred', '--all-topic-partitions')
    out = kafka.tool('LeaderElectionCommand', *broker(node), '--election-type', 'preferred', '--topic', 'data', '--partition', '0')
    assert 'Valid replica already elected for partitions data-0' in out


def test_producers_of_a_partition_are_shown(node):
    rows = [line.split() for line in kafka.tool('TransactionsCommand', *broker(node), 'describe-producers', '--topic', 'data', '--partition', '0').strip().splitlines()]
    assert rows[0][0] == 'ProducerId' and len(rows) == 2
    assert dict(zip(rows[0], rows[1]))['LastSequence'] == '99'


@pytest.fixture(scope='module')
def files(node, tmp_path_factory):
    """A copy of the node's directory after a clean stop; the node runs again."""
    copy = tmp_path_factory.mktemp('files') / 'node'
    node.stop()
    shutil.copytree(node.data, copy)
    node.start()
    return str(copy)


def named(folder, *ends):
    return ','.join(sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(ends)))


def test_dump_log_reads_the_metadata_log_and_checkpoints(files):
    out = kafka.tool('DumpLogSegments', '--cluster-metadata-decoder', '--files', named(os.path.join(files, '__cluster_metadata-0'), '.log', '.checkpoint'))
    assert 'isvalid: false' not in out and 'Exception' not in out and 'Error' not in out
    for what in ('SnapshotHeader', 'SnapshotFooter', 'KRaftVersion', 'KRaftVoters', 'LeaderChange'):
        assert what in out
    for record in ('FEATURE_LEVEL_RECORD', 'REGISTER_CONTROLLER_RECORD', 'REGISTER_BROKER_RECORD', 'TOPIC_RECORD', 'PARTITION_RECORD', 'BROKER_REGISTRATION_CHANGE_RECORD'):
        assert f'"type":"{record}"' in out


def test_dump_log_reads_a_snapshot_of_the_image(files):
    folder = os.path.join(files, '__cluster_metadata-0')
    newest = sorted(f for f in os.listdir(folder) if f.endswith('.checkpoint'))[-1]
    assert int(newest.split('-')[0]) > 0
    out = kafka.tool('DumpLogSegments', '--cluster-metadata-decoder', '--files', os.path.join(folder, newest))
    assert out.count('SnapshotHeader') == 1 and out.count('SnapshotFooter') == 1 and 'isvalid: false' not in out
    assert '"type":"REGISTER_BROKER_RECORD"' in out and '"name":"data"' in out and out.count('"type":"PARTITION_RECORD"') >= 2


def test_dump_log_reads_a_data_log(files):
    out = kafka.tool('DumpLogSegments', '--print-data-log', '--files', named(os.path.join(files, 'data-0'), '.log'))
    assert out.count('isvalid: true') >= 10 and 'isvalid: false' not in out
    assert re.findall(r'offset: (\d+) .* key: (\S+) payload: (\S+)', out) == [(str(i), f'key-{i}', f'value-{i}') for i in range(100)]


def test_dump_log_finds_the_indexes_sound(files):
    folder = os.path.join(files, 'data-0')
    out = kafka.tool('DumpLogSegments', '--index-sanity-check', '--files', named(folder, '.index', '.timeindex'))
    assert '.index passed sanity check' in out and '.timeindex passed sanity check' in out
    out = kafka.tool('DumpLogSegments', '--files', named(folder, '.index', '.timeindex'))
    assert len(re.findall(r'^offset: \d+ position: \d+', out, re.M)) >= 5 and re.search(r'^timestamp: \d+ offset: \d+', out, re.M)
    assert 'mismatch' not in out.lower() and 'not found' not in out.lower() and 'Found' not in out


def test_dump_log_reads_the_producers_snapshot(files):
    out = kafka.tool('DumpLogSegments', '--files', named(os.path.join(files, 'data-0'), '.snapshot'))
    assert re.search(r'producerId: \d+ producerEpoch: 0 coordinatorEpoch: -1 .*lastSequence: 99 lastOffset: 99', out)


def test_the_storage_tool_knows_a_formatted_directory(files, tmp_path):
    config = tmp_path / 'server.properties'
    config.write_text(f'process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n'
                      f'controller.quorum.bootstrap.servers=localhost:9093\nlog.dirs={files}\n')
    out = kafka.java('kafka.tools.StorageTool', 'info', '-c', config).stdout
    assert f'Found log directory:\n  {files}' in out and 'Found metadata: {cluster.id=' in out


@pytest.fixture(scope='module')
def three():
    """Three controllers and a broker, all separate."""
    with kraft.Cluster() as c:
        controllers, brokers = quorum.build(c)
        for n in controllers:
            n.start(wait=False)
        for n in brokers:
            n.start()
        yield controllers, brokers[0]


def replication(node):
    """{node id: row} of describe --replication."""
    head, *rows = [re.split(r'\s*\t\s*', line.strip()) for line in kafka.tool('MetadataQuorumCommand', *broker(node), 'describe', '--replication').strip().splitlines()]
    return {int(r[0]): dict(zip(head, r)) for r in rows}


def test_metadata_quorum_shows_followers_and_observers(three):
    _, b = three
    rows = replication(b)
    assert sorted(rows) == [1, 2, 3, 11]
    assert sorted(r['Status'] for r in rows.values()) == ['Follower', 'Follower', 'Leader', 'Observer'] and rows[11]['Status'] == 'Observer'
    status = fields(kafka.tool('MetadataQuorumCommand', *broker(b), 'describe', '--status'))
    assert sorted(v['id'] for v in json.loads(status['CurrentVoters'])) == [1, 2, 3]
    assert [v['id'] for v in json.loads(status['CurrentObservers'])] == [11]


def test_metadata_quorum_removes_a_controller_and_adds_it_again(three):
    controllers, b = three
    rows = replication(b)
    out = next(c for c in controllers if rows[c.id]['Status'] != 'Leader')
    said = kafka.tool('MetadataQuorumCommand', *broker(b), 'remove-controller', '--controller-id', out.id, '--controller-directory-id', rows[out.id]['DirectoryId'])
    assert f'Removed KRaft controller {out.id} with directory id {rows[out.id]["DirectoryId"]}' in said
    assert replication(b).get(out.id, {}).get('Status') in (None, 'Observer')
    kafka.tool('MetadataQuorumCommand', '--command-config', out.config, *broker(b), 'add-controller')
    assert replication(b)[out.id]['Status'] == 'Follower'
    kraft.admin(b.address, 'topics', 'create', '--topic', 'after-the-changes')
