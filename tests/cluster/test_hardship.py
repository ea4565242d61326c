# SPDX-License-Identifier: Apache-2.0
"""A node that is stopped for a while and goes on, and one with very few file descriptors."""
import os
import signal
import time

import pytest

import kraft
import wire


@pytest.mark.timeout(120)
def test_a_node_that_hung_for_longer_than_its_session_recovers(cluster):
    """SIGSTOP for 20 s: clients wait or fail meanwhile, then everything goes on by itself."""
    node = cluster.single()
    with wire.Client(node.port, timeout=60) as c:
        assert c.create_topics(['paused'])[0][1] == 0
        assert c.produce('paused', wire.batch([b'before'])) == (0, 0)
        node.signal(signal.SIGSTOP)
        c.send_produce('paused', wire.batch([b'meanwhile']))
        time.sleep(20)
        node.signal(signal.SIGCONT)
        error, offset = c.produced()  # sent while nobody listened: stored, or refused in so many words
        assert (error, offset) == (0, 1) or error in (5, 6), (error, offset)
        kraft.wait_for('broker', lambda: 1 in kraft.live_brokers(node.port), 15)
        kraft.wait_for('produce', lambda: c.produce('paused', wire.batch([b'after']))[0] == 0, 15)
        assert c.create_topics(['another'])[0][1] == 0
        end = c.end_offset('paused')
        assert end in (2, 3)
    time.sleep(1)
    assert kraft.live_brokers(node.port) == [1], 'it stays up'
    node.stop()


def test_two_hundred_partitions_with_64_descriptors(cluster):
    node = cluster.add(1)
    node.format(cluster.cluster_id, '--standalone')
    node.start(prefix=('prlimit', '--nofile=64:64'))
    with wire.Client(node.port) as c:
        assert c.create_topics(['many'], partitions=200)[0][1] == 0
        for turn in range(3):
            for p in range(200):
                kraft.wait_for('leader', lambda: c.produce('many', wire.batch([b'%d' % p]), partition=p) == (0, turn))
        for p in range(200):
            assert c.fetch('many', 0, partition=p)[2][0][3], p
    crowd = []
    for _ in range(100):  # more connections than descriptors: those are refused, the node lives
        try:
            crowd.append(wire.Client(node.port))
        except OSError:
            pass
    time.sleep(0.3)
    for c in crowd:
        c.close()

    def works():
        try:
            with wire.Client(node.port) as c:
                return c.produce('many', wire.batch(), partition=7)[0] == 0
        except OSError:
            return False
    kraft.wait_for('produce', works)
    node.stop()
    node.start()
    with wire.Client(node.port) as c:
        assert all(c.end_offset('many', p) >= 3 for p in range(200))
    node.stop()
    assert os.path.exists(os.path.join(node.data, '.kafka_cleanshutdown'))
