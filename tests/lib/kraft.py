# SPDX-License-Identifier: Apache-2.0
"""Real Kraft processes for tests: format, start, stop, kill, and what to ask them."""
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('KRAFT_BUILD', os.path.join(TOP, 'build'))
HOST = '127.0.0.1'
SANITIZED = any(k in os.environ for k in ('ASAN_OPTIONS', 'TSAN_OPTIONS'))  # memory is then not measured


def tool(name):
    return os.path.join(BUILD, 'tools', name)


def free_ports(count):
    """Ports that nobody listens on now, from below the ephemeral range so that no client takes them meanwhile."""
    found = []
    while len(found) < count:
        port = random.randrange(15000, 32000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind((HOST, port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def random_uuid():
    return subprocess.check_output([tool('kraft-format'), 'random-uuid'], text=True).strip()


def call(port, api, version, body, timeout=2.0):
    """One request with a header of the old form (v1); the answer without its correlation id. OSError while nobody answers."""
    request = api.to_bytes(2, 'big') + version.to_bytes(2, 'big') + b'\x00\x00\x00\x07\x00\x04ping' + body
    with socket.create_connection((HOST, port), timeout=timeout) as s:
        s.settimeout(timeout)
        s.sendall(len(request).to_bytes(4, 'big') + request)
        size = int.from_bytes(receive(s, 4), 'big')
        return receive(s, size)[4:]


def receive(s, size):
    got = b''
    while len(got) < size:
        more = s.recv(size - len(got))
        if not more:
            raise OSError('closed')
        got += more
    return got


def api_versions(port, timeout=2.0):
    """[(api key, minimum, maximum)] of a listener."""
    answer = call(port, 18, 0, b'', timeout)
    count = int.from_bytes(answer[2:6], 'big')
    return [tuple(int.from_bytes(answer[6 + 6 * i + 2 * k:8 + 6 * i + 2 * k], 'big') for k in range(3)) for i in range(count)]


def live_brokers(port):
    """Node ids that Metadata lists: registered and not fenced."""
    answer, ids, at = call(port, 3, 1, b'\0\0\0\0'), [], 4
    for _ in range(int.from_bytes(answer[0:4], 'big')):
        ids.append(int.from_bytes(answer[at:at + 4], 'big'))
        at += 4
        at += 2 + int.from_bytes(answer[at:at + 2], 'big') + 4
        rack = int.from_bytes(answer[at:at + 2], 'big', signed=True)
        at += 2 + max(rack, 0)
    return ids


def wait_for(what, condition, seconds=20.0, step=0.01):
    """Polls until the condition holds and returns its value; AssertionError names what did not come."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f'no {what} within {seconds} s'
        time.sleep(step)


class Node:
    """One kraft-server on a directory of its own."""

    def __init__(self, root, node_id, roles='broker,controller', port=None, controller_port=None, bootstrap=None, extra=None, env=None):
        self.root, self.id, self.roles = root, node_id, roles
        ports = free_ports(2)
        self.port, self.controller_port = port or ports[0], controller_port or ports[1]
        self.bootstrap = bootstrap or f'{HOST}:{self.controller_port}'
        self.extra, self.env = extra or {}, env or {}
        self.config = os.path.join(root, f'node-{node_id}.properties')
        self.data = os.path.join(root, f'node-{node_id}')
        self.log_path = os.path.join(root, f'node-{node_id}.log')
        self.process = None
        self.extra_arguments = []  # of kraft-server

    @property
    def address(self):
        return f'{HOST}:{self.port}'

    def write_config(self):
        listeners = []
        if 'broker' in self.roles:
            listeners.append(f'PLAINTEXT://{HOST}:{self.port}')
        if 'controller' in self.roles:
            listeners.append(f'CONTROLLER://{HOST}:{self.controller_port}')
        keys = {'process.roles': self.roles, 'node.id': self.id, 'listeners': ','.join(listeners), 'controller.listener.names': 'CONTROLLER',
                'controller.quorum.bootstrap.servers': self.bootstrap, 'log.dirs': self.data,
                'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT'}
        keys.update(self.extra)
        with open(self.config, 'w') as f:
            f.writelines(f'{k}={v}\n' for k, v in keys.items() if v is not None)

    def format(self, cluster_id, *options):
        os.makedirs(self.root, exist_ok=True)
        self.write_config()
        subprocess.run([tool('kraft-format'), 'format', '--cluster-id', cluster_id, '--config', self.config, *options], check=True,
                       capture_output=True, text=True)

    def start(self, wait=True, prefix=()):
        """`prefix`: a command that sets something up and becomes the server."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(('KAFKA_', 'KRAFT_'))}
        environment.update(self.env)
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen([*prefix, tool('kraft-server'), *self.extra_arguments, self.config], stdout=log, stderr=log, env=environment)
        if wait:
            self.wait_answer()
        return self

    def wait_answer(self, seconds=20.0):
        """Until a controller answers, or a broker is live: registered, caught up and unfenced."""
        port = self.port if 'broker' in self.roles else self.controller_port

        def answers():
            assert self.process.poll() is None, f'node {self.id} ended with {self.process.returncode}:\n{self.log_tail()}'
            try:
                return self.id in live_brokers(port) if 'broker' in self.roles else api_versions(port)
            except OSError:
                return None
        wait_for(f'answer of node {self.id}', answers, seconds)

    def log_tail(self, lines=30):
        with open(self.log_path, errors='replace') as f:
            return ''.join(f.readlines()[-lines:])

    def running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, seconds=30.0):
        """SIGTERM and a clean end; asserts exit status 0."""
        if not self.process:
            return
        if self.running():
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.process = None
            raise AssertionError(f'node {self.id} did not stop within {seconds} s:\n{self.log_tail()}')
        self.process = None
        assert code == 0, f'node {self.id} ended with {code}:\n{self.log_tail()}'

    def kill(self):
        """kill -9."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def signal(self, number):
        self.process.send_signal(number)

    def memory_kib(self):
        """(VmRSS, RssAnon) in KiB."""
        with open(f'/proc/{self.process.pid}/status') as f:
            fields = dict(line.split(':', 1) for line in f if ':' in line)
        return int(fields['VmRSS'].split()[0]), int(fields['RssAnon'].split()[0])


class Cluster:
    """Some nodes under one temporary directory; use as a context manager."""

    def __init__(self, name='kraft'):
        self.root = tempfile.mkdtemp(prefix=f'{name}-')
        self.nodes = []
        self.cluster_id = random_uuid()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for node in self.nodes:
            node.kill()
        if kind is None or not os.environ.get('KRAFT_KEEP'):
            if kind is not None:
                for node in self.nodes:
                    if os.path.exists(node.log_path):
                        print(f'--- node {node.id}, end of its log\n{node.log_tail(40)}')
            shutil.rmtree(self.root, ignore_errors=True)

    def add(self, node_id, **options):
        node = Node(self.root, node_id, **options)
        self.nodes.append(node)
        return node

    def single(self, **options):
        """One combined node, formatted and started."""
        node = self.add(options.pop('node_id', 1), **options)
        node.format(self.cluster_id, '--standalone')
        return node.start()


def admin(address, *args, check=True, **options):
    """Runs kraft-admin against an address; returns the finished process."""
    done = subprocess.run([tool('kraft-admin'), *args, '--bootstrap-server', address], capture_output=True, text=True, timeout=options.pop('timeout', 60), **options)
    if check:
        assert done.returncode == 0, f'kraft-admin {args}: {done.stdout}{done.stderr}'
    return done
