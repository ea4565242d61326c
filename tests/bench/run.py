#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Kraft beside Apache Kafka and the null broker: the same load, in turn, on the same machine, in one run.

Usage: tests/bench/run.py [--rows P1,P3,...] [--pairs 5] [--peers kraft,kafka,null] [--build DIR] [--json FILE] [--markdown FILE]

A row is run by every peer in turn (A B C, A B C, ...), each time on a fresh topic. What is printed is the median of the
ratios of neighbouring runs, and the median and range of each figure. docs/benchmarks.md has the method.
"""
import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MIB = 1 << 20
HOST = '127.0.0.1'

# name: (what it is, load options, bytes that the run writes, unit that counts)
PRODUCE = {
    'P1': ('produce 1 MiB batches, 5 in flight', ['--batch-bytes', MIB, '--record-bytes', 1024, '--window', 5, '--requests', 1200], 1200 * MIB),
    'P1b': ('produce 64 partitions x 16 KiB in one request, 5 in flight',
           ['--batch-bytes', 16384, '--record-bytes', 1024, '--window', 5, '--partitions', 64, '--per-request', 64, '--requests', 800], 800 * MIB),
    'P3a': ('produce 16 KiB batches, 1 connection, 5 in flight', ['--batch-bytes', 16384, '--record-bytes', 1024, '--window', 5, '--requests', 30000], 480 * MIB),
    'P3b': ('produce 16 KiB batches, 100 connections, 1 in flight each',
            ['--batch-bytes', 16384, '--record-bytes', 1024, '--window', 1, '--conns', 100, '--requests', 40000], 640 * MIB),
    'P4a': ('produce 1 KiB requests, 1 connection, 64 in flight', ['--batch-bytes', 1024, '--record-bytes', 1024, '--window', 64, '--requests', 300000], 310 * MIB),
    'P4b': ('produce 1 KiB requests, 1 connection, 1 in flight', ['--batch-bytes', 1024, '--record-bytes', 1024, '--window', 1, '--requests', 20000], 21 * MIB),
    'P4c': ('produce 1 KiB requests, 100 connections, 1 in flight each',
            ['--batch-bytes', 1024, '--record-bytes', 1024, '--window', 1, '--conns', 100, '--requests', 60000], 63 * MIB),
}
FEWER_FOR_KAFKA = {'P4a': 40000, 'P4b': 10000}  # requests; its rates are so low that the rest only costs time
ROWS = list(PRODUCE) + ['F1', 'L1', 'M1', 'S1']


def wait_port(port, seconds, alive):
    """Seconds until ApiVersions is answered on the port, polled every millisecond."""
    start = time.monotonic()
    request = b'\x00\x00\x00\x0e' + b'\x00\x12\x00\x00' + b'\x00\x00\x00\x07' + b'\x00\x04' + b'ping'
    while time.monotonic() - start < seconds:
        try:
            with socket.create_connection((HOST, port), timeout=1) as s:
                s.settimeout(5)
                s.sendall(request)
                if len(s.recv(4)) == 4 and alive() is None:
                    return time.monotonic() - start
        except OSError:
            time.sleep(0.001)
        if alive() is not None:
            raise SystemExit('a broker stopped while starting')
    raise SystemExit(f'no answer on port {port} in {seconds} s')


def free_ports():
    """Two ports beside each other that nobody listens on: several runs may share a machine."""
    while True:
        with socket.socket() as a, socket.socket() as b:
            a.bind((HOST, 0))
            port = a.getsockname()[1]
            try:
                b.bind((HOST, port + 1))
                return port
            except OSError:
                continue


class Peer:
    """A broker process on a fresh directory."""
    name = ''

    def __init__(self, opts, work):
        self.opts, self.dir, self.port = opts, os.path.join(work, self.name), free_ports()
        self.process, self.log = None, None

    def command(self):
        raise NotImplementedError

    def prepare(self):
        """Makes the directory and what must be there before the first start."""

    def start(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        self.prepare()
        with open(os.path.join(self.dir, 'out.log'), 'wb') as log:
            begun = time.monotonic()
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, start_new_session=True)
        wait_port(self.port, 60, self.process.poll)
        return time.monotonic() - begun

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
        shutil.rmtree(self.dir, ignore_errors=True)

    def cpu(self):
        """CPU seconds of all threads, exact to the nanosecond where the kernel tells."""
        base, total = f'/proc/{self.process.pid}/task', 0
        for task in os.listdir(base):
            try:
                with open(f'{base}/{task}/schedstat') as f:
                    total += int(f.read().split()[0])
            except OSError:
                pass
        return total / 1e9

    def faults(self):
        """Page faults since the start, minor and major."""
        with open(f'/proc/{self.process.pid}/stat') as f:
            fields = f.read().rsplit(')', 1)[1].split()
        return int(fields[7]) + int(fields[9])

    def memory(self):
        """(RSS, anonymous) in MiB."""
        with open(f'/proc/{self.process.pid}/status') as f:
            fields = dict(line.split(':', 1) for line in f if ':' in line)
        return tuple(int(fields[k].split()[0]) / 1024 for k in ('VmRSS', 'RssAnon'))


class Kraft(Peer):
    name = 'kraft'

    def prepare(self):
        tools = os.path.join(self.opts.build, 'tools')
        config = os.path.join(self.dir, 'server.properties')
        with open(config, 'w') as f:
            f.write(f'process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.port + 1}\n'
                    f'controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers={HOST}:{self.port + 1}\n'
                    f'log.dirs={self.dir}/data\nauto.create.topics.enable=false\nlog.segment.delete.delay.ms=100\n')
        uuid = subprocess.check_output([f'{tools}/kraft-format', 'random-uuid'], text=True).strip()
        subprocess.check_call([f'{tools}/kraft-format', 'format', '--cluster-id', uuid, '--config', config, '--standalone'], stdout=subprocess.DEVNULL)

    def command(self):
        return [os.path.join(self.opts.build, 'tools', 'kraft-server'), os.path.join(self.dir, 'server.properties')]


class Kafka(Peer):
    name = 'kafka'

    def java(self, heap):
        lib = self.opts.kafka
        return ['java', f'-Xms{heap}', f'-Xmx{heap}', '-XX:+UseG1GC', '-XX:MaxGCPauseMillis=20', '-XX:InitiatingHeapOccupancyPercent=35',
                '-cp', f'{lib}/*:{os.path.join(TOP, "tests", "bench", "kafka")}']

    def prepare(self):
        config = os.path.join(self.dir, 'server.properties')
        with open(config, 'w') as f:
            f.write(f'process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.port + 1}\n'
                    f'controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers={HOST}:{self.port + 1}\n'
                    f'log.dirs={self.dir}/data\nauto.create.topics.enable=false\nlog.segment.delete.delay.ms=100\n'
                    'offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n')
        tool = self.java('256m') + ['kafka.tools.StorageTool']
        uuid = subprocess.check_output(tool + ['random-uuid'], text=True, stderr=subprocess.DEVNULL).split()[-1]
        subprocess.check_call(tool + ['format', '-t', uuid, '-c', config, '--standalone'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def command(self):
        return self.java('1g') + ['kafka.Kafka', os.path.join(self.dir, 'server.properties')]


class Null(Peer):
    name = 'null'

    def command(self):
        return [os.path.join(self.opts.build, 'tests', 'bench', 'null_broker'), str(self.port), self.dir]


PEERS = {p.name: p for p in (Kraft, Kafka, Null)}


def fetch_kafka(lib):
    """Apache Kafka's jars by Maven, once."""
    if not os.path.isdir(lib) or not os.listdir(lib):
        os.makedirs(lib, exist_ok=True)
        shutil.copy(os.path.join(TOP, 'tests', 'bench', 'kafka', 'pom.xml'), lib)
        subprocess.check_call(['mvn', '-q', '-B', 'dependency:copy-dependencies', f'-DoutputDirectory={lib}'], cwd=lib)


