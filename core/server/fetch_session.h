// SPDX-License-Identifier: Apache-2.0
// Incremental fetch sessions (KIP-227): which partitions a fetcher follows and what it was told of them last.
//
// Session id 0 and epoch 0: a full fetch that wants a session. Id n and epoch e: incremental. Epoch -1: the
// session is closed, this fetch is full. The cache has a bounded number of slots; a new session takes the
// place of one that was idle for two minutes, or of one that ranks below it (consumers below followers, fewer
// partitions below more); else it gets id 0 and lives for one fetch.
//
// The cache is used from any thread. A session is used by one fetch at a time (`in_use`).
#ifndef KRAFT_SERVER_FETCH_SESSION_H
#define KRAFT_SERVER_FETCH_SESSION_H

#include "core/base/hmap.h"
#include "core/base/list.h"
#include "core/base/types.h"
#include "core/base/uuid.h"
#include "core/protocol/gen/fetch_request.h"

#define FETCH_SESSION_FINAL_EPOCH (-1)           // closes a session, or asks for none
#define FETCH_SESSION_FIRST_EPOCH 0              // asks for a new one
#define FETCH_SESSION_IDLE_US (120ull * 1000000) // after it a session gives way to any new one

// A partition that is fetched.
struct fetch_item {
    struct list_node link;          // in the session, in order of serving: what was served goes to the end
    struct uuid topic_id;           // from version 13 on; else zero
    struct slice topic;             // before version 13; else null; lies in `key`
    partition_id index;             // which partition
    log_offset offset;              // fetch offset
    int32_t max_bytes;              // partition_max_bytes
    leader_epoch current_epoch;     // -1 no check
    leader_epoch last_epoch;        // last fetched epoch; -1 no check
    log_offset log_start;           // follower's log start
    log_offset sent_high_watermark; // what it was told last; -1 to be told in any case
    log_offset sent_log_start;      // the same
    size_t key_len;                 // bytes of `key`
    uint8_t key[];                  // topic id or name, then the index: key in the session's map
};

struct fetch_session {
    int32_t id;         // 0: lives for one fetch
    int32_t epoch;      // of the next fetch
    bool by_id;         // asked by topic ids
    bool privileged;    // a follower's
    bool in_use;        // a fetch works with it
    bool closed;        // out of the cache: freed when no longer in use
    mono_us last_used;  // end of the last fetch
    struct list items;  // fetch_item
    struct hmap by_key; // the same by topic and index
};

struct fetch_sessions *fetch_sessions_create(int32_t slots);
void fetch_sessions_destroy(struct fetch_sessions *c); // NULL allowed

// Finds or makes the session of this fetch and brings it up to date. *incremental: tell only what changed.
// Errors (enum kafka_error): FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
// FETCH_SESSION_TOPIC_ID_ERROR.
int16_t fetch_session_begin(struct fetch_sessions *c, const struct kp_fetch_request *in, int16_t version,
                            bool privileged, mono_us now, uint64_t random, struct fetch_session **out,
                            bool *incremental);
// The fetch is over. A session that is in no slot is freed.
void fetch_session_end(struct fetch_sessions *c, struct fetch_session *s, mono_us now);
int32_t fetch_sessions_count(struct fetch_sessions *c);

#endif
