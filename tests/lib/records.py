# SPDX-License-Identifier: Apache-2.0
"""What the client tests send: records of every shape, a long text, and their line form for programs in other languages.

A record is (key, value, headers); headers are (name, value) pairs; None is null.
"""
import os
import subprocess

import kraft

CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
ACKS = ['0', '1', 'all']
PAIRS = [(codec, acks) for codec in CODECS for acks in ACKS]


def mixed(count):
    """Null, empty and plain keys and values in every combination; some records with headers, a name twice among them."""
    out = []
    for i in range(count):
        key = None if i % 7 == 0 else b'' if i % 7 == 1 else b'key-%d' % i
        value = None if i % 11 == 0 else b'' if i % 11 == 1 else b'value-%d ' % i * (i % 5 + 1)
        headers = [('h', b'%d' % i), ('h', b'again'), ('empty', b''), ('null', None), ('n\u00e4me', b'\x00\xff')] if i % 13 == 0 else []
        out.append((key, value, headers))
    return out


def write_lines(path, items):
    """The form 'records' of ClientPeer.java."""
    def word(b):
        return '-' if b is None else b.hex()
    with open(path, 'w') as f:
        for key, value, headers in items:
            f.write(' '.join([word(key), word(value)] + [f'{name.encode().hex()}={word(v)}' for name, v in headers]) + '\n')
    return path


def read_lines(path):
    def bytes_of(word):
        return None if word == '-' else bytes.fromhex(word)
    out = []
    with open(path) as f:
        for line in f:
            key, value, *headers = line.rstrip('\n').split(' ')
            out.append((bytes_of(key), bytes_of(value), [(bytes.fromhex(h.split('=')[0]).decode(), bytes_of(h.split('=')[1])) for h in headers]))
    return out


def million_lines():
    """The path of a text of 1,000,000 lines, none empty: this tree's sources and documents, again and again."""
    path = os.path.join(kraft.BUILD, 'million-lines.txt')
    listing = subprocess.run(['git', 'ls-files', '*.md', '*.c', '*.h', '*.py', 'LICENSE'], cwd=kraft.TOP, capture_output=True, text=True).stdout.split()
    lines = []
    for name in listing or ['LICENSE']:
        if os.path.exists(os.path.join(kraft.TOP, name)):
            with open(os.path.join(kraft.TOP, name), 'rb') as f:
                lines += [line for line in f.read().split(b'\n') if line]
    with open(path + '.new', 'wb') as f:
        f.write(b'\n'.join((lines * (1000000 // len(lines) + 1))[:1000000]) + b'\n')
    os.replace(path + '.new', path)
    return path
