# SPDX-License-Identifier: Apache-2.0
"""kill -9 in the middle of produce: every acked record is there once, at its offset, after each restart."""
import os
import random
import threading
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import kraft

ROUNDS = int(os.environ.get('KRAFT_KILLS', '200'))


class Writer(threading.Thread):
    """Sends numbered records without retries until it is told to stop; keeps what was acked."""

    def __init__(self, address, topic, partitions, first, codec):
        super().__init__()
        self.acked, self.stop_now, self.number = {}, False, first
        self.topic, self.partitions = topic, partitions
        self.producer = Producer({'bootstrap.servers': address, 'retries': 0, 'linger.ms': 1, 'compression.type': codec, 'message.timeout.ms': 3000,
                                  'socket.timeout.ms': 3000, 'acks': random.choice(['1', 'all']), 'log_level': 0})

    def run(self):
        def done(number):
            def callback(err, message):
                if err is None:
                    self.acked[number] = (message.partition(), message.offset())
            return callback
        while not self.stop_now:
            for _ in range(20):
                value = b'%d ' % self.number + b'x' * random.randrange(2000)
                self.producer.produce(self.topic, value, partition=self.number % self.partitions, on_delivery=done(self.number))
                self.number += 1
            self.producer.poll(0.002)
        self.producer.purge()
        self.producer.flush(5)


def read_all(address, topic, starts):
    """{number: (partition, offset)} of every record from the given offsets on; each number once."""
    c = Consumer({'bootstrap.servers': address, 'group.id': 'unused', 'enable.partition.eof': True, 'enable.auto.commit': False, 'fetch.wait.max.ms': 20,
                  'auto.offset.reset': 'error', 'check.crcs': True})
    c.assign([TopicPartition(topic, p, o) for p, o in enumerate(starts)])
    found, open_partitions, ends = {}, set(range(len(starts))), list(starts)
    last = time.monotonic()
    while open_partitions:
        batch = c.consume(10000, timeout=0.05)  # waits for that many or that long
        assert batch or time.monotonic() < last + 20, 'the consumer got nothing for 20 s'
        for m in batch:
            last = time.monotonic()
            if m.error():
                assert m.error().code() == -191, m.error()
                open_partitions.discard(m.partition())
                continue
            number = int(m.value().split(b' ', 1)[0])
            assert number not in found, f'record {number} is there twice: {found[number]} and {m.partition(), m.offset()}'
            assert m.offset() == ends[m.partition()], f'a gap before {m.partition(), m.offset()}'
            ends[m.partition()] = m.offset() + 1
            found[number] = (m.partition(), m.offset())
    c.close()
    return found, ends


@pytest.mark.timeout(600)
def test_acked_records_survive_kills_at_random_instants(cluster):
    seed = int(os.environ.get('KRAFT_SEED', random.randrange(1 << 32)))
    print(f'seed {seed}')
    random.seed(seed)
    node = cluster.add(1, extra={'log.segment.bytes': 1048576})
    node.format(cluster.cluster_id, '--standalone')
    node.start()
    partitions, starts, number, acked = 3, [0, 0, 0], 0, {}
    kraft.admin(node.address, 'topics', 'create', '--topic', 'killed', '--partitions', str(partitions))
    for _ in range(ROUNDS):
        writer = Writer(node.address, 'killed', partitions, number, random.choice(['none', 'lz4', 'zstd']))
        writer.start()
        time.sleep(random.uniform(0.02, 0.3))
        node.kill()
        writer.stop_now = True
        writer.join()
        node.start()
        found, starts = read_all(node.address, 'killed', starts)
        for n, where in writer.acked.items():
            assert found.get(n) == where, f'record {n} was acked at {where} and is at {found.get(n)}'
        acked.update(writer.acked)
        number = writer.number
    assert len(acked) > ROUNDS
    found, _ = read_all(node.address, 'killed', [0, 0, 0])  # and no later kill has taken anything back
    lost = [n for n, where in acked.items() if found.get(n) != where]
    assert not lost, f'{len(lost)} of {len(acked)} acked records are lost, the first one is {lost[0]} at {acked[lost[0]]}'
    node.stop()
