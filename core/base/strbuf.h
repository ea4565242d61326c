// SPDX-License-Identifier: Apache-2.0
// A text that grows: for files, pages and lines that are built piece by piece.
#ifndef KRAFT_BASE_STRBUF_H
#define KRAFT_BASE_STRBUF_H

#include "core/base/slice.h"

struct strbuf {
    char *data; // NUL-terminated text, or NULL before the first byte
    size_t len; // bytes, without the NUL
    size_t cap; // room at `data`
};

static inline void strbuf_init(struct strbuf *b)
{
    *b = (struct strbuf){NULL, 0, 0};
}
void strbuf_fini(struct strbuf *b);  // frees; empty and usable after
void strbuf_clear(struct strbuf *b); // empty; keeps the room
void strbuf_add(struct strbuf *b, const void *data, size_t len);
void strbuf_add_str(struct strbuf *b, const char *text);
void strbuf_add_slice(struct strbuf *b, struct slice s);
void strbuf_add_char(struct strbuf *b, char c);
void strbuf_printf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline struct slice strbuf_slice(const struct strbuf *b)
{
    return slice_of(b->data ? b->data : "", b->len);
}
static inline const char *strbuf_text(const struct strbuf *b)
{
    return b->data ? b->data : "";
}
char *strbuf_take(struct strbuf *b); // the text, to be freed with mem_free; the buffer is empty after

#endif
