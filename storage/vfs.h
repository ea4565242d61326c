// SPDX-License-Identifier: Apache-2.0
// The file operations that storage needs, as a plug point: the real disk, or one that fails, tears and
// forgets.
//
// Paths are absolute or relative to the process. All calls may block and are made from pool threads or, for
// appends, hot reads and quorum-state, from a loop. Any thread; one file may be used by several threads at
// once as with pread/pwrite. Errors are ERR_ codes (ERR_NOTFOUND, ERR_EXISTS, ERR_NOSPACE, ERR_IO,
// ERR_LOCKED); `msg` may be NULL and gets the path and the reason.
#ifndef KRAFT_STORAGE_VFS_H
#define KRAFT_STORAGE_VFS_H

#include <sys/uio.h>
#include "core/base/err.h"
#include "core/base/rope.h"
#include "core/base/types.h"

enum vfs_open_flags {
    VFS_READ = 1,      // open for reading
    VFS_WRITE = 2,     // open for reading and writing
    VFS_CREATE = 4,    // create if missing
    VFS_EXCL = 8,      // with VFS_CREATE: ERR_EXISTS if it is there
    VFS_TRUNCATE = 16, // cut to length 0
};

struct vfs_stat {
    uint64_t size; // bytes
    time_ms mtime; // last modification
    bool is_dir;
};

struct vfs;
struct vfs_file {
    struct rope_file rope; // counted handle: refs, fd, read; first member, so that a file range can be sent
    struct vfs *fs;        // whose file this is
};

struct vfs_ops {
    const char *name; // "posix", "faulty"
    int (*open)(struct vfs *fs, const char *path, int flags, struct vfs_file **out, struct errmsg *msg);
    void (*close)(struct vfs_file *f); // last reference
    int (*pread)(struct vfs_file *f, void *buf, size_t len, uint64_t pos,
                 size_t *got); // short only at the end of file
    int (*pwritev)(struct vfs_file *f, const struct iovec *iov, int count,
                   uint64_t pos); // all or an error (part may be written)
    int (*size)(struct vfs_file *f, uint64_t *out);
    int (*truncate)(struct vfs_file *f, uint64_t size);
    int (*allocate)(struct vfs_file *f, uint64_t pos,
                    uint64_t len);   // reserve space, size unchanged; ERR_UNSUPPORTED where it cannot
    int (*sync)(struct vfs_file *f); // fdatasync
    // Are these bytes in the page cache? 1 yes, 0 no (or not known). Never blocks.
    int (*cached)(struct vfs_file *f, uint64_t pos, uint64_t len);
    int (*readahead)(struct vfs_file *f, uint64_t pos, uint64_t len); // brings them in; may block
    int (*sync_dir)(struct vfs *fs, const char *path); // makes creates, renames and unlinks in it durable
    int (*sync_fs)(struct vfs *fs, const char *path);  // everything dirty on that file system (syncfs)
    int (*mkdir)(struct vfs *fs, const char *path);    // ERR_EXISTS is an error
    int (*rename)(struct vfs *fs, const char *from, const char *to); // replaces `to`; also directories
    int (*unlink)(struct vfs *fs, const char *path);
    int (*rmdir)(struct vfs *fs, const char *path);
    int (*stat)(struct vfs *fs, const char *path, struct vfs_stat *out);
    // Calls `each` for every entry but "." and ".."; a non-zero answer ends the walk and is returned.
    int (*list)(struct vfs *fs, const char *path, int (*each)(void *data, const char *name, bool is_dir),
                void *data);
    int (*lock)(struct vfs *fs, const char *path,
                struct vfs_file **out); // creates and flocks; ERR_LOCKED; unlocked by vfs_file_unref
    int (*space)(struct vfs *fs, const char *path, uint64_t *free_bytes,
                 uint64_t *total_bytes); // for this process
};

struct vfs {
    const struct vfs_ops *ops;
};

struct vfs *vfs_posix(void); // the real disk; constant, no state

static inline void vfs_file_ref(struct vfs_file *f)
{
    rope_file_ref(&f->rope);
}
static inline void vfs_file_unref(struct vfs_file *f)
{
    rope_file_unref(&f->rope);
}

#endif
