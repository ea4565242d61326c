# SPDX-License-Identifier: Apache-2.0
"""confluent-kafka (librdkafka): idempotence, limits, live reading, and its admin client."""
import functools
import os
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition, OFFSET_BEGINNING
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourceType

import kraft


@functools.lru_cache
def admin_of(address):
    return AdminClient({'bootstrap.servers': address})


def admin(node):
    """The one admin client of a node: its futures die with it."""
    return admin_of(node.address)


def make_topic(node, name, partitions=1, config=None):
    for future in admin(node).create_topics([NewTopic(name, partitions, 1, config=config or {})]).values():
        future.result(30)


def produce(node, topic, records, **config):
    """Sends (key, value, headers) triples and returns the (partition, offset) of each acked one."""
    acked, errors = [], []
    options = {'bootstrap.servers': node.address, 'linger.ms': 5, 'queue.buffering.max.messages': 2000000, 'message.max.bytes': 11000000}
    options.update({k.replace('_', '.'): v for k, v in config.items()})
    p = Producer(options)

    def done(err, message):
        if err:
            errors.append(err)
        else:
            acked.append((message.partition(), message.offset()))
    for key, value, headers in records:
        while True:
            try:
                p.produce(topic, value=value, key=key, headers=headers, on_delivery=done)
                break
            except BufferError:
                p.poll(0.1)
        p.poll(0)
    assert p.flush(120) == 0
    assert not errors, errors[0]
    return acked


def consume(node, topic, partitions=1, **config):
    """Everything in the topic, as (partition, offset, key, value, headers), in order of arrival."""
    options = {'bootstrap.servers': node.address, 'group.id': 'unused', 'enable.auto.commit': False, 'enable.partition.eof': True,
               'fetch.message.max.bytes': 12000000, 'fetch.wait.max.ms': 50}
    options.update({k.replace('_', '.'): v for k, v in config.items()})
    c = Consumer(options)
    c.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    out, open_partitions, last = [], set(range(partitions)), time.monotonic()
    while open_partitions:
        batch = c.consume(10000, timeout=0.1)  # waits for all of 10000 or the time, whichever comes first
        if batch:
            last = time.monotonic()
        assert time.monotonic() < last + 30, f'nothing more came; still open: {open_partitions}'
        for m in batch:
            if m.error():
                assert m.error().code() == -191, m.error()  # end of partition
                open_partitions.discard(m.partition())
            else:
                out.append((m.partition(), m.offset(), m.key(), m.value(), m.headers()))
    c.close()
    return out


def test_a_record_over_the_limit_is_refused_and_the_rest_goes_on(shared_node):
    make_topic(shared_node, 'limit', config={'max.message.bytes': '10000'})
    with pytest.raises(AssertionError, match='MSG_SIZE_TOO_LARGE'):
        produce(shared_node, 'limit', [(None, os.urandom(20000), None)])
    produce(shared_node, 'limit', [(None, b'small', None)])
    assert [r[3] for r in consume(shared_node, 'limit')] == [b'small']


def test_an_idempotent_producer_writes_each_record_once(shared_node):
    make_topic(shared_node, 'idempotent', partitions=4)
    records = [(b'%d' % i, b'%d' % i, None) for i in range(50000)]
    produce(shared_node, 'idempotent', records, enable_idempotence=True)
    back = consume(shared_node, 'idempotent', partitions=4)
    assert sorted(int(r[3]) for r in back) == list(range(50000))
    for p in range(4):
        mine = [int(r[3]) for r in back if r[0] == p]
        assert mine == sorted(mine)


def test_a_producer_and_a_consumer_use_the_topic_at_once(shared_node):
    make_topic(shared_node, 'live')
    c = Consumer({'bootstrap.servers': shared_node.address, 'group.id': 'unused', 'enable.auto.commit': False})
    c.assign([TopicPartition('live', 0, 0)])
    for i in range(20):
        produce(shared_node, 'live', [(None, b'%d' % i, None)])
        message = c.poll(10)
        assert message is not None and message.error() is None and message.value() == b'%d' % i
    c.close()


def test_topics_are_created_listed_grown_and_deleted(shared_node):
    a = admin(shared_node)
    make_topic(shared_node, 'admin', partitions=2)
    assert len(a.list_topics('admin', timeout=10).topics['admin'].partitions) == 2
    for f in a.create_partitions([NewPartitions('admin', 5)]).values():
        f.result(30)
    kraft.wait_for('five partitions', lambda: len(a.list_topics('admin', timeout=10).topics['admin'].partitions) == 5)
    for f in a.delete_topics(['admin']).values():
        f.result(30)
    kraft.wait_for('deletion', lambda: 'admin' not in a.list_topics(timeout=10).topics)


def test_configs_are_altered_and_described(shared_node):
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry
    a = admin(shared_node)
    make_topic(shared_node, 'configured')
    resource = ConfigResource(ResourceType.TOPIC, 'configured', incremental_configs=[
        ConfigEntry('retention.ms', '12345', incremental_operation=AlterConfigOpType.SET)])
    for f in a.incremental_alter_configs([resource]).values():
        f.result(30)

    def described():
        return list(a.describe_configs([ConfigResource(ResourceType.TOPIC, 'configured')]).values())[0].result(30)
    entry = kraft.wait_for('the new value', lambda: (e := described()['retention.ms']).value == '12345' and e)
    assert not entry.is_default


def test_offsets_are_found_by_time(shared_node):
    make_topic(shared_node, 'times')
    p = Producer({'bootstrap.servers': shared_node.address})
    base = 1700000000000
    for i in range(1000):
        p.produce('times', b'%d' % i, timestamp=base + i * 1000)
    assert p.flush(30) == 0
    where = TopicPartition('times', 0)

    def at(spec):
        return admin(shared_node).list_offsets({where: spec})[where].result(30)
    assert at(OffsetSpec.for_timestamp(base + 500 * 1000)).offset == 500
    assert at(OffsetSpec.for_timestamp(base + 500 * 1000 + 1)).offset == 501
    assert at(OffsetSpec.for_timestamp(base + 10**9)).offset == -1
    assert at(OffsetSpec.max_timestamp()).offset == 999
    assert at(OffsetSpec.earliest()).offset == 0


def test_records_are_deleted_up_to_an_offset(shared_node):
    make_topic(shared_node, 'trimmed')
    produce(shared_node, 'trimmed', [(None, b'%d' % i, None) for i in range(100)])
    where = TopicPartition('trimmed', 0, 40)
    for f in admin(shared_node).delete_records([where]).values():
        assert f.result(30).low_watermark == 40
    assert [int(r[3]) for r in consume(shared_node, 'trimmed')] == list(range(40, 100))


def test_a_missing_topic_is_created_on_first_use(shared_node):
    produce(shared_node, 'made-on-the-fly', [(None, b'hello', None)])
    assert [r[3] for r in consume(shared_node, 'made-on-the-fly')] == [b'hello']
