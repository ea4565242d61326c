// SPDX-License-Identifier: Apache-2.0
// Ropes: lists of pieces with one tail chunk that small writes fill.
#include "core/base/rope.h"

#include "core/base/assert.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

struct rope_file *rope_file_ref(struct rope_file *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void rope_file_unref(struct rope_file *f)
{
    if (f && atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) == 1)
        f->free(f);
}

void rope_init(struct rope *r)
{
    r->pieces = r->inline_pieces;
    r->count = 0;
    r->cap = ROPE_INLINE_PIECES;
    r->len = 0;
    r->tail = NULL;
    r->tail_used = 0;
}

static void piece_release(struct rope_piece *p)
{
    chunk_unref(p->chunk);
    rope_file_unref(p->file);
}

void rope_clear(struct rope *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        piece_release(&r->pieces[i]);
    if (r->pieces != r->inline_pieces)
        mem_free(r->pieces);
    chunk_unref(r->tail);
    rope_init(r);
}

static void rope_room(struct rope *r, uint32_t more)
{
    if (r->cap - r->count >= more)
        return;
    uint32_t cap = r->cap * 2;
    while (cap - r->count < more)
        cap *= 2;
    if (r->pieces == r->inline_pieces) {
        struct rope_piece *pieces = mem_alloc(cap * sizeof *pieces);
        memcpy(pieces, r->inline_pieces, r->count * sizeof *pieces);
        r->pieces = pieces;
    } else {
        r->pieces = mem_realloc(r->pieces, cap * sizeof *r->pieces);
    }
    r->cap = cap;
}

static struct rope_piece *rope_piece_new(struct rope *r)
{
    rope_room(r, 1);
    struct rope_piece *p = &r->pieces[r->count++];
    *p = (struct rope_piece){SLICE_NULL, NULL, NULL, 0};
    return p;
}

// A tail with `size` bytes of room.
static void tail_room(struct rope *r, size_t size)
{
    if (r->tail && r->tail->cap - r->tail_used >= size)
        return;
    size_t want = ROPE_TAIL_BYTES_FIRST;
    if (r->tail)
        want =
            (size_t)r->tail->cap * 2 < ROPE_TAIL_BYTES_MAX ? (size_t)r->tail->cap * 2 : ROPE_TAIL_BYTES_MAX;
    if (want < size)
        want = size;
    struct chunk *c = chunk_alloc(want);
    chunk_unref(r->tail);
    r->tail = c;
    r->tail_used = 0;
}

void *rope_reserve(struct rope *r, size_t size)
{
    MUST(size <= ROPE_RESERVE_BYTES_MAX);
    tail_room(r, size);
    uint8_t *at = r->tail->data + r->tail_used;
    struct rope_piece *last = r->count ? &r->pieces[r->count - 1] : NULL;
    if (last && last->chunk == r->tail && last->bytes.data + last->bytes.len == at) {
        last->bytes.len += size;
    } else if (size) {
        struct rope_piece *p = rope_piece_new(r);
        p->bytes = slice_of(at, size);
        p->chunk = chunk_ref(r->tail);
    }
    r->tail_used += (uint32_t)size;
    r->len += size;
    return at;
}

void rope_write(struct rope *r, const void *data, size_t size)
{
    const uint8_t *from = data;
    while (size) {
        size_t room = r->tail ? r->tail->cap - r->tail_used : 0;
        size_t n = size;
        if (room && n > room)
            n = room; // fill the tail first
        else if (n > ROPE_TAIL_BYTES_MAX)
            n = ROPE_TAIL_BYTES_MAX;
        memcpy(rope_reserve(r, n), from, n);
        from += n;
        size -= n;
    }
}

void rope_add_static(struct rope *r, struct slice bytes)
{
    if (!bytes.len)
        return;
    rope_piece_new(r)->bytes = bytes;
    r->len += bytes.len;
}

void rope_add_chunk(struct rope *r, struct chunk *c, size_t pos, size_t len)
{
    MUST(pos <= c->cap && len <= c->cap - pos);
    if (!len)
        return;
    struct rope_piece *p = rope_piece_new(r);
    p->bytes = slice_of(c->data + pos, len);
    p->chunk = chunk_ref(c);
    r->len += len;
}

void rope_add_file(struct rope *r, struct rope_file *f, uint64_t pos, size_t len)
{
    if (!len)
        return;
    struct rope_piece *last = r->count ? &r->pieces[r->count - 1] : NULL;
    if (last && last->file == f && last->file_pos + last->bytes.len == pos) {
        last->bytes.len += len; // the range goes on
    } else {
        struct rope_piece *p = rope_piece_new(r);
        p->bytes.len = len;
        p->file = rope_file_ref(f);
        p->file_pos = pos;
    }
    r->len += len;
}

void rope_move(struct rope *to, struct rope *from)
{
    MUST(to != from);
    if (to->count == 0 && from->pieces != from->inline_pieces && to->pieces == to->inline_pieces) {
        to->pieces = from->pieces; // take the array itself
        to->cap = from->cap;
        to->count = from->count;
        from->pieces = from->inline_pieces;
        from->cap = ROPE_INLINE_PIECES;
    } else if (from->count) {
        rope_room(to, from->count);
        memcpy(&to->pieces[to->count], from->pieces, from->count * sizeof *to->pieces);
        to->count += from->count;
    }
    to->len += from->len;
    // Of the two tails the roomier one goes on.
    if (from->tail && (!to->tail || from->tail->cap - from->tail_used > to->tail->cap - to->tail_used)) {
        struct chunk *t = to->tail;
        to->tail = from->tail;
        to->tail_used = from->tail_used;
        from->tail = t;
    }
    from->count = 0;
    rope_clear(from);
}

int rope_flatten(const struct rope *r, uint8_t *out)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const struct rope_piece *p = &r->pieces[i];
        if (p->file) {
            int err = p->file->read(p->file, out, p->bytes.len, p->file_pos);
            if (err)
                return err;
        } else {
            memcpy(out, p->bytes.data, p->bytes.len);
        }
        out += p->bytes.len;
    }
    return 0;
}
