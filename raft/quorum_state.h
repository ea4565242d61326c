// SPDX-License-Identifier: Apache-2.0
// The term and the vote on disk: Kafka's `quorum-state` file, one line of JSON, version 0 (static) or 1
// (dynamic quorum).
//
// Written whole to `quorum-state.tmp`, synced, renamed, directory synced, before the vote is answered. A
// crash leaves the old file or the new one.
#ifndef KRAFT_RAFT_QUORUM_STATE_H
#define KRAFT_RAFT_QUORUM_STATE_H

#include "core/base/err.h"
#include "raft/voter_set.h"
#include "storage/vfs.h"

struct quorum_state {
    leader_epoch term;           // 0: the file is not there
    node_id voted;               // node id that this node voted for in `term`; -1 none
    struct uuid voted_directory; // its directory id (dynamic quorum)
};

// ERR_NOTFOUND: no file (term 0, no vote). ERR_CORRUPT, ERR_UNSUPPORTED (a version we do not know),
// ERR_INVALID (of the other quorum kind): never taken for a fresh node.
int quorum_state_read(struct vfs *fs, const char *dir, bool dynamic, struct quorum_state *out,
                      struct errmsg *msg);
// `cluster_id` and `voters` go into version 0 only.
int quorum_state_write(struct vfs *fs, const char *dir, bool dynamic, const char *cluster_id,
                       const struct voter_set *voters, const struct quorum_state *state, struct errmsg *msg);

// Writes `dir/name` whole: to `name.tmp`, synced, renamed, directory synced.
int quorum_file_replace(struct vfs *fs, const char *dir, const char *name, struct slice text,
                        struct errmsg *msg);
// Reads `dir/name` into *out (mem_alloc, NUL-terminated). ERR_TOO_LARGE above `bytes_max`.
int quorum_file_read(struct vfs *fs, const char *dir, const char *name, size_t bytes_max, char **out,
                     struct errmsg *msg);

#endif
