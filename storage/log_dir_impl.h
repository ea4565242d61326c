// SPDX-License-Identifier: Apache-2.0
// Inside of a log directory: its struct, and what logs ask of it.
#ifndef KRAFT_STORAGE_LOG_DIR_IMPL_H
#define KRAFT_STORAGE_LOG_DIR_IMPL_H

#include <stdatomic.h>
#include "core/base/hmap.h"
#include "core/base/list.h"
#include "core/base/mutex.h"
#include "storage/log_dir.h"
#include "storage/layout.h"
#include "storage/manifest.h"

#define LOG_DIR_LOCK_NAME ".lock"
#define LOG_DIR_RESERVE_NAME ".kraft-reserve"
#define LOG_DIR_NAME_BYTES 300 // "TOPIC-N.UUID-delete" before it is capped, with its NUL

// What was checkpointed for a partition, or what it was when it was closed.
struct log_dir_saved {
    char *name;       // "TOPIC-N"; mem_alloc; key of the map
    size_t topic_len; // bytes of TOPIC in it
    partition_id partition;
    log_offset recovery, watermark, start; // -1: not in that file
    bool manifest;                         // the rest is known as well
    struct uuid topic_id;                  // zero: not known
    log_offset end;
    log_offset first_base; // -1 not known
    uint64_t size;
    leader_epoch last_epoch;
};

struct log_dir {
    struct vfs *fs;
    char *path;               // mem_alloc
    struct file_cache *files; // the node's
    struct uuid id;           // directory.id
    struct vfs_file *lock;    // held while the directory is open
    void (*offline)(void *data, struct log_dir *dir, const char *reason);
    void *data;
    struct mutex mutex;              // around the lists and maps below
    struct list logs;                // open logs
    struct hmap saved;               // name -> struct log_dir_saved: as read at the start
    struct hmap closed;              // the same, as logs were closed
    bool was_clean;                  // the clean-stop mark was there
    bool has_manifest;               // `saved` is complete: no need to list the directory
    bool checkpoint_bad;             // the recovery points could not be read
    bool loaded;                     // log_dir_loaded was called
    bool close_unsynced;             // closed logs wrote files that were not synced
    bool close_failed;               // a log was not closed cleanly
    struct mutex writer;             // held by the thread that writes checkpoints; taken before `mutex`
    broker_epoch previous;           // of the mark; -1 none
    struct errmsg warning;           // what was wrong with the files at the start; "" nothing
    uint64_t reserve_bytes;          // size of the reserve file; 0 none
    atomic_bool reserve_there;       // it exists
    uint64_t keep_free_bytes;        // free space that appends leave; 0 no limit
    _Atomic int64_t room;            // bytes that may be appended before the file system is asked again
    atomic_bool is_offline;          // for the life of the process
    atomic_bool reason_set;          // `reason` is being or was written
    struct errmsg reason;            // why
    atomic_bool full;                // the last write found no space
    atomic_bool touched_hw, touched; // checkpointed values have changed
};

struct file_cache *log_dir__files(const struct log_dir *d);
void log_dir__attach(struct log_dir *d, struct partition_log *log);
void log_dir__detach(struct log_dir *d, struct partition_log *log);
void log_dir__note_closed(struct log_dir *d, const struct partition_log *log,
                          bool good); // for the checkpoints and the manifest
void log_dir__note_full(struct log_dir *d, bool full);
// May `bytes` be appended? Asks the file system now and then, more often the fuller it is. Any thread.
bool log_dir__has_room(struct log_dir *d, uint64_t bytes);
bool log_dir__give_reserve(struct log_dir *d); // unlinks the reserve file; false: there is none (left)
void log_dir__touch(struct log_dir *d, bool watermark_only); // a checkpointed value has changed
// Copy of what is known of a partition; NULL-named where nothing is. `name` is not to be freed.
void log_dir__saved(struct log_dir *d, const char *topic, partition_id partition, struct log_dir_saved *out);
struct log_dir_saved *log_dir__obtain(struct hmap *map, const char *name, size_t topic_len,
                                      partition_id partition);
void log_dir__map_clear(struct hmap *map);
void log_dir__path(const struct log_dir *d, const char *name, char buf[LAYOUT_PATH_BYTES]);
int log_dir__read_checkpoints(struct log_dir *d,
                              struct manifest_sums *sums); // into `saved`; sets warning and checkpoint_bad
int log_dir__write_all(struct log_dir *d, bool force, struct manifest_sums *sums, struct errmsg *msg);

#endif
