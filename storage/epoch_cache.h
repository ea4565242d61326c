// SPDX-License-Identifier: Apache-2.0
// Leader epochs of a log and where each began: leader-epoch-checkpoint in memory (KIP-101, KIP-279).
//
// Entries rise strictly in both columns. Pure; not thread-safe: lives under the partition's mutex.
#ifndef KRAFT_STORAGE_EPOCH_CACHE_H
#define KRAFT_STORAGE_EPOCH_CACHE_H

#include "core/base/err.h"
#include "core/base/slice.h"
#include "core/base/strbuf.h"
#include "core/base/types.h"

#define EPOCH_CACHE_NAME "leader-epoch-checkpoint"

struct epoch_entry {
    leader_epoch epoch; // >= 0
    log_offset start;   // first offset of it
};
struct epoch_cache {
    struct epoch_entry *list; // oldest first; NULL while empty
    unsigned count, cap;      // used, room
    bool dirty;               // differs from the file
};

void epoch_cache_init(struct epoch_cache *c);
void epoch_cache_fini(struct epoch_cache *c);
void epoch_cache_clear(struct epoch_cache *c);
// Begins an epoch at `start`. Later entries that this one contradicts (epoch or start not below) are removed,
// as Kafka does; nothing happens if the last entry's epoch is this one already. True if something changed.
bool epoch_cache_assign(struct epoch_cache *c, leader_epoch epoch, log_offset start);
// A record of `epoch` stands at `offset`: what contradicts it is removed, and an entry is added where there
// is none that covers it (recovery; appends of a follower). True if something changed.
bool epoch_cache_observe(struct epoch_cache *c, leader_epoch epoch, log_offset offset);
void epoch_cache_truncate_end(struct epoch_cache *c, log_offset end); // removes entries with start >= end
void epoch_cache_truncate_start(
    struct epoch_cache *c,
    log_offset start); // removes what ends at or below start, but keeps the covering one
leader_epoch epoch_cache_last(const struct epoch_cache *c); // -1 when empty
leader_epoch epoch_cache_at(const struct epoch_cache *c,
                            log_offset offset); // epoch that the offset belongs to; -1 none
// Largest epoch <= `epoch` and its end; log end for the last. False: none.
bool epoch_cache_end_of(const struct epoch_cache *c, leader_epoch epoch, log_offset log_end,
                        leader_epoch *found, log_offset *end);
log_offset epoch_cache_start_after(const struct epoch_cache *c,
                                   leader_epoch epoch); // start of the first epoch above; -1 none

// Text form: "0", the count, one "EPOCH START" a line. Parsing replaces the contents; ERR_CORRUPT leaves them
// empty.
int epoch_cache_parse(struct epoch_cache *c, struct slice text, struct errmsg *msg);
void epoch_cache_format(const struct epoch_cache *c, struct strbuf *out); // `out` is initialised here

#endif
