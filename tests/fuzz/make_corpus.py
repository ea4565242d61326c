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


TARGETS = (raft_messages, requests, responses, metadata_records, batch)


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