class Bench:
    def __init__(self, opts):
        self.opts = opts
        self.work = os.path.join(opts.build, 'bench-work')
        self.results, self.topic = {}, 0

    def load(self, peer, mode, *args):
        out = subprocess.run([os.path.join(self.opts.build, 'tests', 'bench', 'load'), mode, '--port', str(peer.port), *map(str, args)],
                             capture_output=True, text=True)
        if out.returncode != 0:
            raise SystemExit(f'{peer.name}: load {mode} {args} failed: {out.stdout}{out.stderr}')
        return json.loads(out.stdout)

    def prime(self, size):
        """Writes and deletes twice the run's volume, so that the pages a run takes are backed by memory already."""
        path = os.path.join(self.work, 'prime')
        block = bytes(8 * MIB)
        with open(path, 'wb', buffering=0) as f:
            for _ in range(max(1, 2 * size // len(block))):
                f.write(block)
        os.unlink(path)

    def new_topic(self):
        self.topic += 1
        return f'bench-{self.topic}'

    def drop_topic(self, peer, topic):
        """Deletes a topic, so that its pages are not written back during the next run."""
        name = topic.encode()
        body = b'\0\x14\0\1\0\0\0\1\0\5bench' + struct.pack('>ih', 1, len(name)) + name + struct.pack('>i', 30000)
        with socket.create_connection((HOST, peer.port), timeout=30) as s:
            s.sendall(struct.pack('>i', len(body)) + body)
            size = struct.unpack('>i', s.recv(4, socket.MSG_WAITALL))[0]
            answer = s.recv(size, socket.MSG_WAITALL)
        error = struct.unpack('>h', answer[-2:])[0]
        if error:
            raise SystemExit(f'{peer.name}: DeleteTopics {topic}: error {error}')

    def timed(self, peer, *args):
        """One run of the generator with what the broker used meanwhile."""
        cpu, faults = peer.cpu(), peer.faults()
        result = self.load(peer, *args)
        cpu, faults = peer.cpu() - cpu, peer.faults() - faults
        result['cpu_s_per_gb'] = cpu / (result['bytes'] / 1e9)
        result['cpu_us_per_request'] = cpu * 1e6 / result['requests']
        result['faults_per_s'] = faults / result['seconds']
        return result

    def produce(self, peer, row, requests=None):
        _, args, size = PRODUCE[row]
        args = list(args)
        requests = requests or (FEWER_FOR_KAFKA.get(row) if peer.name == 'kafka' else None)
        if requests:
            args[args.index('--requests') + 1] = requests
        self.prime(size)
        # the topic is made by a first, tiny run, so that its creation is not in the figures
        topic = self.new_topic()
        setup = list(args)
        setup[setup.index('--requests') + 1] = 64 if '--conns' not in args else 200
        self.load(peer, 'produce', '--topic', topic, '--create', *setup)
        result = self.timed(peer, 'produce', '--topic', topic, '--check', *args)
        self.drop_topic(peer, topic)
        return result

    def fetch(self, peer):
        self.prime(1000 * MIB)
        topic = self.new_topic()
        args = ['--batch-bytes', MIB, '--record-bytes', 1024, '--partitions', 4, '--window', 4, '--requests', 1000]
        self.load(peer, 'produce', '--topic', topic, '--create', *args)
        self.load(peer, 'fetch', '--topic', topic, '--partitions', 4, '--requests', 1000)  # hot
        result = self.timed(peer, 'fetch', '--topic', topic, '--partitions', 4, '--requests', 3000)
        self.drop_topic(peer, topic)
        return result

    def latency(self, peer):
        topic = self.new_topic()
        args = ['--batch-bytes', 1024, '--record-bytes', 1024, '--window', 64, '--rate', 2000]
        self.load(peer, 'produce', '--topic', topic, '--create', *args, '--seconds', 1)
        result = self.timed(peer, 'produce', '--topic', topic, *args, '--seconds', 6)
        if result['achieved'] < 0.995:
            print(f'  {peer.name} kept only {result["achieved"]:.3f} of the rate', file=sys.stderr)
        self.drop_topic(peer, topic)
        return result

    def warm(self, peer):
        """The JVM's share: produce and fetch in the shapes that are measured, before anything is."""
        if peer.name != 'kafka':
            return
        for row, requests in (('P1', 1000), ('P3a', 30000), ('P3b', 40000), ('P4a', 60000), ('P4c', 60000)):
            self.produce(peer, row, requests)
        self.fetch(peer)

    def record(self, row, peer, result):
        result['load'] = os.getloadavg()[0]
        self.results.setdefault(row, {}).setdefault(peer.name, []).append(result)
        show = {k: result[k] for k in ('gb_per_s', 'requests_per_s', 'cpu_s_per_gb', 'cpu_us_per_request', 'faults_per_s', 'us_p50', 'us_p99', 'start_ms', 'rss_mib', 'anon_mib') if k in result}
        print(f'{row} {peer.name}: ' + ' '.join(f'{k}={v:.4g}' for k, v in show.items()), file=sys.stderr, flush=True)

    def save(self):
        if self.opts.json:
            with open(self.opts.json, 'w') as f:
                json.dump(self.results, f, indent=1)

    def run(self):
        os.makedirs(self.work, exist_ok=True)
        rows, names = self.opts.rows, self.opts.peers
        if 'kafka' in names:
            fetch_kafka(self.opts.kafka)
        peers = [PEERS[n](self.opts, self.work) for n in names]
        try:
            for row in ('S1', 'M1'):
                if row not in rows:
                    continue
                for _ in range(3 if row == 'S1' else 1):
                    for peer in peers:
                        if peer.name == 'null':
                            continue
                        seconds = peer.start()
                        if row == 'S1':
                            self.record(row, peer, {'start_ms': seconds * 1000})
                        else:
                            time.sleep(self.opts.idle)
                            rss, anon = peer.memory()
                            self.record(row, peer, {'rss_mib': rss, 'anon_mib': anon})
                        peer.stop()
            loads = [r for r in rows if r not in ('S1', 'M1')]
            if loads:
                for peer in peers:
                    peer.start()
                    self.warm(peer)
                for _ in range(self.opts.pairs):  # all rows in turn, so that a bad minute does not fall on one row
                    for row in loads:
                        for peer in peers:
                            work = self.fetch if row == 'F1' else self.latency if row == 'L1' else None
                            self.record(row, peer, work(peer) if work else self.produce(peer, row))
                            time.sleep(0.3)
                    self.save()
        finally:
            for peer in peers:
                peer.stop()
            shutil.rmtree(self.work, ignore_errors=True)


FIGURES = [('gb_per_s', 'GB/s', 1), ('requests_per_s', 'requests/s', 1), ('cpu_s_per_gb', 'CPU-s/GB', -1), ('cpu_us_per_request', 'CPU us/request', -1),
           ('faults_per_s', 'page faults/s', -1), ('us_p50', 'p50 us', -1), ('us_p99', 'p99 us', -1), ('us_p999', 'p99.9 us', -1), ('start_ms', 'start ms', -1), ('rss_mib', 'RSS MiB', -1), ('anon_mib', 'anonymous MiB', -1)]


def median_range(values):
    return f'{statistics.median(values):.4g} ({min(values):.4g}-{max(values):.4g})'


# What a first version must reach: row, figure, its name there, how many times Kafka's, how many times the null broker's,
# and whether more or less is better. The mark is Kafka's multiple, or the null broker's where that is easier; rows with
# `both` must reach the null broker's multiple in any case.
MARKS = [('P1', 'gb_per_s', 'P1 GB/s', 2, 0.6, 1, 'both'), ('P1', 'cpu_s_per_gb', 'P2 CPU-s/GB', 0.5, 1.6, -1, ''), ('P3a', 'requests_per_s', 'P3 1 connection, requests/s', 2.5, 0.6, 1, ''),
         ('P3b', 'requests_per_s', 'P3 100 connections, requests/s', 2.5, 0.6, 1, ''), ('P4a', 'requests_per_s', 'P4 requests/s', 5, 0.4, 1, 'both'),
         ('F1', 'gb_per_s', 'F1 GB/s', 1.5, 0.6, 1, 'both'), ('F1', 'cpu_s_per_gb', 'F1 CPU-s/GB', 1, 1.6, -1, ''),
         ('L1', 'us_p50', 'L1 p50 us', 1 / 3, 1.6, -1, ''), ('L1', 'us_p99', 'L1 p99 us', 1 / 3, 1.6, -1, ''), ('L1', 'us_p999', 'L1 p99.9 us', 1 / 3, 1.6, -1, '')]
LIMITS = [('M1', 'rss_mib', 'M1 RSS MiB', 16), ('S1', 'start_ms', 'S1 start ms', 200)]


def median_ratio(results, row, key, other):
    """Median of the ratios of neighbouring runs; None where there is none."""
    mine, theirs = ([r.get(key) for r in results.get(row, {}).get(n, [])] for n in ('kraft', other))
    pairs = [a / b for a, b in zip(mine, theirs) if a is not None and b]
    return statistics.median(pairs) if pairs else None


def verdicts(results):
    def show(v):
        return '' if v is None else f'{v:.3g}'

    lines = ['| goal | kraft / kafka | mark | kraft / null | mark | reached |', '|---|---|---|---|---|---|']
    for row, key, name, vs_kafka, vs_null, sign, both in MARKS:
        a, b = median_ratio(results, row, key, 'kafka'), median_ratio(results, row, key, 'null')
        if a is None and b is None:
            continue
        by_kafka, by_null = a is not None and a * sign >= vs_kafka * sign, b is not None and b * sign >= vs_null * sign
        word = ('both' if by_kafka and by_null else 'by Kafka' if by_kafka else 'by null' if by_null else 'no')
        if both and not by_null:
            word = 'no'
        than = '>=' if sign > 0 else '<='
        lines.append(f'| {name} | {show(a)} | {than} {vs_kafka:.3g} | {show(b)} | {than} {vs_null:.3g} | {word} |')
    for row, key, name, limit in LIMITS:
        values = [r[key] for r in results.get(row, {}).get('kraft', [])]
        if values:
            v = statistics.median(values)
            lines.append(f'| {name}: {v:.3g}, at most {limit} | {show(median_ratio(results, row, key, "kafka"))} | | | | {"yes" if v <= limit else "no"} |')
    return '\n'.join(lines) + '\n'


def markdown(results):
    lines = ['| row | figure | kraft | kafka | null | kraft / kafka | kraft / null |', '|---|---|---|---|---|---|---|']
    for row, peers in results.items():
        for key, label, _ in FIGURES:
            if not any(key in r for runs in peers.values() for r in runs):
                continue
            values = {n: [r[key] for r in runs if key in r] for n, runs in peers.items()}
            def ratio(other):
                mine, theirs = values.get('kraft', []), values.get(other, [])
                pairs = [a / b for a, b in zip(mine, theirs) if b]
                return f'{statistics.median(pairs):.3g}' if pairs else ''
            cells = [median_range(values[n]) if values.get(n) else '' for n in ('kraft', 'kafka', 'null')]
            lines.append(f'| {row} | {label} | {cells[0]} | {cells[1]} | {cells[2]} | {ratio("kafka")} | {ratio("null")} |')
    return '\n'.join(lines) + '\n'


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('--rows', default=','.join(ROWS), help='rows to run: ' + ' '.join(ROWS))
    args.add_argument('--pairs', type=int, default=5, help='how often every peer runs a row')
    args.add_argument('--peers', default='kraft,kafka,null')
    args.add_argument('--build', default=os.path.join(TOP, 'build'), help='build directory')
    args.add_argument('--kafka', default='', help="folder of Apache Kafka's jars; fetched by Maven when it is missing")
    args.add_argument('--idle', type=float, default=60, help='seconds to wait in M1')
    args.add_argument('--json', help='file for every run of every peer')
    args.add_argument('--markdown', help='file for the table')
    opts = args.parse_args()
    opts.rows, opts.peers = opts.rows.split(','), opts.peers.split(',')
    opts.build = os.path.abspath(opts.build)
    opts.kafka = opts.kafka or os.path.join(opts.build, 'kafka-lib')
    with open('/proc/sys/net/ipv4/tcp_congestion_control') as f:
        congestion = f.read().strip()
    if congestion != 'cubic':
        print(f'congestion control is {congestion}: set net.ipv4.tcp_congestion_control=cubic, or loopback is paced', file=sys.stderr)
    bench = Bench(opts)
    try:
        bench.run()
    finally:
        bench.save()
        table = verdicts(bench.results) + '\n' + markdown(bench.results)
        if opts.markdown:
            with open(opts.markdown, 'w') as f:
                f.write(table)
        print(table)


if __name__ == '__main__':
    main()
