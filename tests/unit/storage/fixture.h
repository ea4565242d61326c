// SPDX-License-Identifier: Apache-2.0
// Verbs for storage tests: a node's log directory on the faulty disk, logs in it, batches to put there.
#ifndef KRAFT_TESTS_STORAGE_FIXTURE_H
#define KRAFT_TESTS_STORAGE_FIXTURE_H

#include "core/record/builder.h"
#include "storage/log.h"
#include "storage/log_dir.h"
#include "storage/vfs_faulty.h"

// What a batch shall be; zero fields have the usual value.
struct batch_spec {
    log_offset base;    // base offset
    int count;          // records; 0 = 1
    leader_epoch epoch; // leader epoch
    time_ms time;       // of the first record; each later one is 1 ms later; 0 = 1000000 + base
    int value_bytes;    // of each value; 0 = 20
    enum codec codec;   // how to pack
    int64_t producer;   // producer id + 1; 0 none
    int16_t producer_epoch;
    int32_t sequence; // base sequence
    bool transactional;
    bool marker, commit; // a transaction marker instead of records
    uint8_t fill;        // value of the bytes
};

struct store {
    struct vfs_faulty *disk;
    struct file_cache *files;
    struct log_dir *dir;
    struct log_config config; // for logs that are opened from now on
    struct uuid topic_id;
    time_ms now; // wall clock
};

void store_init(struct store *s, uint64_t seed);
void store_fini(struct store *s);
void store_open_dir(struct store *s); // must work
int store_try_open_dir(struct store *s, struct errmsg *msg);
void store_close_dir(struct store *s); // clean
void store_drop_dir(struct store *s);  // as a crash does

struct partition_log *store_create(struct store *s, const char *topic);
struct partition_log *store_reopen(struct store *s, const char *topic, bool clean,
                                   struct plog_recovery *report); // must work
int store_try_reopen(struct store *s, const char *topic, bool clean, struct plog_recovery *report,
                     struct partition_log **out, struct errmsg *msg);

// A batch in memory of its own (free with mem_free through batch_free).
struct slice batch_make(const struct batch_spec *spec);
void batch_free(struct slice b);
int store_append(struct store *s, struct partition_log *log, const struct batch_spec *spec,
                 struct errmsg *msg); // as a leader would
void store_append_ok(struct store *s, struct partition_log *log, const struct batch_spec *spec);
// Appends `batches` batches of `count` records each at the log end.
void store_fill(struct store *s, struct partition_log *log, int batches, int count);

// Reads everything from `from` on through plog_read and gives the bytes (mem_alloc) in offset order.
uint8_t *store_read_all(struct partition_log *log, log_offset from, size_t *len);
// Checks that all batches from the start on can be read, rise and have good checksums; gives how many there
// are.
int store_verify(struct partition_log *log);

#endif
