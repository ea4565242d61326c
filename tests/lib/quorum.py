# SPDX-License-Identifier: Apache-2.0
"""Clusters of several nodes for tests: three controllers and brokers, or three combined nodes; who leads; images."""
import json
import os
import subprocess
import time

import kraft


def build(cluster, controllers=3, brokers=1, combined=False, extra=None, static=False, first=1, options=()):
    """Formats the nodes of a quorum; returns (controllers, brokers), the same nodes when combined.

    Node ids begin at `first`; `options` are further options of kraft-format, a list for each controller."""
    ports = kraft.free_ports(controllers)
    ids = list(range(first, first + controllers))
    servers = ','.join(f'{kraft.HOST}:{p}' for p in ports)
    directories = [kraft.random_uuid() for _ in ids]
    voters = ','.join(f'{i}@{kraft.HOST}:{p}:{d}' for i, p, d in zip(ids, ports, directories))
    roles = 'broker,controller' if combined else 'controller'
    keys = dict(extra or {})
    if static:
        keys['controller.quorum.voters'] = ','.join(f'{i}@{kraft.HOST}:{p}' for i, p in zip(ids, ports))
        keys['controller.quorum.bootstrap.servers'] = None
    nodes = [cluster.add(i, roles=roles, controller_port=p, bootstrap=servers, extra=keys) for i, p in zip(ids, ports)]
    for i, n in enumerate(nodes):
        n.format(cluster.cluster_id, *([] if static else ['--initial-controllers', voters]), *(options[i] if options else []))
    if combined:
        return nodes, nodes
    others = []
    for i in range(brokers):
        b = cluster.add(11 + i, roles='broker', bootstrap=servers, extra=keys)
        b.format(cluster.cluster_id, *([] if static else ['--no-initial-controllers']))
        others.append(b)
    return nodes, others


def describe(node, timeout=30):
    """kraft-admin quorum describe as JSON."""
    out = kraft.admin(node.address, 'quorum', 'describe', '--output', 'json', timeout=timeout)
    return json.loads(out.stdout)


def leader_of(node):
    return describe(node)['leader']


def wait_leader(node, seconds=10):
    def known():
        try:
            return describe(node)['leader']
        except (AssertionError, KeyError, ValueError, subprocess.TimeoutExpired):
            return None
    value = kraft.wait_for('leader of the quorum', lambda: (lambda v: v if v is not None and v >= 0 else None)(known()), seconds)
    return value


def dump(node, *options):
    """The records of the image that the node's metadata directory holds, in canonical order."""
    done = subprocess.run([kraft.tool('kraft-dump'), 'metadata', '--output', 'json', *options, node.data], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def create_topic(node, name, partitions=1, timeout=30, check=True):
    return kraft.admin(node.address, 'topics', 'create', '--topic', name, '--partitions', str(partitions), '--timeout', str(timeout), check=check)


def topics(node):
    out = kraft.admin(node.address, 'topics', 'list', '--output', 'json')
    return out.stdout


def seconds(call):
    start = time.monotonic()
    call()
    return time.monotonic() - start
