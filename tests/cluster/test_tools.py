# SPDX-License-Identifier: Apache-2.0
"""kraft-admin and kraft-dump, as people and scripts use them, against one real node."""
import glob
import json
import os
import subprocess

import pytest

import kraft

VECTORS = os.path.join(kraft.TOP, 'tests', 'vectors')


def admin(node, *args, status=0, **options):
    done = kraft.admin(node.address, *args, check=False, **options)
    assert done.returncode == status, f'{args}: {done.returncode}: {done.stdout}{done.stderr}'
    return done


def admin_json(node, *args):
    return json.loads(admin(node, *args, '--output', 'json').stdout)


def dump(*args, status=0, **options):
    done = subprocess.run([kraft.tool('kraft-dump'), *args], capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == status, f'{args}: {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}'
    return done


# ---- topics, configs, cluster, quorum


def test_a_topic_is_created_described_changed_and_deleted(shared_node):
    n = shared_node
    made = admin_json(n, 'topics', 'create', '--topic', 'life', '--partitions', '2', '--config', 'retention.ms=3600000')
    assert (made[0]['topic'], made[0]['partitions']) == ('life', 2)
    seen = admin_json(n, 'topics', 'describe', '--topic', 'life')[0]
    assert seen['topic_id'] == made[0]['topic_id']
    assert seen['configs'] == {'retention.ms': '3600000'}
    assert [p['leader'] for p in seen['partitions']] == [n.id, n.id]
    admin(n, 'topics', 'alter', '--topic', 'life', '--partitions', '3', '--delete-config', 'retention.ms')
    seen = admin_json(n, 'topics', 'describe', '--topic', 'life')[0]
    assert (len(seen['partitions']), seen['configs']) == (3, {})
    admin(n, 'topics', 'delete', '--topic', 'life')
    assert 'life' not in [t['topic'] for t in admin_json(n, 'topics', 'list')]


def test_refusals_say_why_and_exit_1(shared_node):
    n = shared_node
    admin(n, 'topics', 'create', '--topic', 'twice')
    assert 'TOPIC_ALREADY_EXISTS' in admin(n, 'topics', 'create', '--topic', 'twice', status=1).stderr
    admin(n, 'topics', 'create', '--topic', 'twice', '--if-not-exists')
    assert 'UNKNOWN_TOPIC_OR_PARTITION' in admin(n, 'topics', 'describe', '--topic', 'none', status=1).stderr
    assert 'INVALID_REPLICATION_FACTOR' in admin(n, 'topics', 'create', '--topic', 'wide', '--replication-factor', '9', status=1).stderr
    assert 'INVALID_CONFIG' in admin(n, 'configs', 'alter', '--topic', 'twice', '--set', 'no.such.key=1', status=1).stderr


def test_a_bad_command_line_exits_2_and_sends_nothing(shared_node):
    for args in (['topics', 'create'], ['topics', 'create', '--colour', 'red'], ['topics', 'create', '--topic', 't', '--partitions', 'many'],
                 ['paint'], ['topics'], ['topics', 'describe', 't'], ['topics', 'delete', 't'], ['consume', '--topic', 't', '--offset', '5'], ['topics', 'list', '--output', 'xml']):
        admin(shared_node, *args, status=2)


def test_a_group_of_commands_tells_what_is_in_it(shared_node):
    for word in ('topics', 'configs', 'features', 'quorum'):
        assert f'{word} describe' in admin(shared_node, word, '--help').stdout


def test_a_server_that_is_not_there_exits_3():
    port = kraft.free_ports(1)[0]
    done = kraft.admin(f'{kraft.HOST}:{port}', 'topics', 'list', check=False)
    assert done.returncode == 3
    assert 'nobody listens' in done.stderr


def test_a_dry_run_changes_nothing(shared_node):
    admin(shared_node, 'topics', 'create', '--topic', 'dry', '--dry-run')
    assert 'dry' not in [t['topic'] for t in admin_json(shared_node, 'topics', 'list')]


def test_configs_tell_where_their_values_come_from(shared_node):
    n = shared_node
    admin(n, 'topics', 'create', '--topic', 'sources', '--config', 'max.message.bytes=5000')
    own = admin_json(n, 'configs', 'describe', '--topic', 'sources')
    assert [(c['key'], c['value'], c['source']) for c in own] == [('max.message.bytes', '5000', 'topic')]
    every = {c['key']: c['source'] for c in admin_json(n, 'configs', 'describe', '--topic', 'sources', '--all')}
    assert every['retention.ms'] == 'default'
    broker = {c['key']: c for c in admin_json(n, 'configs', 'describe', '--broker', str(n.id), '--all')}
    assert broker['log.dirs']['source'] == 'server.properties'


def test_cluster_and_quorum_name_the_node(shared_node):
    n = shared_node
    cluster = admin_json(n, 'cluster')
    assert cluster['controller'] == n.id
    assert [(b['node'], b['port'], b['fenced']) for b in cluster['nodes']] == [(n.id, n.port, False)]
    quorum = admin_json(n, 'quorum', 'describe')
    assert quorum['leader'] == n.id
    assert [(r['node'], r['role']) for r in quorum['replicas']] == [(n.id, 'leader')]


# ---- produce and consume


@pytest.mark.parametrize('codec', ['none', 'gzip', 'snappy', 'lz4', 'zstd'])
def test_lines_come_back_in_every_codec(shared_node, codec):
    n, topic = shared_node, f'codec-{codec}'
    lines = ''.join(f'line {i} of text\n' for i in range(5000))
    admin(n, 'topics', 'create', '--topic', topic, '--partitions', '1')
    admin(n, 'produce', '--topic', topic, '--compression', codec, '--batch-bytes', '20000', '--quiet', input=lines)
    assert admin(n, 'consume', '--topic', topic, '--from-beginning', '--exit-eof').stdout == lines
    assert admin_json(n, 'topics', 'offsets', '--topic', topic)[0]['end_offset'] == 5000


def test_equal_keys_go_to_one_partition(shared_node):
    n = shared_node
    admin(n, 'topics', 'create', '--topic', 'keyed', '--partitions', '4')
    admin(n, 'produce', '--topic', 'keyed', '--key-separator', ':', '--idempotent', '--quiet',
          input=''.join(f'k{i % 10}:v{i}\n' for i in range(200)))
    rows = [json.loads(line) for line in admin(n, 'consume', '--topic', 'keyed', '--from-beginning', '--exit-eof', '--output', 'json').stdout.splitlines()]
    assert len(rows) == 200
    for i in range(10):
        mine = [r for r in rows if r['key'] == f'k{i}']
        assert len({r['partition'] for r in mine}) == 1
        assert [r['value'] for r in mine] == [f'v{v}' for v in range(i, 200, 10)]


def test_consume_starts_and_ends_where_it_is_told(shared_node):
    n = shared_node
    admin(n, 'topics', 'create', '--topic', 'places', '--partitions', '1')
    admin(n, 'produce', '--topic', 'places', '--quiet', input='a\nb\nc\nd\n')
    assert admin(n, 'consume', '--topic', 'places', '--partition', '0', '--offset', '1', '--max-messages', '2').stdout == 'b\nc\n'
    assert admin(n, 'consume', '--topic', 'places', '--exit-eof').stdout == ''
    assert 'OFFSET_OUT_OF_RANGE' in admin(n, 'consume', '--topic', 'places', '--partition', '0', '--offset', '99', '--exit-eof', status=1).stderr


def test_a_record_above_the_topics_limit_is_refused_with_both_sizes(shared_node):
    n = shared_node
    admin(n, 'topics', 'create', '--topic', 'small', '--config', 'max.message.bytes=1000')
    assert 'MESSAGE_TOO_LARGE' in admin(n, 'produce', '--topic', 'small', '--quiet', input='x' * 5000 + '\n', status=1).stderr


# ---- kraft-dump


def test_dump_shows_the_records_of_a_segment(cluster):
    n = cluster.single()
    admin(n, 'topics', 'create', '--topic', 'shown', '--partitions', '1')
    admin(n, 'produce', '--topic', 'shown', '--key-separator', '=', '--quiet', input='k=v\n')
    n.stop()
    segment, = glob.glob(os.path.join(n.data, 'shown-0', '*.log'))
    batch = json.loads(dump('log', '--records', '--output', 'json', segment).stdout)
    assert (batch['base_offset'], batch['valid'], batch['records'][0]['key'], batch['records'][0]['value']) == (0, True, 'k', 'v')
    with open(segment, 'r+b') as f:
        f.seek(-1, os.SEEK_END)
        f.write(b'!')
    broken = dump('log', '--output', 'json', segment, status=1)
    assert json.loads(broken.stdout)['valid'] is False
    assert 'position 0' in broken.stderr


def test_dump_replays_the_metadata_log_to_any_offset(cluster):
    n = cluster.single()
    admin(n, 'topics', 'create', '--topic', 'first')
    admin(n, 'topics', 'create', '--topic', 'second')
    n.stop()

    def topics(*args):
        return [json.loads(line)['data']['name'] for line in dump('metadata', '--type', 'TopicRecord', '--output', 'json', *args, n.data).stdout.splitlines()]

    assert sorted(topics()) == ['first', 'second']
    logs = sorted(glob.glob(os.path.join(n.data, '__cluster_metadata-0', '*.log')))
    rows = [json.loads(line) for line in dump('log', '--records', '--output', 'json', *logs).stdout.splitlines()]
    offset, = [r['offset'] for b in rows for r in b['records'] if r['value'].get('type') == 'TopicRecord' and r['value']['data']['name'] == 'second']
    assert topics('--at', str(offset - 1)) == ['first']
    changed = dump('metadata', '--diff', str(offset - 1), n.data).stdout
    assert '+TopicRecord' in changed and 'second' in changed and 'first' not in changed


@pytest.mark.parametrize('name', ['requests', 'responses', 'metadata', 'coordinator_group'])
def test_dump_wire_turns_every_vector_both_ways(name):
    packed = os.path.join(VECTORS, f'{name}.jsonl.zst')
    text = subprocess.run(['zstd', '-dcq', packed], check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in text.splitlines()]
    back = [json.loads(line) for line in dump('wire', input=text).stdout.splitlines()]
    assert [b['hex'] for b in back] == [line['hex'] for line in lines]
    fields = ''.join(json.dumps({'message': b['message'], 'version': b['version'], 'json': b['json']}) + '\n' for b in back)
    again = [json.loads(line)['hex'] for line in dump('wire', input=fields).stdout.splitlines()]
    assert again == [line['hex'] for line in lines]


def test_dump_wire_goes_on_after_a_bad_line():
    done = dump('wire', input='nonsense\n{"message":"HeartbeatResponseData","version":0,"hex":"001b"}\n', status=1)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]['line'] == 1
    assert rows[1]['json'] == {'errorCode': 27}


