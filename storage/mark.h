// SPDX-License-Identifier: Apache-2.0
// A small checksummed file that says up to where a log is known to be on disk: tells torn writes from damage.
//
// The file is 32 bytes, written in place with one write, so that a torn one is seen by its checksum:
//   0  8  magic "KRAFTMK1"
//   8  8  end offset, big-endian (everything below was synced)
//  16  8  sequence number of the write, big-endian
//  24  4  zero
//  28  4  CRC-32C of bytes 0..27, big-endian
// Two such slots follow each other and are written in turn: a torn write leaves the other one. After a crash
// of the machine the newest synced slot, or any later one, may be there. Used from one thread at a time.
#ifndef KRAFT_STORAGE_MARK_H
#define KRAFT_STORAGE_MARK_H

#include "core/base/err.h"
#include "core/base/types.h"
#include "storage/vfs.h"

struct mark {
    struct vfs_file *file; // open for writing
    log_offset end;        // last written; 0 when the file is new
    uint64_t sequence;     // of the last write
    bool dirty;            // written and not synced
};

// Opens or creates `path`. A missing file or one without a valid slot gives end 0 and `*found` false.
int mark_open(struct mark *m, struct vfs *fs, const char *path, bool *found, struct errmsg *msg);
int mark_write(struct mark *m, log_offset end, struct errmsg *msg); // one pwrite; not synced
int mark_sync(struct mark *m, struct errmsg *msg);                  // nothing if not dirty
void mark_close(struct mark *m);                                    // without sync

#endif
