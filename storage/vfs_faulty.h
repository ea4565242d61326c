// SPDX-License-Identifier: Apache-2.0
// A disk in memory that fails, tears, forgets and fills up, as told; everything it does follows from its
// seed.
//
// What is durable. Bytes of a file are durable after `sync` of that file (or sync_fs); a name is durable
// after `sync_dir` of its directory (or sync_fs). A size change belongs to the bytes. vfs_faulty_crash keeps
// what is durable and, of everything else, a seeded subset: each unsynced write may be kept, lost, or torn at
// a sector; each unsynced name change may be kept or lost (in order within one directory). Time stands still
// unless vfs_faulty_set_time moves it (mtimes). Thread-safe (one lock); deterministic if the calls come in
// the same order.
#ifndef KRAFT_STORAGE_VFS_FAULTY_H
#define KRAFT_STORAGE_VFS_FAULTY_H

#include "storage/vfs.h"

enum vfs_call {
    VFS_CALL_OPEN,
    VFS_CALL_CREATE, // open that makes a new file
    VFS_CALL_READ,
    VFS_CALL_WRITE,
    VFS_CALL_TRUNCATE,
    VFS_CALL_ALLOCATE,
    VFS_CALL_SYNC,
    VFS_CALL_SYNC_DIR,
    VFS_CALL_SYNC_FS,
    VFS_CALL_MKDIR,
    VFS_CALL_RENAME,
    VFS_CALL_UNLINK,
    VFS_CALL_RMDIR,
    VFS_CALL_STAT,
    VFS_CALL_LIST,
    VFS_CALL_LOCK,
    VFS_CALLS,                // how many kinds
    VFS_CALL_ANY = VFS_CALLS, // for vfs_faulty_fail: counts calls of all kinds that change something
};

struct vfs_faulty;
struct vfs_faulty *vfs_faulty_new(uint64_t seed);
void vfs_faulty_free(struct vfs_faulty *v); // all files must be given back
struct vfs *vfs_faulty_fs(struct vfs_faulty *v);

// ---- faults -----------------------------------------------------------------------------------------------
// The n-th
// call of this kind from now on (1 = the next) answers `err`; with `sticky` all later ones too. A failing
// write may have written a seeded part of its bytes first when `partial`. One rule per kind; n 0 takes it
// back.
void vfs_faulty_fail(struct vfs_faulty *v, enum vfs_call kind, uint64_t n, int err, bool sticky,
                     bool partial);
void vfs_faulty_fail_path(struct vfs_faulty *v,
                          const char *part); // rules count only calls whose path contains this; NULL: all
void vfs_faulty_heal(struct vfs_faulty *v);  // takes back every rule
uint64_t vfs_faulty_calls(const struct vfs_faulty *v,
                          enum vfs_call kind);          // calls so far (VFS_CALL_ANY: that change something)
uint64_t vfs_faulty_failed(const struct vfs_faulty *v); // calls that a rule has failed
void vfs_faulty_set_capacity(struct vfs_faulty *v,
                             uint64_t bytes); // most bytes of all files, 0 = no limit: ERR_NOSPACE past it
void vfs_faulty_set_time(struct vfs_faulty *v, time_ms now);
void vfs_faulty_set_cached(struct vfs_faulty *v,
                           bool cached); // what `cached` answers (readahead makes a range cached again)

// ---- crashes ----------------------------------------------------------------------------------------------
// The
// machine stops: keeps what is durable and a subset of the rest drawn from `seed`; what is left is durable.
// Open files are dead (every call on them answers ERR_IO) and locks are gone.
void vfs_faulty_crash(struct vfs_faulty *v, uint64_t seed);
// The same, but nothing that was not durable is kept.
void vfs_faulty_crash_hard(struct vfs_faulty *v);
// Only the process stops: nothing is lost; open files are dead and locks are gone.
void vfs_faulty_kill(struct vfs_faulty *v);

// ---- the disk itself, for tests ---------------------------------------------------------------------------
// Flips bits of one byte,
// durably. ERR_NOTFOUND, ERR_RANGE.
int vfs_faulty_corrupt(struct vfs_faulty *v, const char *path, uint64_t pos, uint8_t xor_mask);
bool vfs_faulty_exists(const struct vfs_faulty *v, const char *path);
uint64_t vfs_faulty_used(const struct vfs_faulty *v);       // bytes of all files, reserved ones included
unsigned vfs_faulty_open_files(const struct vfs_faulty *v); // handles not yet given back

#endif
