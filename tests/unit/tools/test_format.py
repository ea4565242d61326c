#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kraft-format as its users run it: what it writes, what it refuses, what it says.

Usage: test_format.py KRAFT-FORMAT
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


class Format(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.dir = Path(self.folder.name)
        self.id = self.run_ok("random-uuid").strip()
        self.config()

    def tearDown(self):
        self.folder.cleanup()

    def config(self, roles="broker,controller", **more):
        keys = {"process.roles": roles, "node.id": 1, "log.dirs": f"{self.dir}/a,{self.dir}/b/c",
                "controller.listener.names": "CONTROLLER", "controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
        client, controller = "PLAINTEXT://127.0.0.1:9092", "CONTROLLER://127.0.0.1:9093"
        keys["listeners"] = ",".join([client] * ("broker" in roles) + [controller] * ("controller" in roles))
        keys.update(more)
        self.file = self.dir / "server.properties"
        self.file.write_text("".join(f"{k}={v}\n" for k, v in keys.items()))

    def run_it(self, *args):
        return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=60)

    def run_ok(self, *args):
        done = self.run_it(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def format(self, *args):
        return self.run_it("format", "-c", self.file, "-t", self.id, *args)

    def refused(self, text, *args, code=1):
        done = self.format(*args)
        self.assertEqual(done.returncode, code, done.stdout)
        self.assertIn(text, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1)

    def meta(self, name):
        lines = (self.dir / name / "meta.properties").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def test_ids_are_random_and_never_look_like_options(self):
        ids = {self.run_ok("random-uuid").strip() for _ in range(20)}
        self.assertEqual(len(ids), 20)
        for one in ids:
            self.assertRegex(one, r"^[A-Za-z0-9_][A-Za-z0-9_-]{21}$")

    def test_a_standalone_node_is_prepared_whole(self):
        self.assertEqual(self.format("--standalone").returncode, 0)
        self.assertTrue((self.dir / "a" / CHECKPOINT).exists())
        a, b = self.meta("a"), self.meta("b/c")
        self.assertEqual((a["version"], a["cluster.id"], a["node.id"]), ("1", self.id, "1"))
        self.assertNotEqual(a["directory.id"], b["directory.id"])
        out = self.run_ok("info", "--config", self.file)
        self.assertIn("Node 1 can start.", out)
        self.assertIn(self.id, out)

    def test_a_broker_alone_gets_no_metadata_log(self):
        self.config(roles="broker")
        self.assertEqual(self.format().returncode, 0)
        self.assertFalse((self.dir / "a" / CHECKPOINT).exists())
        self.refused("process.roles", "--standalone")

    def test_initial_controllers_fix_the_directory_id(self):
        ids = [self.run_ok("random-uuid").strip() for _ in range(2)]
        voters = f"1@127.0.0.1:9093:{ids[0]},2@127.0.0.2:9093:{ids[1]}"
        self.assertEqual(self.format("--initial-controllers", voters).returncode, 0)
        self.assertEqual(self.meta("a")["directory.id"], ids[0])

    def test_bad_lists_of_controllers_are_refused(self):
        one = self.run_ok("random-uuid").strip()
        self.refused("does not list this node", "-I", f"2@h:1:{one}")
        self.refused("22 characters", "-I", "1@h:1:abc")
        self.refused("no voter", "-I", "h:1")
        self.refused("twice", "-I", f"1@h:1:{one},1@g:1:{one}")
        self.refused("same directory id", "-I", f"1@h:1:{one},2@g:1:{one}")

    def test_a_controller_must_say_how_it_gets_its_quorum(self):
        self.refused("--standalone (a first node)")
        for pair in (("-s", "-N"), ("-s", "-I", "1@h:1:x"), ("-N", "-I", "1@h:1:x")):
            self.refused("exclude each other", *pair)
        self.assertEqual(self.format("--no-initial-controllers").returncode, 0)

    def test_fixed_voters_exclude_a_quorum_that_changes(self):
        self.config(**{"controller.quorum.voters": "1@127.0.0.1:9093"})
        for option in (["-s"], ["-N"], ["-I", f"1@h:1:{self.id}"]):
            self.refused("two quorums", *option)
        self.refused("kraft.version=1", "-f", "kraft.version=1")
        self.assertEqual(self.format().returncode, 0)
        self.assertTrue((self.dir / "a" / CHECKPOINT).exists())

    def test_bad_cluster_ids_are_refused(self):
        for bad in ("abc", "x" * 21, "x" * 23, "AAAAAAAAAAAAAAAAAAAAAA", "5L6g3nShT-eMCtK+/X86sw"):
            done = self.run_it("format", "-c", self.file, "-s", "-t", bad)
            self.assertEqual(done.returncode, 1)
            self.assertIn("is no id", done.stderr)
        done = self.run_it("format", "-c", self.file, "-s")
        self.assertIn("random-uuid", done.stderr)

    def test_twice_is_refused_or_left_alone(self):
        self.assertEqual(self.format("-s").returncode, 0)
        before = [(self.dir / "a" / n).read_bytes() for n in ("meta.properties", CHECKPOINT)]
        self.refused("already formatted", "-s")
        done = self.format("-s", "--ignore-formatted")
        self.assertEqual(done.returncode, 0)
        self.assertIn("nothing was changed", done.stdout)
        self.assertEqual(before, [(self.dir / "a" / n).read_bytes() for n in ("meta.properties", CHECKPOINT)])

    def test_a_new_directory_beside_formatted_ones(self):
        self.assertEqual(self.format("-s").returncode, 0)
        directory_id = self.meta("a")["directory.id"]
        self.config(**{"log.dirs": f"{self.dir}/a,{self.dir}/new"})
        self.assertEqual(self.format("-s", "-g").returncode, 0)
        self.assertEqual(self.meta("a")["directory.id"], directory_id)
        self.assertEqual(self.meta("new")["cluster.id"], self.id)

    def test_other_clusters_and_nodes_keep_their_directories(self):
        self.assertEqual(self.format("-s").returncode, 0)
        old = self.id
        self.id = self.run_ok("random-uuid").strip()
        self.refused(f"formatted for cluster {old}, not for {self.id}", "-s", "-g")
        self.id = old
        self.config(**{"node.id": 2})
        self.refused("formatted for node 1, but node.id is 2", "-s", "-g")
        out = self.run_it("info", "-c", self.file)
        self.assertEqual(out.returncode, 1)
        self.assertIn("Problem:", out.stdout)

    def test_a_format_that_was_cut_off_begins_anew(self):
        self.assertEqual(self.format("-s").returncode, 0)
        (self.dir / "a" / "meta.properties").unlink()
        self.assertIn("is not formatted", self.run_it("info", "-c", self.file).stdout)
        kept = self.meta("b/c")["directory.id"]
        self.assertEqual(self.format("-s").returncode, 0)
        self.assertEqual(self.meta("b/c")["directory.id"], kept)
        self.assertIn("can start", self.run_ok("info", "-c", self.file))

    def test_a_metadata_log_without_properties_is_not_overwritten(self):
        self.assertEqual(self.format("-s").returncode, 0)
        (self.dir / "a" / "meta.properties").unlink()
        (self.dir / "a" / "__cluster_metadata-0" / ("0" * 20 + ".log")).write_bytes(b"data")
        self.refused("formatting would lose it", "-s")

    def test_a_dry_run_writes_nothing(self):
        done = self.format("-s", "--dry-run")
        self.assertEqual(done.returncode, 0)
        self.assertFalse((self.dir / "a").exists())

    def test_directories_that_cannot_be(self):
        (self.dir / "a").write_text("a file")
        done = self.format("-s")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"{self.dir}/a", done.stderr)

    def test_configurations_that_cannot_work(self):
        self.config(**{"num.partitions": "many"})
        self.refused("num.partitions", "-s")
        self.config(**{"node.id": ""})
        self.refused("node.id", "-s")
        done = self.run_it("format", "-c", self.dir / "none", "-t", self.id)
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot be read", done.stderr)

    def test_users(self):
        good = "SCRAM-SHA-256=[name=alice,password=alice-secret]"
        bob = 'SCRAM-SHA-512=[name="bob",iterations=8192,salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5Y3k4OA==",password="a,b=c"]'
        for bad, text in (("alice", "--add-scram"), ("SCRAM-SHA-1=[name=a,password=b]", "--add-scram"),
                          ("SCRAM-SHA-256=[password=b]", "name"), ("SCRAM-SHA-256=[name=a]", "password"),
                          ("SCRAM-SHA-256=[name=a,password=b,iterations=4095]", "iterations"),
                          ("SCRAM-SHA-256=[name=a,password=b,iterations=16385]", "iterations"),
                          ("SCRAM-SHA-256=[name=a,password=b,salt=!]", "base64"),
                          ("SCRAM-SHA-256=[name=a,saltedpassword=AAAA]", "salt"),
                          ("SCRAM-SHA-256=[name=a,password=b,shoe=1]", "not known")):
            self.refused(text, "-s", "-S", bad)
        self.refused("twice", "-s", "-S", good, "-S", good)
        self.assertEqual(self.format("-s", "-S", good, "-S", bob).returncode, 0)
        data = (self.dir / "a" / CHECKPOINT).read_bytes()
        self.assertIn(b"alice", data)
        self.assertNotIn(b"alice-secret", data)
        self.assertIn(b"1lv4pdnw4fwq7notcxm0ycy88", data)  # the salt that was given

    def test_feature_levels(self):
        self.refused("not known", "-s", "-r", "9.9")
        self.refused("NAME=LEVEL", "-s", "-f", "metadata.version")
        self.refused("from 7 to", "-s", "-f", "metadata.version=6")
        self.refused("no such feature", "-s", "-f", "speed=1")
        self.refused("drop one", "-s", "-r", "4.3", "-f", "metadata.version=30")
        self.refused("needs metadata.version 11", "-s", "-r", "3.4", "-S", "SCRAM-SHA-256=[name=a,password=b]")
        self.assertEqual(self.format("-s", "--release-version=4.2").returncode, 0)

    def test_options_alone_mean_format(self):
        self.assertEqual(self.run_it("--config", self.file, "--cluster-id", self.id, "--standalone").returncode, 0)
        self.assertTrue((self.dir / "a" / "meta.properties").exists())

    def test_bad_command_lines(self):
        for args in (["bogus"], ["format", "--what"], ["format", "-t", self.id], ["format", "-c"], ["--what"], []):
            self.assertEqual(self.run_it(*args).returncode, 2, args)
        self.assertTrue(re.search("Usage", self.run_ok("--help")))


if __name__ == "__main__":
    unittest.main()
