# SPDX-License-Identifier: Apache-2.0
"""An Apache Kafka 4.4 broker in a cluster of Kraft controllers, beside a Kraft broker."""
import os
import signal
import subprocess

import kafka
import kraft
import quorum


class StockBroker:
    """Apache Kafka as a broker; `bootstrap` are Kraft's controllers."""

    def __init__(self, root, node_id, bootstrap):
        self.port, self.log = kraft.free_ports(1)[0], os.path.join(root, 'stock.log')
        self.config = os.path.join(root, 'stock.properties')
        self.process = None
        with open(self.config, 'w') as f:
            f.write(f'process.roles=broker\nnode.id={node_id}\nlisteners=PLAINTEXT://{kraft.HOST}:{self.port}\n'
                    'controller.listener.names=CONTROLLER\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n'
                    f'controller.quorum.bootstrap.servers={bootstrap}\nlog.dirs={root}/stock\n')

    def format(self, cluster_id):
        kafka.java('kafka.tools.StorageTool', 'format', '-t', cluster_id, '-c', self.config, '--no-initial-controllers')

    def start(self):
        with open(self.log, 'w') as log:
            self.process = subprocess.Popen(['java', '-Xmx400m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', kafka.classpath(), 'kafka.Kafka', self.config],
                                            stdout=log, stderr=log)

        def answers():
            assert self.process.poll() is None, open(self.log).read()[-3000:]
            try:
                return kraft.api_versions(self.port)
            except OSError:
                return None
        kraft.wait_for('answer of the stock broker', answers, 60, 0.2)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) in (0, 143)
        self.process = None

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def test_a_stock_broker_registers_leads_and_stops_in_order(cluster):
    """It fetches the metadata log, registers, leads partitions, takes and gives records, survives a controller's death, and is let go."""
    controllers, (broker,) = quorum.build(cluster)
    for n in controllers + [broker]:
        n.start(wait=False)
    broker.wait_answer()
    stock = StockBroker(cluster.root, 21, controllers[0].bootstrap)
    try:
        stock.format(cluster.cluster_id)
        stock.start()
        kraft.wait_for('unfencing of the stock broker', lambda: '21' in kraft.admin(broker.address, 'cluster').stdout, 30)
        quorum.create_topic(broker, 'shared', 8)
        described = kraft.admin(broker.address, 'topics', 'describe', '--topic', 'shared', '--output', 'json').stdout
        assert '"leader": 21' in described and '"leader": 11' in described
        text = ''.join(f'{i}\n' for i in range(5000))
        subprocess.run(['kcat', '-b', broker.address, '-P', '-t', 'shared'], input=text, text=True, check=True, timeout=60)
        controllers[quorum.leader_of(broker) - 1].kill()
        quorum.create_topic(broker, 'later', 2)
        back = subprocess.run(['kcat', '-b', f'{kraft.HOST}:{stock.port}', '-C', '-t', 'shared', '-e', '-q'], capture_output=True, text=True, timeout=60).stdout
        assert sorted(back.split()) == sorted(text.split())
        stock.stop()
        assert 'running' not in next((line for line in kraft.admin(broker.address, 'cluster').stdout.splitlines() if line.startswith('21')), '')
    finally:
        stock.kill()
