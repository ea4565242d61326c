// SPDX-License-Identifier: Apache-2.0
// Bytes to send or write, in pieces: pooled chunks, borrowed static bytes and file ranges, without copying.
//
// A chunk is a counted block of memory from the page allocator; chunks and file handles may be shared between
// threads, a rope itself belongs to one. What goes into a rope is owned by it until rope_clear or a move.
#ifndef KRAFT_BASE_ROPE_H
#define KRAFT_BASE_ROPE_H

#include <stdatomic.h>
#include "core/base/slice.h"
#include "core/base/types.h"

// A counted block. `data[0..cap)` may be written by the one who allocated it, up to what he has not yet
// shared.
struct chunk {
    atomic_uint refs;              // owners
    uint32_t cap;                  // bytes at `data`
    uint8_t *data;                 // first byte; 64-byte aligned
    void (*free)(struct chunk *c); // gives the block back to where it came from
};

struct chunk *chunk_alloc(size_t size); // >= size bytes, from size-classed free lists over huge-page arenas
struct chunk *chunk_ref(struct chunk *c);
void chunk_unref(struct chunk *c); // NULL allowed

// A counted open file that can be sent from. Made by storage/; base makes no system call.
struct rope_file {
    atomic_uint refs;
    int fd; // for sendfile; -1 where there is none (the simulator): then `read` is used
    int (*read)(struct rope_file *f, void *buf, size_t len,
                uint64_t pos);         // 0 or an ERR_ code; reads all `len`
    void (*free)(struct rope_file *f); // called when the last reference goes
};
struct rope_file *rope_file_ref(struct rope_file *f);
void rope_file_unref(struct rope_file *f);

struct rope_piece {
    struct slice bytes;     // memory piece: the bytes. File piece: data NULL, len = bytes of the range
    struct chunk *chunk;    // owner of `bytes`, or NULL where they are static
    struct rope_file *file; // file piece: the file
    uint64_t file_pos;      // file piece: first byte in the file
};

#define ROPE_INLINE_PIECES 6
struct rope {
    struct rope_piece *pieces; // `inline_pieces` or memory of its own
    uint32_t count, cap;       // pieces in use, room
    size_t len;                // bytes in all
    struct chunk *tail;        // chunk that rope_write fills; owned; may be NULL
    uint32_t tail_used;        // bytes of `tail` that are used
    struct rope_piece inline_pieces[ROPE_INLINE_PIECES];
};

void rope_init(struct rope *r);
void rope_clear(struct rope *r); // releases everything; the rope can be used again
void *rope_reserve(struct rope *r,
                   size_t size); // contiguous room at the end, counted as written; size <= 1 MiB
void rope_write(struct rope *r, const void *data, size_t size); // copies to the end
void rope_add_static(struct rope *r, struct slice bytes);       // bytes that outlive every rope
void rope_add_chunk(struct rope *r, struct chunk *c, size_t pos,
                    size_t len); // takes one reference of its own
void rope_add_file(struct rope *r, struct rope_file *f, uint64_t pos,
                   size_t len);                     // takes one reference of its own
void rope_move(struct rope *to, struct rope *from); // appends all of `from` to `to`; `from` is empty after
// Copies all bytes (files by their `read`) to `out`, which has room for r->len. 0 or the file's error.
int rope_flatten(const struct rope *r, uint8_t *out);

#endif
