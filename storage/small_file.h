// SPDX-License-Identifier: Apache-2.0
// Small files that are read whole and replaced whole: written beside, synced, renamed, directory synced.
//
// A crash leaves the old file or the new one, and maybe PATH.tmp, which is written over the next time.
#ifndef KRAFT_STORAGE_SMALL_FILE_H
#define KRAFT_STORAGE_SMALL_FILE_H

#include "core/base/err.h"
#include "core/base/slice.h"
#include "storage/vfs.h"

#define SMALL_FILE_BYTES_MAX                                                                                 \
    (256u << 20) // more is no file of ours: a checkpoint of a million partitions has 60 MB

// The whole file, NUL behind it, by mem_alloc. ERR_NOTFOUND, ERR_TOO_LARGE, ERR_IO.
int small_file_read(struct vfs *fs, const char *path, char **out, size_t *len, struct errmsg *msg);
// Replaces or creates the file; `durable` false leaves out both syncs (what can be made anew from elsewhere).
int small_file_replace(struct vfs *fs, const char *path, struct slice bytes, bool durable,
                       struct errmsg *msg);
// Writes a file in place, neither atomically nor durably: for one whose absence or damage does no harm.
int small_file_write(struct vfs *fs, const char *path, struct slice bytes, struct errmsg *msg);
// Removes a file; one that is not there is no error. Not synced.
int small_file_remove(struct vfs *fs, const char *path, struct errmsg *msg);

#endif
