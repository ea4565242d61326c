// SPDX-License-Identifier: Apache-2.0
// A borrowed run of bytes: pointer and length, owned by somebody else.
#ifndef KRAFT_BASE_SLICE_H
#define KRAFT_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// `data` NULL means "null" (Kafka's nullable strings and bytes); an empty one has a non-NULL `data` and
// length 0.
struct slice {
    const uint8_t *data; // first byte, or NULL
    size_t len;          // bytes
};

#define SLICE_NULL ((struct slice){NULL, 0})
#define SLICE_LIT(text) ((struct slice){(const uint8_t *)(text), sizeof(text) - 1}) // of a string literal
#define SLICE_FMT "%.*s"                                                            // printf pair with
#define SLICE_ARG(s) (int)(s).len, (s).data ? (const char *)(s).data : ""           // this

static inline struct slice slice_of(const void *data, size_t len)
{
    return (struct slice){(const uint8_t *)data, len};
}
static inline struct slice slice_str(const char *text) // NULL gives SLICE_NULL
{
    return text ? slice_of(text, strlen(text)) : SLICE_NULL;
}
static inline bool slice_is_null(struct slice s)
{
    return s.data == NULL;
}
static inline bool slice_equal(struct slice a, struct slice b) // null equals only null
{
    return (a.data == NULL) == (b.data == NULL) && a.len == b.len &&
           (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}
static inline bool slice_equal_str(struct slice a, const char *text)
{
    return slice_equal(a, slice_str(text));
}
int slice_compare(struct slice a, struct slice b); // bytewise, shorter first; as memcmp
bool slice_is_utf8(struct slice s);                // well-formed UTF-8 (as Java accepts it)
char *slice_dup_str(struct slice s);               // NUL-terminated copy by mem_alloc; null gives NULL

#endif
