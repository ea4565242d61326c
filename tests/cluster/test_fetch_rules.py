# SPDX-License-Identifier: Apache-2.0
"""Odd fetches and questions about offsets: sizes, sessions, waits, times; pipelines and big frames."""
import socket
import struct
import threading
import time

import pytest

import kraft
import wire

RECORDS = 20


@pytest.fixture(scope='module')
def node():
    with kraft.Cluster() as c:
        n = c.single(extra={'socket.request.max.bytes': 20000000, 'kraft.memory.frames.bytes': 64 << 20, 'socket.listen.backlog.size': 1000})
        with wire.Client(n.port) as client:
            assert client.create_topics(['read'])[0][1] == 0
            for i in range(RECORDS):
                assert client.produce('read', wire.batch([b'%d' % i + b'x' * 1000]))[0] == 0
        yield n
        assert n.running(), n.log_tail()
        n.stop()


@pytest.fixture
def client(node):
    with wire.Client(node.port) as c:
        yield c


@pytest.mark.parametrize('max_bytes', [0, 1, -1, -2147483648, 2147483647])
@pytest.mark.parametrize('partition_bytes', [0, 1, -1, 2147483647])
def test_any_size_gives_whole_batches_or_nothing(client, max_bytes, partition_bytes):
    _, _, answers = client.fetch('read', 0, max_bytes=max_bytes, partition_bytes=partition_bytes)
    for _, error, _, records in answers:
        assert error in (0, wire.INVALID_REQUEST)
        at = 0
        while at < len(records):
            at += 12 + struct.unpack_from('>i', records, at + 8)[0]
        assert at == len(records)


@pytest.mark.parametrize('offset,error', [(RECORDS, 0), (RECORDS + 1, 1), (-1, 1), (-2**63, 1), (2**63 - 1, 1)])
def test_offsets_outside_of_the_log(client, offset, error):
    assert client.fetch('read', offset)[2][0][1] == error


def test_a_negative_or_endless_wait_is_bounded(node):
    for wait in (-1, -2147483648):
        with wire.Client(node.port) as c:
            c.fetch('read', RECORDS, max_wait=wait)
    with wire.Client(node.port) as c:  # waits for ever, and the node is still well after it has hung up
        c.fetch('read', RECORDS, max_wait=2147483647, send_only=True)
    kraft.api_versions(node.port)


def test_thousands_of_sessions_are_kept_within_the_limit(client):
    ids = set()
    for _ in range(2000):
        error, session, answers = client.fetch('read', RECORDS, epoch=0)
        assert error == 0 and answers[0][1] == 0
        ids.add(session)
    assert len(ids - {0}) <= 1000, 'max.incremental.fetch.session.cache.slots is 1000'
    error, _, answers = client.fetch('read', 0, epoch=-1)
    assert error == 0 and answers[0][3]


def test_unknown_sessions_and_epochs(client):
    assert client.fetch('read', 0, session=123456, epoch=1)[0] == wire.FETCH_SESSION_ID_NOT_FOUND
    assert client.fetch('read', 0, session=-5, epoch=7)[0] == wire.FETCH_SESSION_ID_NOT_FOUND
    _, session, _ = client.fetch('read', 0, epoch=0)
    if session:
        assert client.fetch('read', 0, session=session, epoch=99)[0] == wire.INVALID_FETCH_SESSION_EPOCH


def test_the_same_partition_many_times_in_one_fetch(client):
    error, _, answers = client.fetch('read', 0, topics=[('read', [(0, 0)] * 1000)], partition_bytes=2147483647, max_bytes=2147483647)
    assert error in (0, wire.INVALID_REQUEST)
    assert sum(len(a[3]) for a in answers) <= 1000 * 2 * RECORDS * 1100


@pytest.mark.parametrize('timestamp', [-1, -2, 0, 1, 2**63 - 1])
def test_known_times(client, timestamp):
    error, _, offset = client.list_offset('read', timestamp)
    assert error == 0 and -1 <= offset <= RECORDS


@pytest.mark.parametrize('timestamp', [-3, -4, -5, -6, -7, -100, -2**63])
def test_times_that_mean_nothing_in_this_version(client, timestamp):
    error, _, offset = client.list_offset('read', timestamp)
    assert error in (0, 35, 42) and -1 <= offset <= RECORDS


def test_a_thousand_parked_fetches_end_with_their_topic(node, client):
    assert client.create_topics(['doomed'])[0][1] == 0
    kraft.wait_for('leader', lambda: client.fetch('doomed', 0)[2][0][1] == 0)
    parked = [wire.Client(node.port) for _ in range(200)]
    for c in parked:
        for _ in range(5):
            c.fetch('doomed', 0, max_wait=60000, send_only=True)
    time.sleep(0.2)
    assert client.delete_topics(['doomed'])[0][1] == 0
    for c in parked:
        for _ in range(5):
            error, _, answers = c.fetched()
            assert error == 0 and answers[0][1] in (wire.UNKNOWN_TOPIC_OR_PARTITION, 6)
        c.close()


def test_answers_of_a_long_pipeline_come_in_order(node, client):
    """Five thousand requests, fast and slow ones mixed, sent while nothing is read."""
    sent = []

    def send():
        for i in range(5000):
            if i % 1000 == 0:
                sent.append(client.fetch('read', RECORDS, max_wait=50, send_only=True))
            elif i % 7 == 0:
                sent.append(client.fetch('read', i % RECORDS, send_only=True))
            else:
                sent.append(client.send(wire.API_VERSIONS, 0, b''))
    writer = threading.Thread(target=send)
    writer.start()
    for i in range(5000):
        client.receive(i + 1)
    writer.join()
    assert sent == list(range(1, 5001))


def test_big_produce_requests_without_reading_are_paused(node):
    before = node.memory_kib()[1]
    with wire.Client(node.port, timeout=3) as c:
        c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = b'\0' * 1000000
        try:
            for _ in range(1000):
                c.send_produce('read', request)
        except OSError:
            pass
        kraft.api_versions(node.port)
        assert kraft.SANITIZED or node.memory_kib()[1] - before < 160 * 1024
    kraft.api_versions(node.port)


def test_500_connections_with_10_mb_frames_share_the_budget(node):
    """Each sends most of a frame and stops; others are served; who goes on is finished or closed, one after the other."""
    held, filler = [], b'\0' * 262144
    for _ in range(500):
        s = socket.create_connection((kraft.HOST, node.port))
        s.setblocking(False)
        held.append(s)
    sent = [0] * 500
    header = struct.pack('>ihhih', 10000000, 0, 7, 1, 4) + b'evil'
    for i, s in enumerate(held):
        s.send(header)
    time.sleep(0.3)  # the heads arrive by themselves: each frame begins in a small buffer and must move to a great one
    end = time.monotonic() + 3
    while time.monotonic() < end:
        for i, s in enumerate(held):
            try:
                sent[i] += s.send(filler[:min(len(filler), 9000000 - sent[i])]) if sent[i] < 9000000 else 0
            except BlockingIOError:
                pass
            except OSError:
                sent[i] = 9000000
    start = time.monotonic()
    for _ in range(10):
        kraft.api_versions(node.port)
        with wire.Client(node.port) as c:
            assert c.fetch('read', 0)[0] == 0
    assert time.monotonic() - start < 3
    assert kraft.SANITIZED or node.memory_kib()[1] < 200 * 1024, node.memory_kib()
    for s in held:
        s.close()
    with wire.Client(node.port) as c:
        assert c.produce('read', wire.batch([b'z' * 500000]))[0] == 0
