#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the tree promises about itself: rooms, purpose lines, licences, banned calls, file sizes.

Usage: lint.py [--gen DIR] [--stamp FILE]    from anywhere; exits 1 with one line a finding.
The table of rooms is the one in docs/architecture.md; generated headers (--gen) are held to it as well.
"""
import argparse
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

ALL_CORE = ['base', 'protocol', 'record', 'config', 'metadata', 'security', 'controller', 'replica', 'group', 'txn']
DECIDERS = ['security', 'metadata', 'protocol', 'record', 'config', 'base']

def core(*names):
    return ['core/' + n for n in names]

# room -> (rooms of ours it may include, third-party headers it may include)
ROOMS = {
    'core/base': ([], ['xxhash.h']),
    'core/protocol': (core('base'), ['jansson.h']),
    'core/record': (core('base'), ['lz4.h', 'lz4frame.h', 'lz4hc.h', 'zstd.h', 'zlib.h', 'snappy-c.h', 'isa-l.h', 'isa-l/']),
    'core/config': (core('base'), []),
    'core/metadata': (core('protocol', 'record', 'config', 'base'), []),
    'core/security': (core('metadata', 'protocol', 'record', 'config', 'base'), ['openssl/']),
    'core/controller': (core(*DECIDERS), []),
    'core/replica': (core(*DECIDERS), []),
    'core/group': (core(*DECIDERS), ['pcre2.h']),
    'core/txn': (core(*DECIDERS), []),
    'storage': (core('protocol', 'record', 'base'), []),
    'net': (core('record', 'config', 'security', 'base'), ['uv.h', 'openssl/', 'microhttpd.h']),
    'raft': (['storage'] + core('metadata', 'protocol', 'record', 'config', 'base'), ['raft.h']),
    'core/server': (['raft', 'storage'] + core(*ALL_CORE), []),
}
# one file's further right, with its reason
EXTRA = {}

# The C library and compiler headers that every room may use; anything with a system call behind it is apart.
STDLIB = {'assert.h', 'ctype.h', 'errno.h', 'inttypes.h', 'limits.h', 'math.h', 'float.h', 'stdalign.h', 'stdarg.h', 'stdatomic.h',
          'stdbool.h', 'stddef.h', 'stdint.h', 'stdio.h', 'stdlib.h', 'string.h', 'strings.h', 'nmmintrin.h', 'immintrin.h',
          'x86intrin.h', 'cpuid.h', 'endian.h', 'sys/types.h', 'sys/uio.h', 'arm_acle.h'}
SYSTEM_FILES = {'storage/vfs_posix.c', 'core/base/page_alloc.c', 'core/base/mem.c', 'core/base/assert.c'}
PTHREAD_FILES = {'core/base/mutex.h'}

CALL = r'(?<![\w.>])(%s)\s*\('
BANNED_EVERYWHERE = re.compile(CALL % 'strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|atoll|strtok|alloca')
BANNED_IN_ROOMS = re.compile(CALL % (
    'malloc|calloc|realloc|free|strdup|strndup|asprintf|vasprintf|aligned_alloc|posix_memalign|'
    'time|clock_gettime|gettimeofday|localtime|gmtime|rand|random|srand|srandom|drand48|getrandom|'
    'pthread_create|pthread_cond_\\w+|open|openat|creat|read|write|pread|pwrite|readv|writev|preadv|pwritev|fopen|fsync|fdatasync|'
    'socket|connect|accept|bind|listen|recv|send|sendto|recvfrom|epoll_\\w+|poll|select|sleep|usleep|nanosleep|fork|system|popen|unlink|'
    'rename|mkdir|rmdir|opendir|stat|fstat|lstat|mmap|munmap|exit|_exit|abort|getenv|setenv'))
MUTABLE_STATIC = re.compile(r'^(static\s+)(?!const\b|inline\b|_Thread_local\s+const)[\w\s\*]*?\b\w+(\[[^\]]*\])*\s*(=|;)')
ALLOWED_STATIC_FILES = {'core/base/mem.c', 'core/base/page_alloc.c', 'core/base/chunk.c'}


def strip(text):
    """The text with comments and string contents blanked, line structure kept."""
    def blank(m):
        s = m.group(0)
        if s.startswith(('/*', '//')):
            return re.sub(r'[^\n]', ' ', s)
        return s[0] + re.sub(r'[^\n]', ' ', s[1:-1]) + s[-1]
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def room_of(path):
    best = None
    for room in ROOMS:
        if path.startswith(room + '/') and (best is None or len(room) > len(best)):
            best = room
    return best


class Lint:
    def __init__(self):
        self.findings, self.notes = [], []

    def fail(self, path, line, text):
        self.findings.append(f'{path}:{line}: {text}')

    def includes(self, path, text, room):
        ours, third = ROOMS[room]
        for number, line in enumerate(text.splitlines(), 1):
            m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not m:
                continue
            name = m.group(2)
            if m.group(1) == '"':
                target = room_of(name)
                if '/' not in name:
                    self.fail(path, number, f'include "{name}" by its path from the root of the tree')
                elif target is None:
                    self.fail(path, number, f'{room} may not include {name}')
                elif target != room and target not in ours and name not in EXTRA.get(path, ()):
                    self.fail(path, number, f'{room} may not include {target} ({name}); see docs/architecture.md')
                continue
            if name in STDLIB or any(name == t or (t.endswith('/') and name.startswith(t)) for t in third):
                continue
            if path in SYSTEM_FILES or room == 'net' or (path in PTHREAD_FILES and name == 'pthread.h'):
                continue
            self.fail(path, number, f'{room} may not include <{name}>')

    def calls(self, path, code, room):
        for number, line in enumerate(code.splitlines(), 1):
            m = BANNED_EVERYWHERE.search(line)
            if m:
                self.fail(path, number, f'{m.group(1)}() is banned')
            if room is None or room == 'net' or path in SYSTEM_FILES:
                continue
            if line.lstrip().startswith('#'):
                continue
            m = BANNED_IN_ROOMS.search(line)
            # a declaration or definition of a member or function of that name is no call of the C library
            if m and not re.match(r'^\s*(static\s+|extern\s+)?[\w\s\*]+\s\**%s\s*\(' % re.escape(m.group(1)), line):
                self.fail(path, number, f'{m.group(1)}() is banned in {room}: use core/base/mem.h, the node interface or the vfs')
            if path not in ALLOWED_STATIC_FILES and MUTABLE_STATIC.match(line) and '(' not in line.split('=')[0]:
                self.fail(path, number, 'mutable static: all of a node hangs from one struct')

    def head(self, path, text):
        lines = text.splitlines()
        mark = '#' if path.endswith(('.py', '.sh', 'meson.build')) or lines[0].startswith('#!') else '//'
        first = 1 if lines and lines[0].startswith('#!') else 0
        if len(lines) <= first or 'SPDX-License-Identifier: Apache-2.0' not in lines[first]:
            self.fail(path, first + 1, 'the SPDX line is missing')
            return
        if path.endswith(('.c', '.h')):
            second = lines[first + 1] if len(lines) > first + 1 else ''
            if not re.match(r'//\s+\S+.*|/\*\s*\S*', second):
                self.fail(path, first + 2, f'a sentence of purpose must follow the SPDX line ({mark} ...)')

    def size(self, path, text):
        n = text.count('\n')
        if n > 1000:
            self.fail(path, 1, f'{n} lines; a file over 1,000 is to be split')
        elif n > 600:
            self.notes.append(f'{path}: {n} lines (over 600)')

    def file(self, path, text, generated=False):
        room = room_of(path)
        self.head(path, text)
        if not path.endswith(('.c', '.h')):
            return
        if not generated:
            self.size(path, text)
        if room:
            self.includes(path, text, room)
        self.calls(path, strip(text), room)


def tracked():
    """Files of the tree: what git tracks or would add; without git, all of it."""
    try:
        out = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], cwd=TOP, check=True, capture_output=True, text=True).stdout
        return [f for f in out.splitlines() if os.path.isfile(os.path.join(TOP, f))]
    except (OSError, subprocess.CalledProcessError):
        found = []
        for base, dirs, files in os.walk(TOP):
            dirs[:] = [d for d in dirs if not d.startswith(('.git', 'build'))]
            found += [os.path.relpath(os.path.join(base, f), TOP) for f in files]
        return found


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument('--gen', help='build directory whose generated sources are checked too')
    args.add_argument('--stamp', help='file to write when nothing was found')
    opts = args.parse_args()
    lint = Lint()
    for path in sorted(tracked()):
        if path.endswith(('.c', '.h', '.py', '.sh', 'meson.build')):
            with open(os.path.join(TOP, path), encoding='utf-8', errors='replace') as f:
                text = f.read()
            if text.strip():
                lint.file(path, text)
    if opts.gen:
        gen = os.path.join(opts.gen, 'core', 'protocol', 'gen')
        for name in sorted(os.listdir(gen)) if os.path.isdir(gen) else []:
            if name.endswith(('.c', '.h')):
                with open(os.path.join(gen, name), encoding='utf-8', errors='replace') as f:
                    lint.file('core/protocol/gen/' + name, f.read(), generated=True)
    for note in lint.notes:
        print('note: ' + note)
    for finding in lint.findings:
        print(finding)
    if lint.findings:
        print(f'{len(lint.findings)} findings')
        return 1
    if opts.stamp:
        with open(opts.stamp, 'w', encoding='utf-8', errors='replace') as f:
            f.write('ok\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
