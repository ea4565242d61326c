#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guards the cost of a small produce request: system calls and instructions, which no other load on the machine changes.

Usage: tests/bench/guard.py [--build DIR]

Exits with 1 where a limit is passed. System calls are those of the thread that serves clients, counted by strace at
1 KiB requests with 5 and with 64 in flight; also page faults while it serves. Instructions are those of the whole
process under callgrind, the difference of a long and a short run. Their limit holds for the compiler that it was
measured with; with another one the number is only shown.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run  # noqa: E402

# A turn of the loop makes four calls (poll, receive, write, send) for all requests that it finds.
CALLS_MAX = {5: 0.81, 64: 0.08}
INSTRUCTIONS, INSTRUCTIONS_COMPILER = 5700, 'gcc 12'
INSTRUCTIONS_MARGIN = 1.10
FAULTS_MAX = 80  # the index in memory grows by a page every 0.8 MB of such requests


class Guarded(run.Kraft):
    """Kraft, under another program where `wrap` names one."""

    def __init__(self, opts, work, wrap=()):
        super().__init__(opts, work)
        self.wrap = list(wrap)

    def command(self):
        return self.wrap + super().command()

    def thread(self, name):
        base = f'/proc/{self.process.pid}/task'
        for task in os.listdir(base):
            with open(f'{base}/{task}/comm') as f:
                if f.read().strip() == name:
                    return int(task)
        raise SystemExit(f'no thread {name}')


def load(opts, peer, depth, requests):
    out = subprocess.run([os.path.join(opts.build, 'tests', 'bench', 'load'), 'produce', '--port', str(peer.port), '--topic', 'guard', '--create',
                          '--check', '--batch-bytes', '1024', '--record-bytes', '1024', '--window', str(depth), '--requests', str(requests)],
                         capture_output=True, text=True)
    if out.returncode != 0:
        raise SystemExit(f'load failed: {out.stdout}{out.stderr}')
    return json.loads(out.stdout)


def calls(opts, peer, depth, requests, work):
    """System calls a request of the thread that serves clients, and the most frequent ones."""
    path = os.path.join(work, 'strace')
    trace = subprocess.Popen(['strace', '-c', '-o', path, '-p', str(peer.thread('data-0'))], stderr=subprocess.DEVNULL)
    status = f'/proc/{peer.process.pid}/task/{peer.thread("data-0")}/status'
    for _ in range(500):  # until it is attached
        with open(status) as f:
            if 'TracerPid:\t0\n' not in f.read():
                break
        time.sleep(0.01)
    load(opts, peer, depth, requests)
    trace.send_signal(signal.SIGINT)
    trace.wait(30)
    counts = {}
    with open(path) as f:
        for line in f:
            m = re.match(r'\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$', line)
            if m and m[2] != 'total':
                counts[m[2]] = int(m[1])
    most = ', '.join(f'{n} {c / requests:.3f}' for n, c in sorted(counts.items(), key=lambda x: -x[1])[:4])
    return sum(counts.values()) / requests, most


def instructions(opts, work, requests):
    """Instructions of a process that starts, serves so many requests and ends."""
    path = os.path.join(work, 'callgrind')
    peer = Guarded(opts, work, ['valgrind', '--tool=callgrind', f'--callgrind-out-file={path}'])
    peer.start()
    load(opts, peer, 64, requests)
    peer.stop()
    with open(path) as f:
        return int(re.search(r'^(?:summary|totals): (\d+)', f.read(), re.M)[1])


def compiler(build):
    """Name and major version of the compiler that made the build."""
    with open(os.path.join(build, 'compile_commands.json')) as f:
        words = json.load(f)[0]['command'].split()
    line = subprocess.check_output([words[words[0] == 'ccache'], '--version'], text=True).splitlines()[0]
    version = re.findall(r'(\d+)\.\d+', line)[-1]
    return f'{"clang" if "clang" in line else "gcc"} {version}'


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('--build', default=os.path.join(run.TOP, 'build'), help='build directory')
    opts = args.parse_args()
    opts.build = os.path.abspath(opts.build)
    bad = 0

    def judge(what, value, limit, note='', form='.3f'):
        nonlocal bad
        passed = value <= limit
        bad += not passed
        print(f'{"ok  " if passed else "OVER"} {what}: {value:{form}} (at most {limit:{form}}) {note}', flush=True)

    work = tempfile.mkdtemp(prefix='kraft-guard-')
    try:
        if shutil.which('strace'):
            peer = Guarded(opts, work)
            peer.start()
            try:
                for depth, limit in CALLS_MAX.items():
                    load(opts, peer, depth, 2000)
                    value, most = calls(opts, peer, depth, 20000, work)
                    judge(f'system calls a request, {depth} in flight', value, limit, most)
                before = peer.faults()
                load(opts, peer, 64, 100000)
                judge('page faults in 100,000 requests', peer.faults() - before, FAULTS_MAX, form='d')
            finally:
                peer.stop()
        else:
            print('skip system calls: strace is not installed')
        if shutil.which('valgrind'):
            value = (instructions(opts, work, 50000) - instructions(opts, work, 10000)) / 40000
            name = compiler(opts.build)
            limit = INSTRUCTIONS * INSTRUCTIONS_MARGIN
            if name == INSTRUCTIONS_COMPILER:
                judge('instructions a request, 64 in flight', value, limit, name, '.0f')
            else:
                print(f'info instructions a request, 64 in flight: {value:.0f} with {name}; {INSTRUCTIONS} with {INSTRUCTIONS_COMPILER}')
        else:
            print('skip instructions: valgrind is not installed')
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return bad > 0


if __name__ == '__main__':
    sys.exit(main())
