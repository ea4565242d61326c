# SPDX-License-Identifier: Apache-2.0
"""One node and kcat: the minute-long proof that the whole path works."""
import os
import subprocess

import kraft

TEXT = os.path.join(kraft.TOP, 'LICENSE')


def kcat(node, *args, **options):
    return subprocess.run(['kcat', '-b', node.address, '-X', 'allow.auto.create.topics=true', *args], check=True, capture_output=True, timeout=60, **options)


def test_lines_sent_with_kcat_come_back_equal(cluster):
    node = cluster.single()
    kraft.admin(node.address, 'topics', 'create', '--topic', 'smoke', '--partitions', '1')
    kcat(node, '-P', '-t', 'smoke', '-l', TEXT)
    back = kcat(node, '-C', '-t', 'smoke', '-o', 'beginning', '-e', '-q').stdout
    with open(TEXT, 'rb') as f:
        lines = [line for line in f.read().split(b'\n') if line]  # kcat sends no empty lines
    assert [line for line in back.split(b'\n') if line] == lines
    node.stop()


def test_records_survive_a_clean_restart_and_a_kill(cluster):
    node = cluster.single()
    kraft.admin(node.address, 'topics', 'create', '--topic', 'restart', '--partitions', '1')
    for end in (node.stop, node.kill):
        kcat(node, '-P', '-t', 'restart', '-X', 'acks=1', input=b'one\ntwo\nthree\n')
        before = kcat(node, '-C', '-t', 'restart', '-o', 'beginning', '-e', '-q').stdout
        end()
        node.start()
        assert kcat(node, '-C', '-t', 'restart', '-o', 'beginning', '-e', '-q').stdout == before
    node.stop()


def test_our_own_tool_produces_and_consumes(cluster):
    node = cluster.single()
    kraft.admin(node.address, 'topics', 'create', '--topic', 'own', '--partitions', '3')
    kraft.admin(node.address, 'produce', '--topic', 'own', '--file', TEXT)
    back = kraft.admin(node.address, 'consume', '--topic', 'own', '--from-beginning', '--exit-eof')
    with open(TEXT) as f:
        assert sorted(back.stdout.splitlines()) == sorted(f.read().splitlines())
    node.stop()
