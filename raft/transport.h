// SPDX-License-Identifier: Apache-2.0
// Connections between the members: dialling, hand-shake, whom a message goes to.
//
// Each member keeps one connection of its own to every other one (an outgoing link), and takes those that
// others make. A message goes over the outgoing link, or an incoming one while there is no other; it is
// queued once or dropped, never sent again: libraft repeats what it needs, and a vote must not be delivered
// twice.
#ifndef KRAFT_RAFT_TRANSPORT_H
#define KRAFT_RAFT_TRANSPORT_H

#include <raft.h>
#include "core/base/list.h"
#include "core/base/node.h"
#include "raft/message.h"
#include "raft/voter_set.h"

struct quorum;
struct peer;

struct link {
    struct list_node node;   // in transport.links
    struct quorum *q;        // owner
    struct node_conn *conn;  // the connection
    struct peer *peer;       // whose it is; NULL before the hand-shake of an incoming one
    bool outgoing;           // we dialled
    bool ready;              // hand-shake done
    bool closing;            // node_conn_close was called
    bool refused;            // the other end refused us: no hurry to come again
    struct node_timer hello; // closes it when the hand-shake does not come
};
struct peer {
    struct list_node node; // in transport.peers
    struct quorum *q;      // owner
    raft_id id;            // Raft id
    char address[RAFT_ADDRESS_BYTES];
    node_id node_id;                 // -1 not known
    struct uuid directory;           // of the hand-shake
    struct quorum_endpoint endpoint; // port 0: not known
    bool member;                     // in the newest configuration: keep a link to it
    bool dialing;                    // a dial is out
    struct link *out, *in;           // links that shook hands, or are about to (out)
    uint32_t retry_ms;               // pause before the next dial
    struct node_timer retry;         // of it
    bool gone_suspected;             // its link broke: a refused dial means that its process is gone
    unsigned short capacity;         // KiB free, from its answers
    bool answered;                   // capacity is known
    time_ms last_contact;            // wall clock of its last answer; -1
    time_ms last_caught_up;          // the same, when it had everything; -1
    mono_us snapshot_sent_at;        // 0: none, or it has caught up since
};
struct transport {
    struct list links; // link
    struct list peers; // peer
    bool closed;       // no more dials
    char *memory;      // text of the voter memory file; NULL none
};

void transport_init(struct quorum *q);
void transport_update(struct quorum *q); // the set of members or an endpoint changed: dials whom it should
void transport_close(struct quorum *q);  // closes every link
bool transport_idle(const struct quorum *q); // no link and no dial is left
void transport_fini(struct quorum *q);

struct peer *transport_peer(struct quorum *q, raft_id id); // NULL: not known
bool transport_connected(const struct peer *p);
// Queues a frame to a peer; empties `frame`. False: dropped.
bool transport_send(struct peer *p, struct rope *frame);
void transport_send_link(struct link *l, struct rope *frame);
void transport_close_link(struct link *l);

// ---- voter_memory.c: which directory id each node id first shook hands with (static quorums) ----
int voter_memory_load(struct quorum *q, struct errmsg *msg);
// 0: known or now written down; ERR_FENCED: another directory id is on record (and `replaced` is not set).
// Blocks on a small synced write at the first meeting.
int voter_memory_check(struct quorum *q, node_id node, struct uuid directory, bool replaced,
                       struct errmsg *msg);

#endif
