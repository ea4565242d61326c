#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets from tests/vectors: OUT/TARGET/N, one input a file.

Usage: make_corpus.py --zstd ZSTD --vectors DIR --out OUT [--stamp FILE] [--every N]
To add seeds for a target, add a function named like it and list it in TARGETS.
"""

import argparse
import json
import struct
import subprocess
from pathlib import Path


class Vectors:
    """The vector files, unpacked."""

    def __init__(self, zstd, folder):
        self.zstd, self.folder = zstd, Path(folder)

    def lines(self, name):
        packed = self.folder / f"{name}.jsonl.zst"
        text = subprocess.run([self.zstd, "-dcq", packed], check=True, capture_output=True).stdout
        return [json.loads(line) for line in text.splitlines()]


def requests(v):
    """Request header and message; the header's version follows from the API's first flexible one."""
    flexible = {s["message"]: int(s["flexible"].rstrip("+")) for s in v.lines("schemas") if "flexible" in s}
    for line in v.lines("requests"):
        head = struct.pack(">hhih", line["api_key"], line["version"], 1, 2) + b"me"
        if line["version"] >= flexible.get(line["message"], 1 << 15):
            head += b"\0"
        yield head + bytes.fromhex(line["hex"])


def responses(v):
    """Place in the list of types (which is in the order of names), version, message."""
    schemas = sorted(v.lines("schemas"), key=lambda s: s["message"])
    place = {s["message"]: (i, int(s["versions"].split("-")[0])) for i, s in enumerate(schemas)}
    for name in ("responses", "metadata", "raft", "coordinator_group", "coordinator_transaction", "coordinator_share", "other"):
        for line in v.lines(name):
            index, first = place[line["message"]]
            yield struct.pack(">HB", index, line["version"] - first) + bytes.fromhex(line["hex"])


def metadata_records(v):
    for line in v.lines("metadata"):
        if line["api_key"] >= 0 and not line["message"].startswith("Remote"):
            yield bytes([1, line["api_key"], line["version"]]) + bytes.fromhex(line["hex"])


def batch(v):
    """A byte of choices, then a batch of the vectors."""
    for number, line in enumerate(v.lines("batches")):
        for choice in (1, 3, number * 37 & 255):
            yield bytes([choice]) + bytes.fromhex(line["hex"])


def raft_messages(v):
    """One of each kind of frame on a quorum connection, without its length."""
    def text(t):
        return struct.pack(">H", len(t)) + t

    directory = bytes(range(16))
    server = struct.pack(">QBi", 7, 1, 3) + directory + struct.pack(">hhB", 0, 1, 1) + text(b"CONTROLLER") + text(b"localhost") + struct.pack(">H", 9093)
    manifest = struct.pack(">qiQ", 120, 3, 4096)
    for kind in (1, 2):
        yield struct.pack(">BH", kind, 1) + text(b"4L6g3nShT-eMCtK--X86sw") + struct.pack(">i", 3) + directory + struct.pack(">QQB", 7, 8, 1)
    yield b"\x03\x02" + text(b"another cluster")
    yield struct.pack(">BQQQQI", 4, 5, 9, 4, 8, 0)
    for line in v.lines("batches"):
        if "hex" in line:
            yield struct.pack(">BQQQQI", 4, 5, 9, 4, 8, 1) + bytes.fromhex(line["hex"])
    yield struct.pack(">BBQQQHH", 5, 2, 5, 0, 10, 1, 900)
    yield struct.pack(">BBQQQQB", 6, 2, 6, 7, 10, 5, 2)
    yield struct.pack(">BBQBHH", 7, 2, 6, 1, 1, 900)
    yield struct.pack(">BQQQQ", 8, 6, 100, 5, 90) + manifest + struct.pack(">I", 1) + server
    yield struct.pack(">BQQQ", 9, 6, 100, 5)
    yield struct.pack(">BqiQI", 10, 120, 3, 1024, 65536)
    yield struct.pack(">BqiQQ", 11, 120, 3, 1024, 4096) + b"x" * 100


def storage_files(v):
    """A byte that chooses the file, then a right one of it."""
    yield b"\x00" + b"0\n2\ntopic 0 15\nidle.with_odd-chars 7 9223372036854775807\n"
    yield b"\x01" + b"0\n3\n1 0\n3 10\n7 25\n"
    for entries in ([], [(7, 1, 3, 11, 3, 1000, -1, -1), (9, 0, -1, -1, 0, 1001, 4, 20)]):
        body = struct.pack(">i", len(entries)) + b"".join(struct.pack(">qhiqiqiq", *e) for e in entries)
        yield b"\x02" + struct.pack(">hI", 1, crc32c(body)) + body
    yield b"\x03" + struct.pack(">IIII", 5, 300, 9, 700) + bytes(16)
    yield b"\x03" + struct.pack(">qIqI", 1000, 5, 1010, 9)
    yield b"\x03" + struct.pack(">hqqqqhqqqq", 0, 7, 1, 11, 12, 0, 6, 12, 22, 13)
    text = b"kraft-manifest 1\n00000001 00000002 00000003\n1\nt 0 QzkjHwn_RGaAnHcB2f0uaA 0 100 90 80 5000 4\n"
    yield b"\x04" + text + b"end %08x\n" % crc32c(text)
    yield b"\x05" + b"version: 0\ntopic_id: QzkjHwn_RGaAnHcB2f0uaA"
    yield b"\x06" + b'{"version":0,"brokerEpoch":384}'
    for name in (b"00000000000000000123.timeindex.deleted", b"my-topic-12", b"t-2.3a8f74bef7ef4c798ffb65c713972f58-delete"):
        yield b"\x07" + name


def storage_log(v):
    """A byte of choices, then a segment of some batches of the vectors."""
    batches = [bytes.fromhex(line["hex"]) for line in v.lines("batches")]
    for number in range(0, len(batches), 3):
        for choice in (0, 1, 3):
            yield bytes([choice]) + b"".join(batches[number:number + 3])


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def properties(v):
    """Every kind of line that Java's format knows, and a whole configuration."""
    yield b"process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n" \
          b"controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=127.0.0.1:9093\nlog.dirs=/a,/b\n"
    yield b"# comment\n! comment\r\na = b\nc : d\ne f\ng=\\\n   h\ni=\\u00e4\\t\\\\\nj\nj=2\n\xef\xbb\xbfk=1\n"
    yield b"\xef\xbb\xbfversion=1\ncluster.id=5L6g3nShT-eMCtK--X86sw\nnode.id=1\ndirectory.id=4L6g3nShT-eMCtK--X86sw\n"
    yield b"process.roles=controller\nnode.id=0\ncontroller.quorum.voters=0@a:1,1@[::1]:2\nlisteners=C://:9\ncontroller.listener.names=C\n" \
          b"listener.security.protocol.map=C:PLAINTEXT\nlog.retention.hours=1\nlog.retention.ms=5\nlog.cleanup.policy=compact,delete\n"


TARGETS = (raft_messages, requests, responses, metadata_records, batch, storage_files, storage_log, properties)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zstd", required=True)
    parser.add_argument("--vectors", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--stamp")
    parser.add_argument("--every", type=int, default=1, help="take only every N-th input")
    args = parser.parse_args()
    vectors = Vectors(args.zstd, args.vectors)
    for target in TARGETS:
        folder = Path(args.out) / target.__name__
        folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(target(vectors)):
            if number % args.every == 0:
                (folder / f"{number:05d}").write_bytes(data)
    if args.stamp:
        Path(args.stamp).write_text("ok\n")


if __name__ == "__main__":
    main()
