# SPDX-License-Identifier: Apache-2.0
"""Who a node is: id zero, nodes that were formatted each on its own, a static quorum that forms one by one, replaced disks."""
import os
import shutil

import pytest

import kraft
import quorum


@pytest.mark.parametrize('static', [False, True], ids=['dynamic', 'static'])
def test_node_zero_is_a_voter_like_any_other(cluster, static):
    nodes, _ = quorum.build(cluster, combined=True, static=static, first=0)
    for n in nodes:
        n.start(wait=False)
    for n in nodes:
        n.wait_answer()
    for round_ in range(3):  # each of them leads once, node 0 too
        leader = quorum.leader_of(next(n for n in nodes if n.running()))
        nodes[leader].stop()
        others = [n for n in nodes if n.running()]
        quorum.create_topic(others[0], f'without-{leader}-{round_}')
        nodes[leader].start()


def test_a_static_quorum_of_fresh_disks_forms_one_after_the_other(cluster):
    nodes, _ = quorum.build(cluster, combined=True, static=True)
    nodes[0].start(wait=False)
    kraft.wait_for('the first node to listen', lambda: answers(nodes[0]))
    nodes[1].start(wait=False)
    nodes[0].wait_answer()
    nodes[1].wait_answer()
    quorum.create_topic(nodes[0], 'by-two')
    nodes[2].start()
    assert 'by-two' in quorum.topics(nodes[2])
    kraft.wait_for('equal logs', lambda: len({r['log_end_offset'] for r in quorum.describe(nodes[0])['replicas']}) == 1)


def answers(node):
    assert node.running(), node.log_tail()
    try:
        return kraft.api_versions(node.controller_port)
    except OSError:
        return None


def test_nodes_formatted_on_their_own_end_with_equal_images(cluster):
    """Other feature levels and other salts on each: what the first leader's checkpoint says is what all have."""
    options = [['--add-scram', 'SCRAM-SHA-256=[name=admin,password=one]'],
               ['--add-scram', 'SCRAM-SHA-256=[name=admin,password=two]', '--add-scram', 'SCRAM-SHA-512=[name=other,password=x]'],
               ['--release-version', '4.0']]
    nodes, _ = quorum.build(cluster, combined=True, options=options)
    for n in nodes:
        n.start(wait=False)
    for n in nodes:
        n.wait_answer()
    for i in range(5):
        quorum.create_topic(nodes[i % 3], f't{i}')
    kraft.wait_for('equal logs', lambda: len({r['log_end_offset'] for r in quorum.describe(nodes[0])['replicas']}) == 1)
    for n in nodes:
        n.kill()
    dumps = [quorum.dump(n).splitlines() for n in nodes]
    least = min(len(d) for d in dumps)
    scram = [[line for line in d if 'Scram' in line] for d in dumps]
    assert scram[0] == scram[1] == scram[2]
    assert [[line for line in d if 'FeatureLevel' in line] for d in dumps].count([line for line in dumps[0] if 'FeatureLevel' in line]) == 3
    assert [line for line in dumps[0] if 'TopicRecord' in line] == [line for line in dumps[2] if 'TopicRecord' in line]
    assert least > 5


@pytest.mark.parametrize('static', [False, True], ids=['dynamic', 'static'])
def test_a_wiped_voter_does_not_come_back_as_itself(cluster, static):
    """Its peers remember the directory: a static voter is refused until told that the disk was replaced, a dynamic one is new."""
    nodes, _ = quorum.build(cluster, combined=True, static=static)
    for n in nodes:
        n.start(wait=False)
    for n in nodes:
        n.wait_answer()
    quorum.create_topic(nodes[0], 'before')
    leader = quorum.leader_of(nodes[0])
    victim = next(n for n in nodes if n.id != leader)  # the leader remembers how far it was
    victim.kill()
    shutil.rmtree(victim.data)
    victim.format(cluster.cluster_id, *([] if static else ['--no-initial-controllers']))
    victim.start(wait=False)
    if static:
        kraft.wait_for('refusal', lambda: not victim.running() or 'disk' in victim.log_tail(60), 15)
        assert 'disk-replaced' in victim.log_tail(60), victim.log_tail(60)
        victim.kill()
    others = [n for n in nodes if n is not victim]
    quorum.create_topic(others[0], 'meanwhile')
    if static:  # told that the disk was replaced it gets the whole log, whoever led before
        victim.extra_arguments = ['--disk-replaced']
        victim.start()
        kraft.wait_for('equal logs', lambda: len({r['log_end_offset'] for r in quorum.describe(others[0])['replicas']}) == 1, 15)
        assert 'meanwhile' in quorum.topics(victim)
    voters = [r for r in quorum.describe(others[0])['replicas'] if r.get('role', r.get('kind')) in ('voter', 'leader', 'follower', None)]
    assert len(voters) >= 2


def test_a_directory_of_another_cluster_is_refused(cluster):
    node = cluster.single()
    node.stop()
    path = os.path.join(node.data, 'meta.properties')
    with open(path) as f:
        text = f.read()
    with open(path, 'w') as f:
        f.write(text.replace(f'node.id={node.id}', 'node.id=99'))
    node.start(wait=False)
    assert node.process.wait(10) != 0
    assert '99' in node.log_tail() and 'meta.properties' in node.log_tail()
    node.process = None
