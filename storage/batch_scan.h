// SPDX-License-Identifier: Apache-2.0
// Walks the batches of a segment file, headers only or whole, with one read for as many as fit.
//
// Trusts nothing: what is cut off or cannot be a batch ends the walk with a code that says which.
#ifndef KRAFT_STORAGE_BATCH_SCAN_H
#define KRAFT_STORAGE_BATCH_SCAN_H

#include "core/base/err.h"
#include "core/base/types.h"
#include "storage/vfs.h"

#define BATCH_SCAN_BYTES 4096u             // of a short look: what lies between two index entries
#define BATCH_SCAN_LONG_BYTES (256u << 10) // of a long walk (recovery, replay)

struct batch_scan {
    struct vfs_file *file; // borrowed
    uint64_t pos;          // of the current batch
    uint64_t end;          // bytes of the file that count
    uint8_t *buf;          // what was read
    size_t cap;            // room in `buf`
    uint64_t buf_pos;      // file position of buf[0]
    size_t buf_len;        // bytes in `buf`
    uint8_t *owned;        // allocated here, or NULL where `buf` is the caller's
    bool nowait;           // ERR_BUSY instead of reading what is not in the page cache
};

// `buf` NULL: memory of its own, `cap` bytes, freed by fini.
void batch_scan_init(struct batch_scan *s, struct vfs_file *file, uint64_t pos, uint64_t end, uint8_t *buf,
                     size_t cap);
void batch_scan_fini(struct batch_scan *s);
// The header of the batch at `pos`, valid until the next call; *size its bytes.
//   0             there is a batch header, and all of the batch lies before `end`
//   ERR_NOTFOUND  `pos` is the end: an orderly end
//   ERR_AGAIN     the bytes up to `end` are less than the batch (torn); *size is what it says, 0 without a
//   header ERR_CORRUPT   this is no batch: length, magic, offset delta ERR_BUSY      nowait: not in the page
//   cache other         the read failed
int batch_scan_header(struct batch_scan *s, const uint8_t **header, size_t *size);
// The same with all bytes of the batch. Does not check the checksum.
int batch_scan_whole(struct batch_scan *s, const uint8_t **batch, size_t *size);
static inline void batch_scan_skip(struct batch_scan *s, size_t size)
{
    s->pos += size;
}

#endif
