// SPDX-License-Identifier: Apache-2.0
// A controller quorum in a simulated world, with the checks that hold at every step. Verbs for the tests.
#ifndef KRAFT_TEST_RAFT_CLUSTER_H
#define KRAFT_TEST_RAFT_CLUSTER_H

#include "core/base/logline.h"
#include "core/base/uuid.h"
#include "raft/format.h"
#include "raft/quorum.h"
#include "tests/sim/world/world.h"

#define CLUSTER_MAX 7
#define CLUSTER_PORT 9093
#define CLUSTER_DIR "data/__cluster_metadata-0"

struct cluster;
struct server {
    struct cluster *c;         // owner
    unsigned number;           // 0..
    struct world_host *host;   // machine
    struct quorum *q;          // NULL: down
    struct node_loop *loop;    // its loop
    struct uuid directory;     // its directory id
    bool formatted;            // directory was written
    bool active;               // last on_leadership
    node_id leader;            // the same
    leader_epoch term;         // the same; never goes back over restarts
    log_offset image_end;      // last on_image
    log_offset checked;        // log bytes compared up to here in this life
    bool stopped;              // hooks.stopped came
    int create_err;            // of the last start
    struct errmsg why;         // of it
    log_offset high_watermark; // of this life
    uint64_t memory_left;      // bytes of the node after an orderly stop
};
struct acked {
    unsigned id;     // of the proposal
    log_offset base; // its offset
};
struct seen_batch {
    log_offset base, next; // offsets
    uint32_t crc;          // of the batch
    leader_epoch epoch;    // its term
};
struct seen_image {
    log_offset end;     // end offset
    uint64_t low, high; // hash
};
struct cluster_opts {
    unsigned voters;         // first ones
    unsigned servers;        // in all
    bool dynamic;            // kind of quorum
    uint32_t snapshot_bytes; // 0: none
    uint32_t election_ms;    // timeout
    uint32_t fetch_bytes;    // chunk of a snapshot fetch
    int64_t retention_bytes; // 0: default
    uint32_t segment_bytes;  // 0: default
    uint32_t trailing_bytes; // 0: default
    uint32_t append_bytes;   // 0: default
};
struct cluster {
    struct world *w;
    struct cluster_opts opts;
    struct server servers[CLUSTER_MAX];
    unsigned count;
    int leader_of_term[4096]; // server + 1
    struct acked *acked;      // committed proposals
    size_t acked_count, acked_cap;
    struct seen_batch *batches; // by order of base
    size_t batches_count, batches_cap;
    struct seen_image *images;
    size_t images_count, images_cap;
    unsigned proposed, failed, unknown; // counters
    struct attempt *attempts;           // proposals ever made
    size_t bytes_proposed;              // large images are compared at some offsets only
    unsigned changes_done;              // answers of membership changes
    int change_err;                     // of the last one
    char change_why[256];
    bool stops_allowed;  // a server may stop itself (failing disks): it counts as crashed then
    struct log_sink log; // fails the test when a member finds a message of another one malformed
    bool loud;           // print what happens
};

struct cluster *cluster_new(uint64_t seed, const struct cluster_opts *o);
void cluster_free(struct cluster *c);
void cluster_start(struct cluster *c, unsigned i); // formats at the first time
void cluster_start_all(struct cluster *c);         // the voters
void cluster_crash(struct cluster *c, unsigned i, bool machine);
void cluster_stop(struct cluster *c, unsigned i); // orderly; runs until it is down
void cluster_run(struct cluster *c, uint64_t ms);
int cluster_active(const struct cluster *c);              // server number, -1 none
bool cluster_wait_active(struct cluster *c, uint64_t ms); // a server that is up is active
// Proposes one small record at the active server. Answers quorum_propose's code, ERR_NOTLEADER without an
// active one.
int cluster_propose(struct cluster *c);
int cluster_propose_bytes(struct cluster *c, size_t bytes);
bool cluster_commit(struct cluster *c, unsigned n,
                    uint64_t ms); // n proposals, one after the other, all acknowledged
// Everything up and reachable: a leader, equal ends everywhere, every acknowledged proposal in every image.
void cluster_settle(struct cluster *c, uint64_t ms);
void cluster_check_acked(struct cluster *c, unsigned i);
struct quorum_voter cluster_voter(const struct cluster *c, unsigned i);
void cluster_add(struct cluster *c, unsigned i);
void cluster_remove(struct cluster *c, unsigned i);
bool cluster_wait_change(struct cluster *c, unsigned done, uint64_t ms); // changes_done reaches `done`

#endif
