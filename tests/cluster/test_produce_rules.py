# SPDX-License-Identifier: Apache-2.0
"""What a broker refuses to store: wrong checksums, counts, formats and flags; nothing of it gets into the log."""
import struct
import zlib

import pytest

import kraft
import wire


@pytest.fixture(scope='module')
def node():
    with kraft.Cluster() as c:
        n = c.single()
        with wire.Client(n.port) as client:
            assert client.create_topics(['rules'])[0][1] == 0
        yield n
        assert n.running(), n.log_tail()
        n.stop()


@pytest.fixture
def client(node):
    with wire.Client(node.port) as c:
        yield c


def assert_refused(client, records, errors, **options):
    """The batch is refused with one of these errors, the log keeps its end, and the connection lives."""
    end = client.end_offset('rules')
    error, base = client.produce('rules', records, **options)
    assert error in errors, error
    assert base == -1
    assert client.end_offset('rules') == end


def assert_stored(client, records, count=1, **options):
    end = client.end_offset('rules')
    assert client.produce('rules', records, **options) == (0, end)
    assert client.end_offset('rules') == end + count


BAD = (wire.CORRUPT_MESSAGE, wire.INVALID_RECORD)


def test_a_good_batch_is_stored(client):
    assert_stored(client, wire.batch([b'a', b'b', b'c']), count=3)


def test_a_wrong_checksum_is_corrupt(client):
    good = wire.batch()
    assert_refused(client, good[:-1] + bytes([good[-1] ^ 1]), (wire.CORRUPT_MESSAGE,))
    assert_refused(client, wire.batch(crc=0), (wire.CORRUPT_MESSAGE,))


@pytest.mark.parametrize('magic', [0, 1, 3, -1, 127])
def test_other_formats_are_refused(client, magic):
    assert_refused(client, wire.batch(magic=magic), BAD + (43, 35, 42))


@pytest.mark.parametrize('count', [0, 1, 3, -1, 2147483647, -2147483648])
def test_a_count_that_is_not_the_number_of_records_is_refused(client, count):
    assert_refused(client, wire.batch([b'a', b'b'], count=count), BAD)


@pytest.mark.parametrize('delta', [0, 2, -1, 2147483647])
def test_a_wrong_last_offset_delta_is_refused(client, delta):
    assert_refused(client, wire.batch([b'a', b'b'], last_delta=delta), BAD)


@pytest.mark.parametrize('length', [1, -1, -60, 1000, 2147483000])
def test_a_wrong_length_is_refused(client, length):
    assert_refused(client, wire.batch(length=length), BAD + (wire.MESSAGE_TOO_LARGE,))


def test_records_that_end_early_are_refused(client):
    whole = wire.record(0, b'value')
    for cut in range(len(whole)):
        assert_refused(client, wire.batch(records=whole[:cut]), BAD)
    assert_refused(client, wire.batch(records=whole + b'x'), BAD)
    for varint in (b'\xff', b'\xff' * 5, b'\xff' * 10, b'\x80' * 9 + b'\x01', wire.varint(-5), wire.varint(2147483647)):
        assert_refused(client, wire.batch(records=varint), BAD)
        assert_refused(client, wire.batch(records=varint + whole), BAD)


def test_every_byte_of_a_record_may_be_wrong_without_harm(node, client):
    whole = wire.record(0, b'value', b'key')
    for at in range(len(whole)):
        for value in (0, 1, 0x7f, 0x80, 0xff):
            error, _ = client.produce('rules', wire.batch(records=whole[:at] + bytes([value]) + whole[at + 1:]))
            assert error in BAD + (0,)
    assert node.running()


def test_empty_and_null_records_are_refused(client):
    for records in (b'', None, b'\0', wire.batch()[:60], wire.batch()[:12]):
        error, _ = client.produce('rules', records)
        assert error in BAD + (wire.INVALID_REQUEST,)


def test_several_batches_for_one_partition_are_refused(client):
    assert_refused(client, wire.batch() + wire.batch(), BAD)


def test_markers_and_control_batches_are_not_for_clients(client):
    assert_refused(client, wire.batch(attributes=0x20), BAD)
    # A marker is transactional: without a transactional id the request itself is refused, as Apache Kafka does.
    assert_refused(client, wire.batch(attributes=0x30, producer=(5, 0, -1)), BAD + (wire.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,))


def test_unknown_codecs_are_refused(client):
    for codec in (5, 6, 7):
        assert_refused(client, wire.batch(attributes=codec), BAD + (wire.UNSUPPORTED_COMPRESSION,))
    assert_refused(client, wire.batch(attributes=4, records=b'not zstd'), BAD)


@pytest.mark.parametrize('codec', [1, 2, 3, 4])
def test_damaged_compressed_records_are_refused(client, codec):
    for junk in (b'', b'\0', b'\xff' * 50, b'\x82SNAPPY\0' + b'\0' * 8 + b'\x7f\xff\xff\xff', b'\x04\x22\x4d\x18\x60\x70\x73\xff\xff\xff\x7f', b'\x28\xb5\x2f\xfd' + b'\xff' * 20,
                 zlib.compress(b'x' * 100, wbits=31)[:20]):
        assert_refused(client, wire.batch(attributes=codec, records=junk), BAD)


@pytest.mark.parametrize('acks', [2, 5, -2, 32767, -32768])
def test_acks_are_all_one_or_none(client, acks):
    assert_refused(client, wire.batch(), (wire.INVALID_REQUIRED_ACKS,), acks=acks)


