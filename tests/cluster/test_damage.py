# SPDX-License-Identifier: Apache-2.0
"""Files that are missing, cut or full of junk when a node starts: it rebuilds what can be rebuilt and names what cannot."""
import os
import random
import shutil
import time

import pytest

import kraft
import wire

BATCHES = 40
NOW = int(time.time() * 1000)


def value(i):
    return b'%d ' % i + b'd' * 60000


class Prepared:
    """A node's directory after a clean stop and after a kill, to be damaged again and again."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.node = n = cluster.add(1, extra={'log.segment.bytes': 1 << 20})
        n.format(cluster.cluster_id, '--standalone')
        n.start()
        with wire.Client(n.port) as c:
            assert c.create_topics(['data', 'empty'])[0][1] == 0
            for i in range(BATCHES):
                assert c.produce('data', wire.batch([value(i)], time=NOW + i, producer=(0, 0, i))) == (0, i)
        n.stop()
        shutil.copytree(n.data, n.data + '.clean')
        n.start()
        n.kill()
        shutil.copytree(n.data, n.data + '.killed')

    def restore(self, how):
        self.node.kill()
        shutil.rmtree(self.node.data)
        shutil.copytree(f'{self.node.data}.{how}', self.node.data)
        open(self.node.log_path, 'w').close()

    def files(self, how):
        top = f'{self.node.data}.{how}'
        for at, _, names in os.walk(top):
            yield from (os.path.relpath(os.path.join(at, name), top) for name in names)


@pytest.fixture(scope='module')
def prepared():
    with kraft.Cluster() as c:
        yield Prepared(c)


def remove(path):
    os.unlink(path)


def empty(path):
    open(path, 'w').close()


def half(path):
    os.truncate(path, os.path.getsize(path) // 2)


def junk(path):
    size = max(os.path.getsize(path), 100)
    with open(path, 'wb') as f:
        f.write(random.Random(size).randbytes(size))


def zeros(path):
    size = max(os.path.getsize(path), 12)
    with open(path, 'wb') as f:
        f.write(b'\0' * size)


def flip(path):
    size = os.path.getsize(path)
    if size:
        with open(path, 'r+b') as f:
            f.seek(size // 3)
            old = f.read(1)
            f.seek(size // 3)
            f.write(bytes([old[0] ^ 0x55]))


def entry(path):
    """Cuts an index at the end of an entry, so that it looks whole."""
    os.truncate(path, max(os.path.getsize(path) - (12 if path.endswith('.timeindex') else 8), 0))


DAMAGES = [remove, empty, half, junk, zeros, flip, entry]


def read_back(client, expected=BATCHES):
    """Checks that records 0 to `expected` are there, each at its offset; gives the end offset."""
    at = 0
    while at < expected:
        _, _, answers = client.fetch('data', at, max_bytes=1 << 22, partition_bytes=1 << 22)
        _, error, _, records = answers[0]
        assert error == 0 and records, (at, error)
        pos = 0
        while pos < len(records):
            size = 12 + int.from_bytes(records[pos + 8:pos + 12], 'big')
            assert int.from_bytes(records[pos:pos + 8], 'big') == at
            assert value(at) in records[pos:pos + size], f'other bytes at offset {at}'
            pos += size
            at += 1
    return client.end_offset('data')


def start_and_check(prepared, what):
    n = prepared.node
    n.start()
    with wire.Client(n.port) as c:
        assert read_back(c) == BATCHES, what
        error, _, offset = c.list_offset('data', NOW + 25)
        assert (error, offset) == (0, 25), what
        # The producer goes on where it was; nothing is stored twice.
        assert c.produce('data', wire.batch([value(BATCHES - 1)], time=NOW + BATCHES - 1, producer=(0, 0, BATCHES - 1))) == (0, BATCHES - 1), what
        assert c.produce('data', wire.batch([value(BATCHES)], time=NOW + BATCHES, producer=(0, 0, BATCHES))) == (0, BATCHES), what
        assert c.produce('empty', wire.batch()) == (0, 0), what
    n.stop()


def derived(path):
    """What can be made from the records again."""
    name = os.path.basename(path)
    if path.startswith('__cluster_metadata-0/'):
        return name.endswith(('.index', '.timeindex', '.raftindex'))
    return name.endswith(('.index', '.timeindex', '.snapshot')) or name in (
        'recovery-point-offset-checkpoint', 'replication-offset-checkpoint', 'log-start-offset-checkpoint', '.kafka_cleanshutdown', 'leader-epoch-checkpoint',
        'partition.metadata', '.kraft-reserve', '.kraft-manifest', '.lock', 'manifest')


@pytest.mark.parametrize('how', ['clean', 'killed'])
@pytest.mark.parametrize('damage', DAMAGES, ids=lambda d: d.__name__)
def test_what_is_derived_is_made_again(prepared, how, damage):
    for path in sorted(p for p in prepared.files(how) if derived(p)):
        prepared.restore(how)
        damage(os.path.join(prepared.node.data, path))
        try:
            start_and_check(prepared, path)
        except AssertionError as e:
            raise AssertionError(f'{path}: {e}\n{prepared.node.log_tail()}') from None


@pytest.mark.parametrize('how', ['clean', 'killed'])
@pytest.mark.parametrize('damage', DAMAGES, ids=lambda d: d.__name__)
def test_what_cannot_be_made_again_is_named(prepared, how, damage):
    """Identity, votes, the metadata log and its snapshots: all is there, or the start ends and says which file is bad."""
    n = prepared.node
    for path in sorted(p for p in prepared.files(how) if not derived(p) and not p.startswith('data-0') and not p.startswith('empty-0')):
        prepared.restore(how)
        damage(os.path.join(n.data, path))
        n.start(wait=False)
        end = time.monotonic() + 10
        while True:
            try:
                if n.process.poll() is not None or 1 in kraft.live_brokers(n.port):
                    break
            except OSError:
                pass
            assert time.monotonic() < end, f'{path}: neither up nor ended\n{n.log_tail()}'
            time.sleep(0.01)
        if n.process.poll() is None:
            with wire.Client(n.port) as c:
                try:
                    assert read_back(c) == BATCHES
                except AssertionError as e:
                    raise AssertionError(f'{path}: {e}\n{n.log_tail()}') from None
            n.stop()
        else:
            assert n.process.returncode > 0, f'{path}: killed by signal {n.process.returncode}\n{n.log_tail()}'
            log = n.log_tail()
            assert os.path.basename(path) in log or path.split('/')[0] in log or (path == 'meta.properties' and 'not formatted' in log), f'{path} is not named:\n{log}'
        n.kill()


@pytest.mark.parametrize('how', ['clean', 'killed'])
def test_a_torn_tail_is_cut_and_said(prepared, how):
    n = prepared.node
    for cut in (1, 30, 60, 61, 70000):
        prepared.restore(how)
        last = max(f for f in os.listdir(os.path.join(n.data, 'data-0')) if f.endswith('.log'))
        path = os.path.join(n.data, 'data-0', last)
        if os.path.getsize(path) <= cut:
            continue
        os.truncate(path, os.path.getsize(path) - cut)
        n.start()
        with wire.Client(n.port) as c:
            kept = c.end_offset('data')
            assert BATCHES - 3 < kept < BATCHES, (how, cut, kept, n.log_tail())
            assert read_back(c, kept) == kept
            assert c.produce('data', wire.batch([value(kept)], time=NOW))[1] == kept
        assert 'data-0' in n.log_tail(100), n.log_tail()
        n.stop()


def test_a_flipped_byte_in_the_records_is_never_served_as_good(prepared):
    n = prepared.node
    for how in ('clean', 'killed'):
        prepared.restore(how)
        first = min(f for f in os.listdir(os.path.join(n.data, 'data-0')) if f.endswith('.log'))
        flip(os.path.join(n.data, 'data-0', first))
        n.start()
        with wire.Client(n.port) as c:
            at = 0
            while at < c.end_offset('data'):
                _, _, answers = c.fetch('data', at, max_bytes=1, partition_bytes=1)
                if answers[0][1] or not answers[0][3]:
                    break  # said, not served
                records = answers[0][3]
                good = wire.crc32c(records[21:]) == int.from_bytes(records[17:21], 'big')
                assert not good or value(at) in records
                at += 1
        n.stop()


def test_junk_beside_the_partitions_is_left_alone(prepared):
    n = prepared.node
    prepared.restore('killed')
    for name in ('lost+found', 'data', 'data-', 'data--1', 'data-x', '-0', 'data-00', 'ü-0', 'a' * 200 + '-0', '.hidden-0'):
        os.mkdir(os.path.join(n.data, name))
    open(os.path.join(n.data, 'file-0'), 'w').close()
    open(os.path.join(n.data, 'data-0', 'notes.txt'), 'w').close()
    open(os.path.join(n.data, 'data-0', '00000000000000000099.log.swap'), 'w').close()
    os.mkdir(os.path.join(n.data, 'data-0', '00000000000000000005.index.d'))
    start_and_check(prepared, 'junk')
    assert os.path.isdir(os.path.join(n.data, 'lost+found'))
    assert os.path.exists(os.path.join(n.data, 'data-0', 'notes.txt'))
