# SPDX-License-Identifier: Apache-2.0
"""Requests made by hand, so that they can be wrong on purpose: frames, record batches, the answers' plain parts."""
import socket
import struct
import time

import kraft

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, CREATE_PARTITIONS = 19, 20, 21, 37
OFFSET_FOR_LEADER_EPOCH, INCREMENTAL_ALTER_CONFIGS, ALTER_CONFIGS, API_VERSIONS = 23, 44, 33, 18

NONE, OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, UNKNOWN_TOPIC_OR_PARTITION = 0, 1, 2, 3
MESSAGE_TOO_LARGE, INVALID_TOPIC, INVALID_REQUIRED_ACKS, INVALID_REQUEST = 10, 17, 21, 42
TOPIC_EXISTS, INVALID_PARTITIONS, INVALID_CONFIG, POLICY_VIOLATION, STORAGE_ERROR = 36, 37, 40, 44, 56
INVALID_RECORD, UNKNOWN_TOPIC_ID, FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH = 87, 100, 70, 71
UNSUPPORTED_COMPRESSION, TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 76, 53

CRC_TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
    CRC_TABLE.append(n)


def crc32c(data):
    crc, table = 0xffffffff, CRC_TABLE
    for b in data:
        crc = table[(crc ^ b) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


def varint(n):
    n = (n << 1 ^ n >> 63) & 0xffffffffffffffff
    out = b''
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def record(delta, value, key=None):
    body = b'\0' + varint(0) + varint(delta) + (varint(-1) if key is None else varint(len(key)) + key) + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def batch(values=(b'v',), records=None, count=None, magic=2, attributes=0, crc=None, length=0, last_delta=None, base=0, producer=(-1, -1, -1), time=1700000000000):
    """One record batch. `records` replaces the bytes after the header; `length` is added to the length field."""
    if records is None:
        records = b''.join(record(i, v) for i, v in enumerate(values))
    count = len(values) if count is None else count
    last_delta = len(values) - 1 if last_delta is None else last_delta
    tail = struct.pack('>hiqqqhii', attributes, last_delta, time, time, *producer, count) + records
    return struct.pack('>qiibI', base, 9 + len(tail) + length, 0, magic, crc32c(tail) if crc is None else crc) + tail


def string(s):
    return struct.pack('>h', len(s.encode())) + s.encode() if s is not None else b'\xff\xff'


def array(items):
    return struct.pack('>i', len(items)) + b''.join(items)


def data(b):
    return struct.pack('>i', len(b)) + b


class Reader:
    """Reads an answer front to back."""

    def __init__(self, body):
        self.body, self.at = body, 0

    def take(self, code):
        value = struct.unpack_from('>' + code, self.body, self.at)
        self.at += struct.calcsize('>' + code)
        return value[0]

    def i16(self):
        return self.take('h')

    def i32(self):
        return self.take('i')

    def i64(self):
        return self.take('q')

    def string(self):
        n = self.i16()
        self.at += max(n, 0)
        return self.body[self.at - n:self.at].decode() if n >= 0 else None

    def bytes(self):
        n = self.i32()
        self.at += max(n, 0)
        return self.body[self.at - n:self.at] if n >= 0 else None

    def array(self, read):
        return [read() for _ in range(self.i32())]


class Client:
    """A connection that sends requests with headers of the old form (v1), in the versions that have them."""

    def __init__(self, port, timeout=20):
        self.socket = socket.create_connection((kraft.HOST, port), timeout=timeout)
        self.correlation = 0

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, api, version, body):
        self.correlation += 1
        request = struct.pack('>hhi', api, version, self.correlation) + string('wire') + body
        self.socket.sendall(struct.pack('>i', len(request)) + request)
        return self.correlation

    def receive(self, correlation=None):
        body = kraft.receive(self.socket, struct.unpack('>i', kraft.receive(self.socket, 4))[0])
        assert correlation is None or struct.unpack('>i', body[:4])[0] == correlation, 'answers are out of order'
        return Reader(body[4:])

    def call(self, api, version, body):
        return self.receive(self.send(api, version, body))

    # ---- requests -------------------------------------------------------------------------------------------

    def produce(self, topic, records, partition=0, acks=-1, timeout=10000, version=7):
        """(error, base offset) of one partition."""
        self.send_produce(topic, records, partition, acks, timeout, version)
        return self.produced(version)

    def send_produce(self, topic, records, partition=0, acks=-1, timeout=10000, version=7):
        body = data(records) if records is not None else b'\xff\xff\xff\xff'
        return self.send(PRODUCE, version, string(None) + struct.pack('>hi', acks, timeout) + array([string(topic) + array([struct.pack('>i', partition) + body])]))

    def produced(self, version=7):
        r, answers = self.receive(), []
        for _ in range(r.i32()):
            r.string()
            for _ in range(r.i32()):
                r.i32()
                answers.append((r.i16(), r.i64()))
                r.at += 8 + (8 if version >= 5 else 0)
                if version >= 8:
                    r.array(lambda: (r.i32(), r.string()))
                    r.string()
        return answers[0] if len(answers) == 1 else answers

    def fetch(self, topic, offset, partition=0, max_wait=0, min_bytes=1, max_bytes=1 << 20, partition_bytes=1 << 20, session=0, epoch=-1, send_only=False, topics=None):
        """Fetch v11; (top error, session id, [(partition, error, high watermark, records)])."""
        if topics is None:
            topics = [(topic, [(partition, offset)])]
        parts = array([string(t) + array([struct.pack('>iiqqi', p, -1, o, -1, partition_bytes) for p, o in ps]) for t, ps in topics])
        sent = self.send(FETCH, 11, struct.pack('>iiiibii', -1, max_wait, min_bytes, max_bytes, 0, session, epoch) + parts + array([]) + string(''))
        return sent if send_only else self.fetched()

    def fetched(self):
        r, found = self.receive(), []
        r.i32()
        error, session = r.i16(), r.i32()
        for _ in range(r.i32()):
            r.string()
            for _ in range(r.i32()):
                p, e, hw = r.i32(), r.i16(), r.i64()
                r.at += 16
                r.array(lambda: (r.i64(), r.i64()))
                r.i32()
                found.append((p, e, hw, r.bytes() or b''))
        return error, session, found

    def list_offset(self, topic, timestamp, partition=0):
        """ListOffsets v5; (error, timestamp, offset)."""
        r = self.call(LIST_OFFSETS, 5, struct.pack('>ib', -1, 0) + array([string(topic) + array([struct.pack('>iiq', partition, -1, timestamp)])]))
        r.i32(), r.i32(), r.string(), r.i32(), r.i32()
        return r.i16(), r.i64(), r.i64()

    def end_offset(self, topic, partition=0):
        error, _, offset = self.list_offset(topic, -1, partition)
        assert error == 0, error
        return offset

    def create_topics(self, names, partitions=1, configs=(), timeout=30000):
        """CreateTopics v4; [(name, error, message)]. The answer comes at commit, as Kafka's: waits until the broker knows them, too."""
        settings = array([string(k) + string(v) for k, v in configs])
        r = self.call(CREATE_TOPICS, 4, array([string(n) + struct.pack('>ih', partitions, 1) + array([]) + settings for n in names]) + struct.pack('>ib', timeout, 0))
        r.i32()
        answers = r.array(lambda: (r.string(), r.i16(), r.string()))
        end = time.monotonic() + 2
        for name, error, _ in answers[:20]:
            while error == 0 and self.list_offset(name, -1)[0] != 0 and time.monotonic() < end:
                time.sleep(0.005)
        return answers

    def delete_topics(self, names, timeout=30000):
        """DeleteTopics v3; [(name, error)]."""
        r = self.call(DELETE_TOPICS, 3, array([string(n) for n in names]) + struct.pack('>i', timeout))
        r.i32()
        return r.array(lambda: (r.string(), r.i16()))

    def delete_records(self, topic, offset, partition=0):
        """DeleteRecords v1; (low watermark, error)."""
        r = self.call(DELETE_RECORDS, 1, array([string(topic) + array([struct.pack('>iq', partition, offset)])]) + struct.pack('>i', 10000))
        r.i32(), r.i32(), r.string(), r.i32(), r.i32()
        return r.i64(), r.i16()

    def alter_config(self, kind, name, key, value):
        """IncrementalAlterConfigs v0, SET; (error, message)."""
        r = self.call(INCREMENTAL_ALTER_CONFIGS, 0, array([struct.pack('>b', kind) + string(name) + array([string(key) + b'\0' + string(value)])]) + b'\0')
        r.i32(), r.i32()
        return r.i16(), r.string()