@pytest.mark.parametrize('partition', [-1, 1, 2147483647, -2147483648])
def test_partitions_that_do_not_exist(client, partition):
    assert client.produce('rules', wire.batch(), partition=partition)[0] == wire.UNKNOWN_TOPIC_OR_PARTITION
    assert client.produce('nothing-here..', wire.batch(), partition=partition)[0] in (wire.UNKNOWN_TOPIC_OR_PARTITION, wire.INVALID_TOPIC)
    assert client.fetch('rules', 0, partition=partition)[2][0][1] == wire.UNKNOWN_TOPIC_OR_PARTITION
    assert client.list_offset('rules', -1, partition=partition)[0] == wire.UNKNOWN_TOPIC_OR_PARTITION
    assert client.delete_records('rules', 0, partition=partition)[1] == wire.UNKNOWN_TOPIC_OR_PARTITION


def test_a_record_above_the_limit_is_too_large(client):
    assert_refused(client, wire.batch([b'x' * 1048600]), (wire.MESSAGE_TOO_LARGE,))


def test_base_offsets_are_the_brokers_to_give(client):
    for base in (12345, -1, -2**63, 2**63 - 1):
        assert_refused(client, wire.batch(base=base), BAD)


@pytest.mark.parametrize('time', [-1, 0, 2**62, 2**63 - 1])
def test_odd_timestamps_do_no_harm(client, time):
    error, _ = client.produce('rules', wire.batch(time=time))
    assert error in (0, 32) + BAD
    client.list_offset('rules', time)


def test_without_acks_an_error_closes_the_connection(node):
    with wire.Client(node.port) as c:
        c.send_produce('rules', wire.batch(crc=1), acks=0)
        assert c.socket.recv(1) == b''


# ---- bombs: small compressed batches that unpack to gigabytes -----------------------------------------------

GIANT = wire.varint(2147483000) + b'\0\0\0\x01' + wire.varint(2147480000)  # one record, two gigabytes of value
GIB10 = 10 << 30


def zstd_bomb():
    """A raw block with the record's head, then run-length blocks of 128 KiB, four bytes each."""
    blocks = struct.pack('<I', len(GIANT) << 3)[:3] + GIANT
    blocks += (struct.pack('<I', (131072 << 3) | 2)[:3] + b'\0') * (GIB10 // 131072 - 1)
    blocks += struct.pack('<I', (131072 << 3) | 3)[:3] + b'\0'
    return b'\x28\xb5\x2f\xfd\x00\x58' + blocks


def lz4_bomb():
    def block(head, size):
        match = size - len(head) - 5
        n = match - 4 - 15
        literals = bytes([0xf0 | 15, len(head) - 15]) if len(head) >= 15 else bytes([len(head) << 4 | 15])
        return literals + head + b'\x01\x00' + b'\xff' * (n // 255) + bytes([n % 255]) + b'\x50' + b'\0' * 5
    first, rest = block(GIANT + b'\0', 4 << 20), block(b'\0', 4 << 20)
    return b'\x04\x22\x4d\x18\x60\x70\x73' + b''.join(struct.pack('<I', len(b)) + b for b in [first] + [rest] * 60) + b'\0\0\0\0'


def gzip_bomb():
    z = zlib.compressobj(9, wbits=31)
    out, zeros = z.compress(GIANT), b'\0' * (1 << 20)
    while len(out) < 1000000:
        out += z.compress(zeros)
    return out + z.flush()


def snappy_bomb():
    """Says that it holds four gigabytes: one literal, then copies of 64 bytes from one back."""
    return b'\xff\xff\xff\xff\x0f' + bytes([len(GIANT) << 2]) + GIANT + b'\0\0' + b'\xfe\x01\x00' * 330000


def snappy_blocks_bomb():
    """The framing of Java's clients, each block 16 MiB."""
    copies = (16 << 20) // 64
    raw = b'\x80\x80\x80\x08' + b'\x00\x00' + b'\xfe\x01\x00' * (copies - 1) + bytes([62 << 2 | 2]) + b'\x01\x00'
    return b'\x82SNAPPY\0\0\0\0\1\0\0\0\1' + struct.pack('>i', len(raw)) + raw


@pytest.mark.parametrize('codec,make', [(1, gzip_bomb), (2, snappy_bomb), (2, snappy_blocks_bomb), (3, lz4_bomb), (4, zstd_bomb)])
def test_a_bomb_is_refused_in_bounded_memory(node, client, codec, make):
    bomb = make()
    assert len(bomb) < 1048000, len(bomb)
    records = wire.batch(attributes=codec, records=bomb)
    assert_refused(client, records, BAD + (wire.MESSAGE_TOO_LARGE,))
    before = node.memory_kib()[1]
    for _ in range(3):
        assert_refused(client, records, BAD + (wire.MESSAGE_TOO_LARGE,))
    if not kraft.SANITIZED:
        assert node.memory_kib()[1] - before < 32768, 'snappy unpacks a block at a time, at most some 20 MiB; the others through a window'
        assert node.memory_kib()[1] < 96 * 1024


def test_a_bomb_of_many_records_is_refused(node, client):
    one = wire.record(0, b'')
    count = 60000000
    z = zlib.compressobj(9, wbits=31)
    out, block, n = b'', one * 100000, 0
    while len(out) < 900000 and n < count:
        out += z.compress(block)
        n += 100000
    out += z.flush()
    records = wire.batch(attributes=1, records=out, count=n, last_delta=n - 1)
    error, _ = client.produce('rules', records)
    assert error in BAD + (wire.MESSAGE_TOO_LARGE, 0)
    assert kraft.SANITIZED or node.memory_kib()[1] < 96 * 1024