# ---- features, directories, partitions


def test_the_server_tells_its_requests_features_and_directories(shared_node):
    n = shared_node
    apis = {a['api']: a for a in admin_json(n, 'apis')}
    assert (apis['Produce']['min_version'], apis['Fetch']['min_version']) == (0, 4)
    levels = {f['feature']: f['level'] for f in admin_json(n, 'features', 'describe')}
    assert levels['metadata.version'] >= 7
    dirs = admin_json(n, 'log-dirs')
    assert [(d['broker'], d['state']) for d in dirs] == [(n.id, 'online')]


def test_trim_moves_the_start_of_a_partition(shared_node):
    n = shared_node
    admin(n, 'topics', 'create', '--topic', 'trimmed', '--partitions', '1')
    admin(n, 'produce', '--topic', 'trimmed', '--quiet', input='a\nb\nc\n')
    assert admin_json(n, 'topics', 'trim', '--topic', 'trimmed', '--partition', '0', '--before', '2')['start_offset'] == 2
    assert admin(n, 'consume', '--topic', 'trimmed', '--from-beginning', '--exit-eof').stdout == 'c\n'
    assert 'OFFSET_OUT_OF_RANGE' in admin(n, 'topics', 'trim', '--topic', 'trimmed', '--partition', '0', '--before', '9', status=1).stderr


def test_electing_where_all_is_well_changes_nothing(shared_node):
    admin(shared_node, 'topics', 'create', '--topic', 'led')
    assert admin_json(shared_node, 'topics', 'elect', '--topic', 'led') == []
