// SPDX-License-Identifier: Apache-2.0
// One entry of log.dirs: its lock, its checkpoints, its clean-stop marks, the partitions in it, and whether
// it is online.
//
// Life: log_dir_open (locks, reads checkpoints and marks, deletes the marks), log_dir_list (what is there),
// plog_open for each, log_dir_loaded once all were opened; then log_dir_checkpoint from time to time, and at
// the end plog_close of each and log_dir_close. `meta.properties` belongs to storage/meta_properties.h. Any
// thread unless it says otherwise: the directory has a mutex of its own (taken after a partition's, never
// held over I/O of others).
#ifndef KRAFT_STORAGE_LOG_DIR_H
#define KRAFT_STORAGE_LOG_DIR_H

#include "core/base/err.h"
#include "core/base/slice.h"
#include "core/base/types.h"
#include "core/base/uuid.h"
#include "storage/file_cache.h"
#include "storage/vfs.h"

struct log_dir;
struct partition_log;

struct log_dir_options {
    struct vfs *fs;           // the real disk or a test's
    const char *path;         // the directory; made if missing
    struct file_cache *files; // descriptors, shared by the node; outlives the directory
    uint64_t reserve_bytes;   // size of the reserve file that is given up on a full disk so that recovery can
                              // run; 0 none
    uint64_t keep_free_bytes; // appends to partitions leave this much free space (ERR_NOSPACE); 0 no limit
    // Called once, from any thread, when the directory goes offline; may be NULL. Must not call back into
    // storage.
    void (*offline)(void *data, struct log_dir *dir, const char *reason);
    void *data;
};
// ERR_LOCKED: another process uses it. A checkpoint file that cannot be read counts as empty and makes the
// directory unclean; log_dir_warning says so. Slow.
int log_dir_open(const struct log_dir_options *opts, struct log_dir **out, struct errmsg *msg);

const char *log_dir_path(const struct log_dir *d);
const char *
log_dir_warning(const struct log_dir *d); // what was wrong with its files at the start; "" nothing
struct vfs *log_dir_fs(const struct log_dir *d);
struct uuid log_dir_id(const struct log_dir *d);
void log_dir_set_id(struct log_dir *d,
                    struct uuid directory_id);   // from meta.properties; before other threads use it
bool log_dir_was_clean(const struct log_dir *d); // .kafka_cleanshutdown was there
broker_epoch log_dir_previous_epoch(
    const struct log_dir *d); // broker epoch in it; -1 when it was not there (BrokerRegistration)

// ---- contents ---------------------------------------------------------------------------------------------
enum log_dir_kind {
    LOG_DIR_PARTITION, // TOPIC-N
    LOG_DIR_DELETED,   // TOPIC-N.UUID-delete: finish the removal (log_dir_remove_doomed)
    LOG_DIR_STRAY,     // TOPIC-N.UUID-stray
    LOG_DIR_FUTURE,    // TOPIC-N.UUID-future
    LOG_DIR_FOREIGN,   // no partition directory: leave alone
};
struct log_dir_entry {
    enum log_dir_kind kind;
    char name[256];  // directory name
    char topic[250]; // for partitions
    partition_id partition;
    struct uuid topic_id;      // of partition.metadata; zero when that is missing
    bool metadata_missing;     // there is no partition.metadata
    bool clean;                // no scan is needed
    bool from_manifest;        // nothing but the manifest was read for it
    log_offset high_watermark; // from the checkpoint; 0 when not in it
};
// Calls `each` for every partition directory (the metadata log included). After a clean stop of ours the
// manifest answers without a look at the disk. A non-zero answer ends the walk and is returned. Slow.
int log_dir_list(struct log_dir *d, int (*each)(void *data, const struct log_dir_entry *e), void *data,
                 struct errmsg *msg);
// "TOPIC-N" with N a number without sign or leading zeros; the last dash counts. False: no such name.
bool log_dir_parse_name(const char *name, char topic[250], partition_id *partition, enum log_dir_kind *kind);

// All logs were opened: from now on a clean stop may be marked (KAFKA-15375).
void log_dir_loaded(struct log_dir *d);

// Writes recovery-point, replication (high watermark) and log-start checkpoints, those that changed. Slow.
int log_dir_checkpoint(struct log_dir *d, struct errmsg *msg);
int log_dir_checkpoint_hw(struct log_dir *d, struct errmsg *msg); // only the high watermarks (every 5 s)
int log_dir_sync_all(struct log_dir *d, struct errmsg *msg); // syncfs: for many dirty logs at once. Slow.

// Renames a partition directory to TOPIC-N.UUID-SUFFIX (stray or delete); no log may be open there. Slow.
int log_dir_retire(struct log_dir *d, const char *name, const char *uuid_text, enum log_dir_kind kind,
                   struct errmsg *msg);
// Removes every *-delete directory. Slow. Returns how many in `*removed` (may be NULL).
int log_dir_remove_doomed(struct log_dir *d, unsigned *removed, struct errmsg *msg);

// ---- health -----------------------------------------------------------------------------------------------
bool log_dir_is_offline(const struct log_dir *d);
const char *log_dir_offline_reason(const struct log_dir *d); // "" while online
void log_dir_offline(struct log_dir *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); // first reason counts
int log_dir_space(struct log_dir *d, uint64_t *free_bytes, uint64_t *total_bytes);
bool log_dir_is_full(
    const struct log_dir *d); // the last write found no space (cleared by the next one that does)
int log_dir_reserve_restore(struct log_dir *d,
                            struct errmsg *msg); // makes the reserve file anew when there is room. Slow.

// ---- the end ----------------------------------------------------------------------------------------------
// Clean
// stop: call after plog_close of every log. Writes checkpoints, manifest and, if log_dir_loaded was called,
// everything closed without error and the directory is online, .kafka_cleanshutdown with the broker epoch,
// last of all. Unlocks and frees. Slow.
int log_dir_close(struct log_dir *d, broker_epoch epoch, struct errmsg *msg);
void log_dir_drop(struct log_dir *d); // unlocks and frees without writing (logs must be dropped before)

#endif
