# SPDX-License-Identifier: Apache-2.0
"""Requests that stock clients sent to an Apache Kafka 4.4.0 cluster, sent to Kraft: the answers have the same shape and values.

tests/vectors/replay.jsonl.zst holds requests and answers in order of time; tests/vectors/README.md says where they come from.
"""
import base64

import pytest
from confluent_kafka import Producer

import kraft
import messages

# Fields that tell of the cluster and not of the protocol: compared by type only.
OF_THE_CLUSTER = {'host', 'port', 'rack', 'nodeId', 'brokerId', 'leaderId', 'leaderEpoch', 'controllerId', 'clusterId', 'topicId', 'producerId', 'sessionId',
                  'replicaId', 'replicaDirectoryId', 'logEndOffset', 'lastFetchTimestamp', 'lastCaughtUpTimestamp', 'logDir', 'partitionSize', 'totalBytes',
                  'usableBytes', 'finalizedFeaturesEpoch', 'records'}
# Lists whose length and order are the cluster's: the first elements are compared.
LISTS_OF_THE_CLUSTER = {'brokers', 'currentVoters', 'observers', 'nodes', 'replicaElectionResults'}
NODE_LISTS = {'replicaNodes', 'isrNodes', 'offlineReplicas'}
NAMES = ('name', 'topic', 'topicName', 'partitionIndex', 'partition', 'index', 'partitionId', 'resourceName')
# What this node's state makes different, by API: the path ends so.
EXPECTED = {
    'ApiVersions': ('.finalizedFeatures',),                       # which features were finalized at format
    'CreateTopics': ('[min.insync.replicas].configSource',),      # the reference ran with eligible leader replicas,
    'DescribeConfigs': ('[min.insync.replicas].configSource',),   # which sets the cluster's min.insync.replicas
    'DescribeQuorum': ('.highWatermark',),
    'DescribeLogDirs': ('.results',),                             # two directories a broker there; compared apart
    'UnregisterBroker': ('.errorCode', '.errorMessage'),          # there is no broker 13 here
}


def differences(want, got, api, path=''):
    """Where an answer differs from the reference's, a line each."""
    field = path.rsplit('.', 1)[-1].split('[')[0]
    if path.endswith(EXPECTED.get(api, ())) and path and type(want) is type(got):
        return []
    if isinstance(want, dict) and isinstance(got, dict):
        out = [f'{path}: has {sorted(got)}, not {sorted(want)}'] if set(want) != set(got) else []
        return out + [d for k in want if k in got for d in differences(want[k], got[k], api, f'{path}.{k}')]
    if isinstance(want, list) and isinstance(got, list):
        if field in NODE_LISTS:
            return [] if all(isinstance(v, int) for v in got) else [f'{path}: {got}']
        if field in LISTS_OF_THE_CLUSTER:
            return differences(want[0], got[0], api, f'{path}[0]') if want and got else []
        if field == 'apiKeys':
            known = {v['apiKey']: v for v in want}
            return [f'{path}: {v}, not {known.get(v["apiKey"])}' for v in got if known.get(v['apiKey']) != v]
        name = next((n for n in NAMES if want and isinstance(want[0], dict) and n in want[0]), None)
        if name:
            mine, theirs = {v[name]: v for v in got}, {v[name]: v for v in want}
            out = [f'{path}: elements {sorted(mine)}, not {sorted(theirs)}'] if set(mine) != set(theirs) else []
            return out + [d for n in theirs if n in mine for d in differences(theirs[n], mine[n], api, f'{path}[{n}]')]
        if len(want) != len(got):
            return [f'{path}: {len(got)} elements, not {len(want)}']
        return [d for i, (a, b) in enumerate(zip(want, got)) for d in differences(a, b, api, f'{path}[{i}]')]
    if field in OF_THE_CLUSTER:
        return [] if type(want) is type(got) or field == 'rack' else [f'{path}: {got!r}, not like {want!r}']
    return [] if want == got and type(want) is type(got) else [f'{path}: {got!r}, not {want!r}']


