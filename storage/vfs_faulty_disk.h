// SPDX-License-Identifier: Apache-2.0
// Inside of the faulty disk: its files and directories, what of them is durable, and what a crash leaves.
//
// Each file has its bytes of now and its durable bytes; the changes between the two stand in a list. Names
// work the same way, with one journal for the whole disk. Not thread-safe: vfs_faulty.c holds its lock.
#ifndef KRAFT_STORAGE_VFS_FAULTY_DISK_H
#define KRAFT_STORAGE_VFS_FAULTY_DISK_H

#include "storage/vfs.h"

struct fdisk_bytes {
    uint8_t *data; // mem_alloc
    size_t size;   // bytes in use
    size_t cap;    // room
};

// A change of a file's bytes that is not durable yet.
struct fdisk_change {
    bool is_truncate; // size becomes `pos`; else a write
    uint64_t pos;     // first byte, or the new size
    size_t len;       // bytes written
    uint8_t *data;    // copy of them
};

struct fdisk_node;
struct fdisk_entry {
    char *name;              // mem_alloc
    struct fdisk_node *node; // counted
};
struct fdisk_entries {
    struct fdisk_entry *list; // in order of creation
    unsigned count, cap;      // used, room
};

struct fdisk_node {
    struct fdisk_node *next, **link; // all nodes of the disk
    unsigned refs;                   // names (of now and durable), name changes, handles
    bool is_dir;
    time_ms mtime;
    struct fdisk_bytes now, durable; // file: contents
    struct fdisk_change *changes;    // file: from durable to now
    unsigned changes_count, changes_cap;
    uint64_t reserved;                         // file: bytes set aside by allocate
    struct fdisk_entries names, durable_names; // directory: entries
    unsigned lock_generation;                  // generation that holds the lock; 0 none
    unsigned warm_epoch;                       // cold epoch in which readahead brought it in
    bool stopped;                              // directory, during a crash: later name changes are lost
};

// A change of names that is not durable yet: entry `from` disappears, entry `to` appears (or is replaced).
struct fdisk_rename {
    struct fdisk_node *from_dir, *to_dir; // counted; NULL where nothing disappears or appears
    char *from_name, *to_name;            // mem_alloc
    struct fdisk_node *node;              // what appears; counted; NULL for an unlink
    bool done;                            // durable already
};

struct fdisk {
    struct fdisk_node *root;  // "/"
    struct fdisk_node *nodes; // all
    struct fdisk_rename *log; // name changes in order
    unsigned log_count, log_cap;
    time_ms now; // stamps mtimes
};

void fdisk_init(struct fdisk *d);
void fdisk_fini(struct fdisk *d);
struct fdisk_node *fdisk_ref(struct fdisk_node *n);
void fdisk_unref(struct fdisk_node *n);

// The node of a path, or NULL. `parent` and `last` (may be NULL) get the directory and the last component.
struct fdisk_node *fdisk_find(struct fdisk *d, const char *path, struct fdisk_node **parent,
                              const char **last);
struct fdisk_node *fdisk_create(struct fdisk *d, struct fdisk_node *parent, const char *name, bool is_dir);
void fdisk_unlink(struct fdisk *d, struct fdisk_node *parent, const char *name);
void fdisk_move(struct fdisk *d, struct fdisk_node *from, const char *from_name, struct fdisk_node *to,
                const char *to_name);
void fdisk_write(struct fdisk *d, struct fdisk_node *n, const void *data, size_t len, uint64_t pos);
void fdisk_truncate(struct fdisk *d, struct fdisk_node *n, uint64_t size);
void fdisk_sync_file(struct fdisk_node *n);
void fdisk_sync_names(struct fdisk *d, struct fdisk_node *dir); // NULL: every directory
void fdisk_sync_everything(struct fdisk *d);
uint64_t fdisk_used(const struct fdisk *d);
// Forgets what is not durable but for a subset drawn from `seed` (none at all when `hard`).
void fdisk_crash(struct fdisk *d, uint64_t seed, bool hard);

uint64_t fdisk_random(uint64_t *state); // splitmix64

#endif
