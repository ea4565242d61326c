# SPDX-License-Identifier: Apache-2.0
"""A full disk: produce is refused with a clear error, the rest works, and all heals without a restart. And a disk that turns read-only."""
import os
import shutil
import subprocess
import tempfile
import time

import pytest

import kraft
import wire

SIZE = 64 << 20


def run(*args):
    return subprocess.run(args, capture_output=True, text=True)


class Disk:
    """A small file system of its own."""

    def __init__(self, kind):
        self.root = tempfile.mkdtemp(prefix='kraft-disk-')
        self.path = os.path.join(self.root, 'mounted')
        os.mkdir(self.path)
        if kind == 'tmpfs':
            done = run('mount', '-t', 'tmpfs', '-o', f'size={SIZE}', 'tmpfs', self.path)
        else:
            image = os.path.join(self.root, 'image')
            with open(image, 'wb') as f:
                f.truncate(SIZE)
            done = run('mkfs.ext4', '-q', '-m', '0', image)
            done = done if done.returncode else run('mount', '-o', 'loop', image, self.path)
        self.mounted = done.returncode == 0
        if not self.mounted:
            shutil.rmtree(self.root)
            pytest.skip(f'no {kind} can be mounted here: {done.stderr.strip()}')

    def free(self):
        s = os.statvfs(self.path)
        return s.f_bavail * s.f_frsize

    def fill(self, leave=0):
        """Takes the rest of the space; gives the file to remove again."""
        path = os.path.join(self.path, 'ballast')
        with open(path, 'ab') as f:
            for size in (1 << 20, 1 << 16, 4096):
                try:
                    while self.free() >= leave + size:
                        f.write(b'\1' * size)
                        f.flush()
                except OSError:
                    pass
        return path

    def remount(self, options):
        return run('mount', '-o', f'remount,{options}', self.path).returncode == 0

    def remove(self):
        run('umount', '-l', self.path)
        shutil.rmtree(self.root, ignore_errors=True)


@pytest.fixture(params=['tmpfs', 'ext4'])
def disk(request):
    d = Disk(request.param)
    yield d
    d.remove()


@pytest.fixture
def node(cluster, disk):
    n = cluster.add(1, extra={'log.segment.bytes': 4 << 20, 'log.retention.check.interval.ms': 500, 'file.delete.delay.ms': 100, 'log.segment.delete.delay.ms': 100})
    n.data = os.path.join(disk.path, 'data')
    n.format(cluster.cluster_id, '--standalone')
    return n.start()


RECORDS = wire.batch([b'f' * 100000], time=int(time.time() * 1000))


def produce_until_full(client, topic):
    """Offsets that were acked; ends with KAFKA_STORAGE_ERROR."""
    acked = []
    for _ in range(2000):
        error, offset = client.produce(topic, RECORDS)
        if error:
            assert error == wire.STORAGE_ERROR, error
            return acked
        acked.append(offset)
    raise AssertionError('the disk did not become full')


def assert_all_there(client, topic, start, end):
    at = start
    while at < end:
        _, _, answers = client.fetch(topic, at, max_bytes=1 << 22, partition_bytes=1 << 22)
        _, error, _, records = answers[0]
        assert error == 0 and records, (at, error)
        pos = 0
        while pos < len(records):
            assert int.from_bytes(records[pos:pos + 8], 'big') == at
            assert records[pos + 21:pos + 12 + int.from_bytes(records[pos + 8:pos + 12], 'big')] == RECORDS[21:], f'other bytes at offset {at}'
            pos += 12 + int.from_bytes(records[pos + 8:pos + 12], 'big')
            at += 1
    assert at == end


