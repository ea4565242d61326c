// SPDX-License-Identifier: Apache-2.0
// The growing text.
#include "core/base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/mem.h"

static void room(struct strbuf *b, size_t more)
{
    if (b->cap - b->len > more)
        return;
    size_t cap = b->cap ? b->cap * 2 : 128;
    while (cap - b->len <= more)
        cap *= 2;
    b->data = mem_realloc(b->data, cap);
    b->cap = cap;
}

void strbuf_fini(struct strbuf *b)
{
    mem_free(b->data);
    strbuf_init(b);
}

void strbuf_clear(struct strbuf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = 0;
}

void strbuf_add(struct strbuf *b, const void *data, size_t len)
{
    room(b, len);
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = 0;
}

void strbuf_add_str(struct strbuf *b, const char *text)
{
    strbuf_add(b, text, strlen(text));
}

void strbuf_add_slice(struct strbuf *b, struct slice s)
{
    strbuf_add(b, s.data, s.len);
}

void strbuf_add_char(struct strbuf *b, char c)
{
    strbuf_add(b, &c, 1);
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    room(b, 1);
    int n = vsnprintf(b->data + b->len, b->cap - b->len, fmt, args);
    va_end(args);
    MUST(n >= 0);
    if ((size_t)n >= b->cap - b->len) {
        room(b, (size_t)n);
        (void)vsnprintf(b->data + b->len, b->cap - b->len, fmt, again);
    }
    va_end(again);
    b->len += (size_t)n;
}

char *strbuf_take(struct strbuf *b)
{
    room(b, 0);
    b->data[b->len] = 0;
    char *text = b->data;
    strbuf_init(b);
    return text;
}
