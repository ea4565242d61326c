// SPDX-License-Identifier: Apache-2.0
// Reads numbers and runs of bytes from bounded memory that a peer or a disk filled; a short read is
// remembered, never made.
#ifndef KRAFT_RAFT_CURSOR_H
#define KRAFT_RAFT_CURSOR_H

#include "core/base/assert.h"
#include "core/base/bytes.h"
#include "core/base/slice.h"
#include "core/base/strbuf.h"

struct cursor {
    const uint8_t *p;   // next byte
    const uint8_t *end; // end of the bytes
    bool bad;           // something was asked for that is not there; everything read after that is zero
};

static inline struct cursor cursor_of(struct slice s)
{
    return (struct cursor){s.data, s.data + s.len, s.data == NULL};
}
static inline size_t cursor_left(const struct cursor *c)
{
    return c->bad ? 0 : (size_t)(c->end - c->p);
}
static inline const uint8_t *cursor_take(struct cursor *c, size_t n) // NULL: not there
{
    if (c->bad || (size_t)(c->end - c->p) < n) {
        c->bad = true;
        return NULL;
    }
    const uint8_t *at = c->p;
    c->p += n;
    return at;
}
static inline uint8_t cursor_u8(struct cursor *c)
{
    const uint8_t *p = cursor_take(c, 1);
    return p ? *p : 0;
}
static inline uint16_t cursor_u16(struct cursor *c)
{
    const uint8_t *p = cursor_take(c, 2);
    return p ? bytes_load_be16(p) : 0;
}
static inline uint32_t cursor_u32(struct cursor *c)
{
    const uint8_t *p = cursor_take(c, 4);
    return p ? bytes_load_be32(p) : 0;
}
static inline uint64_t cursor_u64(struct cursor *c)
{
    const uint8_t *p = cursor_take(c, 8);
    return p ? bytes_load_be64(p) : 0;
}
static inline struct slice cursor_bytes16(struct cursor *c) // run with a 16-bit length before it
{
    uint16_t n = cursor_u16(c);
    const uint8_t *p = cursor_take(c, n);
    return p ? slice_of(p, n) : slice_of("", 0);
}
// Into a fixed text field: too long, empty bytes inside or not there makes the cursor bad.
static inline void cursor_text16(struct cursor *c, char *out, size_t size)
{
    struct slice s = cursor_bytes16(c);
    if (s.len >= size || memchr(s.data, 0, s.len))
        c->bad = true;
    size_t n = c->bad ? 0 : s.len;
    memcpy(out, s.data, n);
    out[n] = 0;
}
static inline bool cursor_done(const struct cursor *c) // all was read and all was there
{
    return !c->bad && c->p == c->end;
}

static inline void put_u8(struct strbuf *b, uint8_t v)
{
    strbuf_add(b, &v, 1);
}
static inline void put_u16(struct strbuf *b, uint16_t v)
{
    uint8_t t[2];
    bytes_store_be16(t, v);
    strbuf_add(b, t, sizeof t);
}
static inline void put_u32(struct strbuf *b, uint32_t v)
{
    uint8_t t[4];
    bytes_store_be32(t, v);
    strbuf_add(b, t, sizeof t);
}
static inline void put_u64(struct strbuf *b, uint64_t v)
{
    uint8_t t[8];
    bytes_store_be64(t, v);
    strbuf_add(b, t, sizeof t);
}
static inline void put_text16(struct strbuf *b, const char *text)
{
    size_t n = strlen(text);
    put_u16(b, (uint16_t)n);
    strbuf_add(b, text, n);
}

#endif
