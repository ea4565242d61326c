# SPDX-License-Identifier: Apache-2.0
"""kcat, confluent-kafka and the Java client: what each writes comes back equal, record by record, to each of them."""
import filecmp
import os
import subprocess

import pytest

import peers
import records

PEERS = ['kcat', 'confluent', 'java']


@pytest.fixture
def peer(request):
    return request.getfixturevalue(request.param)


def by_peer(*names):
    return pytest.mark.parametrize('peer', names or PEERS, indirect=True)


def what_it_sends(peer, count):
    return peer.sayable(count) if peer.name == 'kcat' else records.mixed(count)


@by_peer()
@pytest.mark.parametrize('codec,acks', records.PAIRS)
def test_20000_records_come_back_equal(node, peer, codec, acks):
    """Null, empty and plain keys and values, headers; offsets dense from 0."""
    topic = f'{peer.name}-{codec}-{acks}'
    peers.make_topic(node, topic)
    sent = what_it_sends(peer, 20000)
    peer.write(topic, sent, codec, acks)
    peers.same(peer.read(topic, len(sent)), sent)


@by_peer()
@pytest.mark.parametrize('codec', records.CODECS)
def test_a_million_lines_of_text_come_back_equal(node, peer, codec, million_lines, tmp_path):
    topic = f'{peer.name}-{codec}-million'
    peers.make_topic(node, topic)
    peer.write_text(topic, million_lines, codec, '1')
    back = tmp_path / 'back'
    peer.read_text(topic, 1000000, back if peer.name != 'java' else str(back))
    assert filecmp.cmp(million_lines, back, shallow=False)
    back.unlink()


@pytest.mark.parametrize('codec', records.CODECS)
@by_peer()
def test_what_one_client_writes_the_others_read(node, peer, codec, kcat, confluent, java):
    topic = f'{peer.name}-{codec}-for-others'
    peers.make_topic(node, topic)
    sent = what_it_sends(peer, 3000)
    if peer.name != 'kcat':  # whose JSON form holds text only
        sent = [(k, v, [(n, b'bytes' if h == b'\x00\xff' else h) for n, h in headers]) for k, v, headers in sent]
    peer.write(topic, sent, codec)
    for reader in (kcat, confluent, java):
        peers.same(reader.read(topic, len(sent)), sent)


@by_peer('confluent', 'java')
def test_one_byte_and_ten_megabytes(node, peer):
    topic = f'{peer.name}-sizes'
    peers.make_topic(node, topic, max_message_bytes=peers.LARGE)
    sent = [(None, b'x', []), (None, os.urandom(10 * 1000 * 1000), []), (b'k', b'y', []), (os.urandom(2000000), b'', [])]
    peer.write(topic, sent)
    peers.same(peer.read(topic, len(sent)), sent)


def test_one_byte_and_ten_megabytes_by_kcat(node, kcat, tmp_path):
    """A file is a record; the reader writes values back to back."""
    peers.make_topic(node, 'kcat-sizes', max_message_bytes=peers.LARGE)
    sizes = [1, 10 * 1000 * 1000, 1]
    for i, size in enumerate(sizes):
        (tmp_path / f'{i}').write_bytes(os.urandom(size))
    kcat.run('-P', '-t', 'kcat-sizes', '-X', f'message.max.bytes={peers.LARGE}', *[str(tmp_path / f'{i}') for i in range(len(sizes))])
    back = kcat.run('-C', '-t', 'kcat-sizes', '-o', 'beginning', '-c', '3', '-q', '-D', '', '-f', '%s', '-X', f'fetch.message.max.bytes={peers.LARGE}')
    assert back == b''.join((tmp_path / f'{i}').read_bytes() for i in range(len(sizes)))


def test_kcat_lists_the_cluster_and_finds_offsets(node, kcat):
    peers.make_topic(node, 'kcat-offsets')
    kcat.write('kcat-offsets', kcat.sayable(100))
    assert b'topic "kcat-offsets" with 1 partitions' in kcat.run('-L', '-t', 'kcat-offsets')
    assert kcat.run('-Q', '-t', 'kcat-offsets:0:-1').split()[-1] == b'100'
    assert kcat.run('-Q', '-t', 'kcat-offsets:0:1').split()[-1] == b'0'


def test_kcat_reads_from_an_offset_and_from_the_end(node, kcat):
    peers.make_topic(node, 'kcat-seek')
    kcat.write('kcat-seek', kcat.sayable(100))
    assert kcat.run('-C', '-t', 'kcat-seek', '-o', '42', '-c', '1', '-q', '-f', '%o') == b'42'
    assert kcat.run('-C', '-t', 'kcat-seek', '-o', '-3', '-e', '-q', '-f', '%o ') == b'97 98 99 '


def test_kcat_is_told_of_a_topic_that_is_not_there(node, kcat):
    done = subprocess.run(['kcat', '-b', node.address, '-C', '-t', 'kcat-nowhere', '-e'], capture_output=True, text=True, timeout=30)
    assert done.returncode != 0 and 'Unknown topic or partition' in done.stderr