class Replay:
    """Requests of the reference's cluster of brokers 11, 12 and 13, turned into requests to one node of id 11."""

    def __init__(self, node):
        self.node, self.entries = node, messages.vectors('replay')
        self.connection = messages.Connection(node.port)
        self.batch = bytes.fromhex(next(b['hex'] for b in messages.vectors('batches') if b['what'] == 'none create-time one record'))
        self.ids, self.sessions, self.ends = {}, {}, {}
        with open(f'{node.data}/meta.properties') as f:
            self.cluster_id = next(line.split('=')[1].strip() for line in f if line.startswith('cluster.id='))

    def ours(self, value, field=''):
        """A message with the reference's ids, counts and records replaced by those of this node."""
        if isinstance(value, dict):
            return {k: self.ours(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [11] if field == 'brokerIds' else [self.ours(v, field) for v in value]
        if value is None or value == -1:
            return value
        return {'topicId': lambda: self.ids.get(value, value), 'replicationFactor': lambda: 1, 'sessionId': lambda: self.sessions.get(value, value),
                'resourceName': lambda: '11' if value in ('12', '13') else value, 'nodeId': lambda: 11, 'clusterId': lambda: self.cluster_id,
                'transactionalId': lambda: None, 'records': lambda: base64.b64encode(self.batch).decode()}.get(field, lambda: value)()

    def fill(self, answer):
        """Writes records until the partitions of a fetch end where the reference's did."""
        p = Producer({'bootstrap.servers': self.node.address, 'linger.ms': 0})
        for topic in answer['responses']:
            for part in topic['partitions']:
                where = part['partitionIndex']
                for _ in range(part['highWatermark'] - self.ends.get(where, 0)):
                    p.produce('t1', b'value', partition=where)
                self.ends[where] = max(part['highWatermark'], self.ends.get(where, 0))
        assert p.flush(30) == 0

    def run(self, entry):
        """Sends the request and gives the differences."""
        api, want = entry['api'], entry['response']
        if api == 'Fetch':
            self.fill(want)
        got = self.connection.call(api, entry['version'], self.ours(entry['request']))
        if api == 'CreateTopics':
            self.ids.update({a['topicId']: b['topicId'] for a, b in zip(want['topics'], got['topics'])})
        if api == 'Produce' and entry['version'] == 7:
            self.ends[got['responses'][0]['partitionResponses'][0]['index']] = 1
        if api == 'Fetch' and want['sessionId']:
            self.sessions[want['sessionId']] = got['sessionId']
            assert got['sessionId'] > 0
        return differences(self.ours(want), got, api)


@pytest.fixture(scope='module')
def broker():
    with kraft.Cluster() as c:
        yield c.single(node_id=11)


def test_recorded_requests_are_answered_as_by_the_reference(broker):
    replay = Replay(broker)
    assert len(replay.entries) > 50
    found = [f'{e["api"]} {e["version"]} of {e["client"]}: {d}' for e in replay.entries for d in replay.run(e)]
    replay.connection.close()
    assert not found, '\n'.join(found)


@pytest.mark.parametrize('listener', ['port', 'controller_port'])
def test_every_served_api_has_the_versions_of_the_reference(broker, listener):
    c = messages.Connection(getattr(broker, listener))
    for row in c.call('ApiVersions', 4, {'clientSoftwareName': 'test', 'clientSoftwareVersion': '1'})['apiKeys']:
        api = next(a for a in messages.apis().values() if a['key'] == row['apiKey'])
        want = (0 if api['name'] == 'Produce' else api['min'], api['max_stable'])  # old clients look for Produce 0, which the reference also claims
        assert (row['minVersion'], row['maxVersion']) == want, api['name']
    c.close()


def test_descriptions_of_configs_come_only_when_asked_for(broker):
    """A null where they were not asked for: an empty text was sent once."""
    c = messages.Connection(broker.port)
    for asked in (False, True):
        got = c.call('DescribeConfigs', 4, {'resources': [{'resourceType': 4, 'resourceName': '11', 'configurationKeys': None}], 'includeSynonyms': True,
                                            'includeDocumentation': asked})['results'][0]
        assert got['errorCode'] == 0
        described = {k['name']: k['documentation'] for k in got['configs']}
        assert len(described['num.partitions']) > 10 if asked else set(described.values()) == {None}
    c.close()


@pytest.mark.parametrize('key', ['leader.replication.throttled.rate', 'follower.replication.throttled.rate', 'replica.alter.log.dirs.io.max.bytes.per.second'])
def test_rates_of_replication_are_configs_of_a_broker(broker, key):
    """kafka-reassign-partitions sets and deletes them; they were unknown once. As in Kafka they are shown only where set."""
    c = messages.Connection(broker.port)

    def alter(operation, value):
        return c.call('IncrementalAlterConfigs', 1, {'resources': [{'resourceType': 4, 'resourceName': '11', 'configs': [
            {'name': key, 'configOperation': operation, 'value': value}]}], 'validateOnly': False})['responses'][0]['errorCode']

    def shown():
        got = c.call('DescribeConfigs', 4, {'resources': [{'resourceType': 4, 'resourceName': '11', 'configurationKeys': None}], 'includeSynonyms': False,
                                            'includeDocumentation': False})['results'][0]['configs']
        return next((k['value'] for k in got if k['name'] == key), None)
    assert shown() is None
    assert alter(0, '-5') == 40  # INVALID_CONFIG
    assert alter(0, '5000000') == 0
    kraft.wait_for('the rate', lambda: shown() == '5000000')
    assert alter(1, None) == 0
    kraft.wait_for('no rate', lambda: shown() is None)
    c.close()
