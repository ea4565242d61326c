# SPDX-License-Identifier: Apache-2.0
"""Hostile clients: no crash, bounded memory, and everybody else is served meanwhile."""
import os
import random
import select
import socket
import struct
import time

import pytest

import kraft


@pytest.fixture
def node(cluster):
    n = cluster.single(extra={'socket.request.max.bytes': 20000000, 'socket.listen.backlog.size': 1000})
    kraft.admin(n.address, 'topics', 'create', '--topic', 'victim', '--partitions', '1')
    return n


def dial(port):
    s = socket.create_connection((kraft.HOST, port), timeout=10)
    s.settimeout(10)
    return s


def header(api, version, correlation=1):
    """A request header of the flexible form (v2)."""
    return struct.pack('>hhih', api, version, correlation, 4) + b'evil' + b'\0'


def old_header(api, version, correlation=1):
    return struct.pack('>hhih', api, version, correlation, 4) + b'evil'


def frame(body):
    return struct.pack('>i', len(body)) + body


def closed_or_answered(s, seconds=5):
    """Waits until the node has said something or hung up."""
    poll = select.poll()  # select() knows descriptors below 1024 only
    poll.register(s, select.POLLIN)
    assert poll.poll(seconds * 1000), 'neither an answer nor a close'
    try:
        return s.recv(65536)
    except ConnectionResetError:
        return b''


def assert_served(node):
    assert node.running(), node.log_tail()
    kraft.api_versions(node.port)
    kraft.api_versions(node.controller_port)


def growth_kib(node, before):
    return 0 if kraft.SANITIZED else node.memory_kib()[1] - before


def test_random_bytes_on_both_listeners(node):
    rng = random.Random(1)
    for i in range(500):
        with dial(node.port if i % 2 else node.controller_port) as s:
            try:
                s.sendall(rng.randbytes(rng.randrange(1, 5000)))
            except OSError:
                pass
    assert_served(node)


@pytest.mark.parametrize('length', [-1, -2147483648, 2147483647, 20000001, 0, 1, 7])
def test_senseless_frame_lengths_close_the_connection(node, length):
    before = node.memory_kib()[1]
    for port in (node.port, node.controller_port):
        for _ in range(50):
            with dial(port) as s:
                s.sendall(struct.pack('>i', length) + b'\0' * 16)
                if length > 20000000 or length <= 7:
                    assert closed_or_answered(s) == b''
    assert growth_kib(node, before) < 8192
    assert_served(node)


def test_half_frames_wait_without_costing_memory(node):
    before = node.memory_kib()[1]
    idle = []
    for _ in range(500):
        s = dial(node.port)
        s.sendall(struct.pack('>i', 19000000) + header(0, 9))
        idle.append(s)
    assert_served(node)
    time.sleep(1)
    assert growth_kib(node, before) < 64 * 1024, 'memory is reserved for bytes that were only announced'
    for s in idle:
        s.close()
    assert_served(node)


def test_a_million_elements_claimed_in_ten_bytes(node):
    """Every API that is advertised, with array lengths that the bytes cannot hold."""
    apis = kraft.api_versions(node.port)
    before = node.memory_kib()[1]
    claims = [struct.pack('>i', n) for n in (2147483647, 54000000, -2, 1000000)] + [b'\xff\xff\xff\xff\x0f', b'\x81\x89\x7a', b'\xff\xff\xff\xff\xff\xff']
    for api, low, high in apis:
        for version in {low, high}:
            for claim in claims:
                for head in (header, old_header):
                    with dial(node.port) as s:
                        s.sendall(frame(head(api, version) + claim + b'\0' * 6))
                        s.shutdown(socket.SHUT_WR)
                        closed_or_answered(s)
    assert growth_kib(node, before) < 16 * 1024
    assert_served(node)


def test_a_client_that_sends_without_reading_is_paused(node):
    """A thousand Metadata requests of all topics a time, answers never read."""
    before = node.memory_kib()[1]
    request = frame(old_header(3, 1) + struct.pack('>i', -1)) * 1000
    with dial(node.port) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(0.5)
        sent, end = 0, time.monotonic() + 5
        while time.monotonic() < end:
            try:
                sent += s.send(request)
            except socket.timeout:
                break
        assert_served(node)
        assert growth_kib(node, before) < 64 * 1024
    assert_served(node)


def test_a_client_that_reads_one_byte_at_a_time(node):
    with dial(node.port) as s:
        s.sendall(frame(old_header(18, 0)))
        got = b''
        while len(got) < 40:
            got += s.recv(1)
        assert_served(node)


def test_a_client_that_sends_one_byte_at_a_time(node):
    with dial(node.port) as s:
        for b in frame(old_header(18, 0)):
            s.sendall(bytes([b]))
        assert len(closed_or_answered(s)) > 4


def test_five_thousand_idle_connections(node):
    before = node.memory_kib()[1]
    idle = []
    for _ in range(5000):
        s = dial(node.port)
        s.sendall(frame(old_header(18, 0)))
        idle.append(s)
    for s in idle:
        assert len(s.recv(4)) == 4
    assert_served(node)
    per_connection = growth_kib(node, before) * 1024 / 5000
    assert per_connection < 4096, f'{per_connection:.0f} bytes a connection'
    for s in idle:
        s.close()
    assert_served(node)


def test_unknown_apis_and_versions(node):
    with dial(node.port) as s:  # ApiVersions of an unknown version: v0 answer with UNSUPPORTED_VERSION
        s.sendall(frame(header(18, 99)))
        answer = closed_or_answered(s)
        assert struct.unpack('>h', answer[8:10]) == (35,)
    for api, version in ((0, 2), (0, 99), (4, 0), (7, 0), (999, 0), (-1, 0), (1, 3)):
        with dial(node.port) as s:
            s.sendall(frame(header(api, version) + b'\0' * 20))
            closed_or_answered(s)
    assert_served(node)


def test_flipped_bits_in_real_requests(node):
    """Requests of every advertised API with random content and flipped bits."""
    rng = random.Random(int(os.environ.get('KRAFT_SEED', 7)))
    apis = kraft.api_versions(node.port)
    s = dial(node.port)
    for _ in range(3000):
        api, low, high = rng.choice(apis)
        body = bytes(rng.choice((0, 0, 0, 1, 2, 255, rng.randrange(256))) for _ in range(rng.randrange(60)))
        try:
            s.sendall(frame(header(api, rng.randint(low, high)) + body))
            s.setblocking(False)
            try:
                if s.recv(65536) == b'':
                    raise OSError
            except BlockingIOError:
                pass
            s.setblocking(True)
            s.settimeout(10)
        except OSError:
            s.close()
            s = dial(node.port)
    s.close()
    assert_served(node)
