// SPDX-License-Identifier: Apache-2.0
// The node's open files: an LRU of descriptors, so that 100,000 partitions need only as many as are in use.
//
// Any thread: has a mutex of its own, never held over I/O. A file that is handed out is counted and stays
// open for its user even when the cache closes its own reference.
#ifndef KRAFT_STORAGE_FILE_CACHE_H
#define KRAFT_STORAGE_FILE_CACHE_H

#include "core/base/err.h"
#include "core/base/mutex.h"
#include "storage/vfs.h"

// Where a file that may be open is remembered; zero it before first use. Belongs to its owner, who closes it
// before freeing it. One slot is used under its owner's lock; the cache may close its file at any time.
struct file_slot {
    struct vfs_file *file;         // the cache's reference; NULL: not open
    struct file_slot *prev, *next; // most recently used first; owned by the cache
};

struct file_cache;
struct file_cache *
file_cache_new(unsigned files_max);         // most descriptors kept open without being in use (>= 1)
void file_cache_free(struct file_cache *c); // every slot must be closed

// A counted file for the slot: the open one, or `path` opened with `flags` (vfs_open_flags). Give it back
// with vfs_file_unref.
int file_cache_get(struct file_cache *c, struct file_slot *s, struct vfs *fs, const char *path, int flags,
                   struct vfs_file **out, struct errmsg *msg);
// The open file of the slot, counted, or NULL: never opens.
struct vfs_file *file_cache_peek(struct file_cache *c, struct file_slot *s);
void file_cache_put(struct file_cache *c, struct file_slot *s,
                    struct vfs_file *f); // remembers an open file (takes its own reference)
void file_cache_close(struct file_cache *c, struct file_slot *s); // forgets it; nothing if not open
unsigned file_cache_open(struct file_cache *c);                   // files open now

#endif