def test_a_full_disk_refuses_produce_and_serves_the_rest(node, disk):
    with wire.Client(node.port) as c:
        assert {e for _, e, _ in c.create_topics(['filled', 'other'])} == {0}
        acked = produce_until_full(c, 'filled')
        assert acked == list(range(len(acked))) and len(acked) > 100
        for _ in range(50):
            assert c.produce('filled', RECORDS)[0] == wire.STORAGE_ERROR
        log = open(node.log_path).read()
        lines = [line for line in log.splitlines() if 'full' in line.lower() or 'space' in line.lower()]
        assert 1 <= len(lines) <= 5, f'{len(lines)} lines about the disk:\n' + '\n'.join(lines[:10])
        assert c.end_offset('filled') == len(acked)
        assert_all_there(c, 'filled', 0, len(acked))
        assert kraft.admin(node.address, 'topics', 'list').returncode == 0
        assert kraft.admin(node.address, 'topics', 'describe', '--topic', 'filled').returncode == 0
        # Deleting records gives space back, and produce works again, without a restart.
        keep = len(acked) // 2
        assert c.delete_records('filled', keep) == (keep, 0)
        kraft.wait_for('space', lambda: disk.free() > 8 << 20, 15, 0.05)
        kraft.wait_for('produce', lambda: c.produce('filled', RECORDS)[0] == 0, 10, 0.05)
        end = c.end_offset('filled')
        assert_all_there(c, 'filled', keep, end)
    node.stop()
    node.start()
    with wire.Client(node.port) as c:
        assert_all_there(c, 'filled', keep, end)
        # A topic can be deleted while the disk is full.
        produce_until_full(c, 'filled')
        assert c.delete_topics(['filled'])[0][1] == 0
        kraft.wait_for('space', lambda: disk.free() > 30 << 20, 15, 0.05)
        kraft.wait_for('produce', lambda: c.produce('other', RECORDS)[0] == 0, 10, 0.05)
    node.stop()


def test_a_kill_on_a_full_disk_can_be_recovered(node, disk):
    with wire.Client(node.port) as c:
        c.create_topics(['filled'])
        ballast = disk.fill(leave=20 << 20)
        acked = produce_until_full(c, 'filled')
    disk.fill()
    node.kill()
    node.start()
    with wire.Client(node.port) as c:
        assert_all_there(c, 'filled', 0, len(acked))
        os.unlink(ballast)
        kraft.wait_for('produce', lambda: c.produce('filled', RECORDS)[0] == 0, 10, 0.05)
        assert c.end_offset('filled') == len(acked) + 1
    node.stop()


def test_admin_requests_heal_when_space_comes_back(node, disk):
    with wire.Client(node.port, timeout=40) as c:
        ballast = disk.fill()
        answers = [c.create_topics([f't{i}'], timeout=2000)[0][1] for i in range(20)]
        assert node.running(), node.log_tail()
        assert set(answers) <= {0, 7, wire.STORAGE_ERROR}, answers
        kraft.live_brokers(node.port)
        os.unlink(ballast)
        kraft.wait_for('a topic', lambda: c.create_topics(['later'], timeout=5000)[0][1] in (0, wire.TOPIC_EXISTS), 20, 0.1)
        kraft.wait_for('produce', lambda: c.produce('later', RECORDS)[0] == 0, 10, 0.05)
    assert 'no longer the active controller' not in open(node.log_path).read()
    node.stop()


def test_a_disk_that_turns_read_only_is_said_and_can_be_started_again(cluster):
    """What ext4 does after an error of the device: nothing can be written any more until it is mounted anew."""
    disk = Disk('ext4')
    try:
        n = cluster.add(1)
        n.data = os.path.join(disk.path, 'data')
        n.format(cluster.cluster_id, '--standalone')
        n.start()
        with wire.Client(n.port) as c:
            assert c.create_topics(['kept'])[0][1] == 0
            for i in range(20):
                assert c.produce('kept', RECORDS) == (0, i)
            assert run('mount', '-o', 'remount,abort', disk.path).returncode == 0
            try:
                for _ in range(50):
                    if c.produce('kept', RECORDS)[0] != 0:
                        break
            except OSError:
                pass  # the node has stopped
        kraft.wait_for('a word about it', lambda: any(w in open(n.log_path).read().lower() for w in ('read-only', 'offline', 'input/output')), 15, 0.1)
        n.kill()
        run('umount', '-l', disk.path)
        image = os.path.join(disk.root, 'image')
        kraft.wait_for('a clean file system', lambda: run('fsck.ext4', '-fy', image).returncode in (0, 1), 10, 0.2)
        assert run('mount', '-o', 'loop', image, disk.path).returncode == 0
        n.start()
        with wire.Client(n.port) as c:
            assert_all_there(c, 'kept', 0, c.end_offset('kept'))  # nothing was asked to be flushed: a prefix
        n.stop()
    finally:
        for n in cluster.nodes:
            n.kill()
        disk.remove()
