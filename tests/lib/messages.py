# SPDX-License-Identifier: Apache-2.0
"""Requests of any API and version from their JSON, by kraft-dump's codec and the reference's table of APIs; answers as JSON."""
import functools
import json
import os
import socket
import subprocess

import kraft

VECTORS = os.path.join(kraft.TOP, 'tests', 'vectors')


def vectors(name):
    """The objects of a file of tests/vectors."""
    out = subprocess.run(['zstdcat', os.path.join(VECTORS, f'{name}.jsonl.zst')], check=True, capture_output=True).stdout
    return [json.loads(line) for line in out.splitlines()]


@functools.lru_cache
def apis():
    return {row['name']: row for row in vectors('apis')}


def turn(message, version, **what):
    """json= or hex= of a message through `kraft-dump wire`; the whole line that comes out."""
    line = json.dumps({'message': message, 'version': version, **what})
    done = subprocess.run([kraft.tool('kraft-dump'), 'wire'], input=line, capture_output=True, text=True, timeout=30)
    out = json.loads(done.stdout)
    assert 'error' not in out, f'{message} {version}: {out["error"]}'
    return out


class Connection:
    """One connection to a listener; requests one after the other."""

    def __init__(self, port, client='test'):
        self.socket = socket.create_connection((kraft.HOST, port), timeout=30)
        self.correlation, self.client = 0, client.encode()

    def call(self, api, version, body):
        """The answer's JSON."""
        row = apis()[api]
        header = next(h for h in row['header_versions'] if h['version'] == version)
        self.correlation += 1
        frame = row['key'].to_bytes(2, 'big') + version.to_bytes(2, 'big') + self.correlation.to_bytes(4, 'big')
        frame += len(self.client).to_bytes(2, 'big') + self.client + (b'\0' if header['request'] == 2 else b'')
        frame += bytes.fromhex(turn(f'{api}RequestData', version, json=body)['hex'])
        self.socket.sendall(len(frame).to_bytes(4, 'big') + frame)
        answer = kraft.receive(self.socket, int.from_bytes(kraft.receive(self.socket, 4), 'big'))
        assert int.from_bytes(answer[:4], 'big') == self.correlation
        at = 4
        if header['response'] == 1:
            assert answer[4] == 0
            at = 5
        return turn(f'{api}ResponseData', version, hex=answer[at:].hex())['json']

    def close(self):
        self.socket.close()
