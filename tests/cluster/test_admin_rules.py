# SPDX-License-Identifier: Apache-2.0
"""Odd admin requests, and topics that come and go under load."""
import threading
import time

import pytest

import kraft
import wire


@pytest.fixture(scope='module')
def node():
    with kraft.Cluster() as c:
        n = c.single()
        yield n
        assert n.running(), n.log_tail()
        n.stop()


@pytest.fixture
def client(node):
    with wire.Client(node.port, timeout=60) as c:
        yield c


def test_ten_thousand_and_one_topics_are_too_many_for_one_request(node, client):
    answers = client.create_topics([f'many-{i}' for i in range(10001)])
    errors = {e for _, e, _ in answers}
    assert len(answers) == 10001
    assert errors <= {0, wire.POLICY_VIOLATION, wire.INVALID_REQUEST} and len(errors) == 1, errors
    assert 'no longer the active controller' not in node.log_tail(1000)
    if errors == {0}:
        for i in range(0, 10001, 1000):
            client.delete_topics([f'many-{k}' for k in range(i, min(i + 1000, 10001))])


@pytest.mark.parametrize('name', ['', '.', '..', '../../etc/passwd', 'a/b', 'a b', 'a\0b', 'x' * 250, 'x' * 30000, 'ü', '\u202e', 'a\nb', '%s%n', '*', 'a:b'])
def test_names_that_are_no_topics(client, name):
    assert client.create_topics([name])[0][1] == wire.INVALID_TOPIC


def test_invalid_bytes_in_a_name(client):
    r = client.call(wire.CREATE_TOPICS, 4, b'\0\0\0\1' + b'\0\2\xff\xfe' + b'\0\0\0\1\0\1' + b'\0\0\0\0' * 2 + b'\0\0\x75\x30\0')
    r.i32(), r.i32()
    r.at += 4
    assert r.i16() == wire.INVALID_TOPIC


def test_the_longest_name_works(node, client):
    name = 'x' * 249
    assert client.create_topics([name])[0][1] in (0, wire.INVALID_TOPIC)
    if client.produce(name, wire.batch())[0] == 0:
        assert client.fetch(name, 0)[2][0][3]
    client.delete_topics([name])


def test_duplicates_in_one_request(client):
    assert {e for _, e, _ in client.create_topics(['twice', 'twice'])} == {wire.INVALID_REQUEST}
    assert client.create_topics(['twice'])[0][1] == 0
    assert client.create_topics(['twice'])[0][1] == wire.TOPIC_EXISTS
    answers = client.delete_topics(['twice', 'twice'])
    assert all(e in (0, wire.INVALID_REQUEST, wire.UNKNOWN_TOPIC_OR_PARTITION) for _, e in answers)


def test_names_that_differ_in_dots_only_collide(client):
    assert client.create_topics(['a.b'])[0][1] == 0
    assert client.create_topics(['a_b'])[0][1] == wire.INVALID_TOPIC
    assert client.delete_topics(['a.b'])[0][1] == 0


@pytest.mark.parametrize('partitions', [0, -2, -2147483648, 2147483647, 1000000])
def test_senseless_numbers_of_partitions(node, client, partitions):
    assert client.create_topics(['wide'], partitions=partitions)[0][1] in (wire.INVALID_PARTITIONS, wire.POLICY_VIOLATION, wire.INVALID_REQUEST)
    assert 'no longer the active controller' not in node.log_tail(1000)


@pytest.mark.parametrize('key,value', [('retention.ms', 'never'), ('retention.ms', ''), ('retention.ms', '9223372036854775808'), ('segment.bytes', '0'), ('segment.bytes', '-1'), ('segment.ms', '0'),
                                       ('cleanup.policy', 'burn'), ('compression.type', 'rar'), ('min.insync.replicas', '0'), ('no.such.key', '1'), ('max.message.bytes', '-1'),
                                       ('max.message.bytes', '1e6'), ('flush.messages', '0'), ('', ''), ('retention.ms', '1' * 30000)])
def test_bad_values_are_refused(node, client, key, value):
    client.create_topics(['configured'])
    error, message = client.alter_config(2, 'configured', key, value)
    assert error in (wire.INVALID_CONFIG, wire.INVALID_REQUEST), (error, message)
    assert message
    assert client.create_topics(['misconfigured'], configs=[(key, value)])[0][1] in (wire.INVALID_CONFIG, wire.INVALID_REQUEST)
    error, message = client.alter_config(4, '1', key, value)
    assert error in (wire.INVALID_CONFIG, wire.INVALID_REQUEST) or key == 'max.message.bytes', (error, message)


def test_configs_of_what_does_not_exist(client):
    assert client.alter_config(2, 'nothing', 'retention.ms', '1000')[0] == wire.UNKNOWN_TOPIC_OR_PARTITION
    assert client.alter_config(99, 'x', 'retention.ms', '1000')[0] != 0
    assert client.alter_config(4, '77', 'log.retention.ms', '1000')[0] != 0
    assert client.alter_config(4, 'one', 'log.retention.ms', '1000')[0] != 0


class Load(threading.Thread):
    """Produces and fetches all the time; every error must be one that a client can live with."""

    ALLOWED = {0, 1, 3, 5, 6, 100, 103, 56}

    def __init__(self, node, topic):
        super().__init__()
        self.node, self.topic, self.go_on, self.stored, self.errors, self.trouble = node, topic, True, 0, set(), None

    def run(self):
        try:
            with wire.Client(self.node.port) as c:
                records = wire.batch([b'load' * 20] * 5)
                while self.go_on:
                    error, _ = c.produce(self.topic, records, acks=1)
                    self.stored += error == 0
                    self.errors |= {error, *(a[1] for a in c.fetch(self.topic, 0, max_wait=5)[2])}
        except OSError as e:
            self.trouble = e


def test_a_topic_deleted_and_made_again_under_load(node, client):
    loads = [Load(node, 'again') for _ in range(4)]
    for load in loads:
        load.start()
    for _ in range(50):
        assert client.create_topics(['again'], partitions=3)[0][1] == 0
        kraft.wait_for('leader', lambda: client.produce('again', wire.batch())[0] == 0, step=0.001)
        assert client.delete_topics(['again'])[0][1] == 0
    assert client.create_topics(['again'])[0][1] == 0
    before = [load.stored for load in loads]
    kraft.wait_for('progress of all', lambda: all(load.stored > b for load, b in zip(loads, before)))
    for load in loads:
        load.go_on = False
        load.join()
        assert load.trouble is None, load.trouble
        assert load.errors <= Load.ALLOWED, load.errors
    error, _, offset = client.list_offset('again', -2)
    assert (error, offset) == (0, 0)


def test_a_stop_under_load_is_clean_and_quick(cluster):
    node = cluster.single()
    with wire.Client(node.port) as c:
        c.create_topics(['stopped'], partitions=4)
    loads = [Load(node, 'stopped') for _ in range(4)]
    for load in loads:
        load.start()
    kraft.wait_for('load', lambda: all(load.stored > 10 for load in loads))
    start = time.monotonic()
    node.stop(10)
    assert time.monotonic() - start < 5
    for load in loads:
        load.go_on = False
        load.join()
    assert node.log_tail().rstrip().splitlines()[-1].find('stopped') > 0
    node.start()
    text = open(node.log_path).read()
    assert 'log recovered' not in text and 'torn' not in text, 'the clean mark was not there'
    with wire.Client(node.port) as c:
        assert c.end_offset('stopped') >= 5 * sum(load.stored for load in loads)
    node.stop()
