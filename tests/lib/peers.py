# SPDX-License-Identifier: Apache-2.0
"""Three stock clients with one face: kcat, confluent-kafka and the Java client; each writes and reads a partition.

write(topic, records, codec, acks) and read(topic, count) take and give records as records.py has them; write_text and
read_text do the same with the lines of a file. Topics have one partition; reading checks that offsets are dense from 0.
"""
import json
import os
import subprocess
import tempfile
import time

from confluent_kafka import Consumer, Producer, TopicPartition, OFFSET_BEGINNING

import kafka
import kraft
import records

LARGE = 12000000  # bytes of a record that every peer lets through


def make_topic(node, name, **options):
    kraft.admin(node.address, 'topics', 'create', '--topic', name, '--partitions', '1', *[a for k, v in options.items() for a in ('--config', f'{k.replace("_", ".")}={v}')])


class Confluent:
    """librdkafka by its Python binding."""
    name = 'confluent'

    def __init__(self, node):
        self.address = node.address

    def send(self, topic, items, codec, acks, **config):
        failed = []
        p = Producer({'bootstrap.servers': self.address, 'compression.type': codec, 'acks': acks, 'linger.ms': 20, 'queue.buffering.max.messages': 2000000,
                      'message.max.bytes': LARGE, **config})
        for n, (key, value, headers) in enumerate(items):
            p.produce(topic, value, key, 0, on_delivery=lambda e, m: e and failed.append(e), headers=headers or None)
            if n % 1000 == 0:
                p.poll(0)
        assert p.flush(60) == 0 and not failed, failed[0]

    def receive(self, topic, count):
        c = Consumer({'bootstrap.servers': self.address, 'group.id': 'unused', 'enable.auto.commit': False, 'fetch.message.max.bytes': LARGE, 'fetch.wait.max.ms': 50})
        c.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        got, last = [], time.monotonic()
        while len(got) < count:
            batch = c.consume(min(10000, count - len(got)), 1)
            for m in batch:
                assert m.error() is None, m.error()
                assert m.offset() == len(got)
                got.append(m)
            last = time.monotonic() if batch else last
            assert time.monotonic() < last + 30, f'only {len(got)} of {count} records came'
        c.close()
        return got

    def write(self, topic, items, codec='none', acks='all'):
        self.send(topic, items, codec, acks)

    def read(self, topic, count):
        return [(m.key(), m.value(), m.headers() or []) for m in self.receive(topic, count)]

    def write_text(self, topic, path, codec='none', acks='all'):
        with open(path, 'rb') as f:
            self.send(topic, ((None, line[:-1], None) for line in f), codec, acks)

    def read_text(self, topic, count, path):
        with open(path, 'wb') as f:
            f.writelines(m.value() + b'\n' for m in self.receive(topic, count))

    def close(self):
        pass


class Kcat:
    """kcat; it writes what its command line can say: headers that all records of a run share, nulls in place of empties."""
    name = 'kcat'

    def __init__(self, node):
        self.address = node.address

    def run(self, *args, **options):
        return subprocess.run(['kcat', '-b', self.address, *args], check=True, timeout=90, **{'stdout': subprocess.PIPE, **options}).stdout

    @staticmethod
    def sayable(count):
        """Records that kcat can write: in the first half keys or values may be empty, in the second null instead; each half has headers of its own."""
        out = []
        for i in range(count):
            first = i < count // 2
            blank = b'' if first else None
            headers = [('half', b'first'), ('empty', b''), ('null', None)] if first else [('half', b'second')]
            out.append((blank if i % 7 == 0 else b'key-%d' % i, blank if i % 11 == 0 else b'value-%d ' % i * (i % 5 + 1), headers))
        return out

    def write(self, topic, items, codec='none', acks='all'):
        half = len(items) // 2
        for part, extra in ((items[:half], []), (items[half:], ['-Z'])):
            lines = b''.join((k or b'') + b'|' + (v or b'') + b'\n' for k, v, _ in part)
            headers = [a for name, v in part[0][2] for a in ('-H', name if v is None else f'{name}={v.decode()}')]
            self.run('-P', '-t', topic, '-p', '0', '-K', '|', '-z', codec, '-X', f'acks={acks}', *headers, *extra, input=lines)

    def read(self, topic, count):
        out = []
        for line in self.run('-C', '-t', topic, '-p', '0', '-o', 'beginning', '-c', str(count), '-J', '-q').splitlines():
            m = json.loads(line)
            assert m['offset'] == len(out) and m['topic'] == topic and m['partition'] == 0
            h = m.get('headers', [])
            out.append(tuple(v if v is None else v.encode() for v in (m['key'], m['payload'])) + ([(n, v if v is None else v.encode()) for n, v in zip(h[::2], h[1::2])],))
        return out

    def write_text(self, topic, path, codec='none', acks='all'):
        self.run('-P', '-t', topic, '-p', '0', '-z', codec, '-X', f'acks={acks}', '-X', 'queue.buffering.max.messages=2000000', '-l', path)

    def read_text(self, topic, count, path):
        with open(path, 'wb') as f:
            self.run('-C', '-t', topic, '-p', '0', '-o', 'beginning', '-c', str(count), '-q', '-f', '%s\n', stdout=f)

    def close(self):
        pass


class Java:
    """The Java client, one process for all that is asked (tests/clients/java/ClientPeer.java)."""
    name = 'java'

    def __init__(self, node):
        classes = kafka.compile_source(os.path.join(kraft.TOP, 'tests', 'clients', 'java', 'ClientPeer.java'), os.path.join(kraft.BUILD, 'java-classes'))
        self.process = subprocess.Popen(['java', '-Xmx1g', '-XX:+UseSerialGC', '-cp', f'{classes}:{kafka.classpath()}', 'ClientPeer', node.address],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.folder = tempfile.TemporaryDirectory(prefix='kraft-java-')

    def ask(self, *words):
        self.process.stdin.write('\t'.join(words) + '\n')
        self.process.stdin.flush()
        seen = []
        for line in self.process.stdout:
            if line.startswith('> '):
                assert line.startswith('> ok '), f'{words}: {line}{"".join(seen[-20:])}'
                return int(line[5:])
            seen.append(line)
        raise AssertionError(f'{words}: the Java client is gone')

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def settings(self, codec, acks):
        return [f'compression.type={codec}', f'acks={acks}', f'enable.idempotence={"true" if acks == "all" else "false"}', f'max.request.size={LARGE}', f'buffer.memory={4 * LARGE}']

    def write(self, topic, items, codec='none', acks='all'):
        assert self.ask('write', topic, 'records', records.write_lines(self.path('in'), items), *self.settings(codec, acks)) == len(items)

    def read(self, topic, count):
        assert self.ask('read', topic, 'records', self.path('out'), str(count)) == count
        return records.read_lines(self.path('out'))

    def write_text(self, topic, path, codec='none', acks='all'):
        self.ask('write', topic, 'text', path, *self.settings(codec, acks))

    def read_text(self, topic, count, path):
        assert self.ask('read', topic, 'text', path, str(count)) == count

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
        self.folder.cleanup()


def same(got, want):
    """Asserts equality and names the first record that differs."""
    if got != want:
        for i, (a, b) in enumerate(zip(got, want)):
            assert a == b, f'record {i} differs'
        assert len(got) == len(want)
