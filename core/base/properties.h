// SPDX-License-Identifier: Apache-2.0
// Java's .properties text, read and written exactly as java.util.Properties does.
//
// Bytes are read as ISO-8859-1, as Java and so Kafka read them; \uXXXX gives any other character. Keys and
// values come out as UTF-8. A byte order mark at the start is skipped (Java would take it for part of the
// first key).
#ifndef KRAFT_BASE_PROPERTIES_H
#define KRAFT_BASE_PROPERTIES_H

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/base/strbuf.h"

struct property {
    struct slice key;       // UTF-8, NUL-terminated behind its end
    struct slice value;     // the same
    uint32_t line;          // first line of the entry in the text, from 1
    uint32_t replaced_line; // line of an earlier entry of the same key that this one replaced; 0 = none
};
struct properties {
    struct arena arena;     // holds keys and values
    struct property *items; // one for each key, in order of first appearance
    size_t count, cap;      // items in use, room
};

void properties_init(struct properties *p);
void properties_fini(struct properties *p);
// Adds the entries of `text`; of a key that appears twice the last value counts. ERR_INVALID: a malformed \u
// escape (the message has the line).
int properties_parse(struct properties *p, struct slice text, struct errmsg *msg);
void properties_set(struct properties *p, struct slice key,
                    struct slice value); // adds or replaces; copies both
// The value, NUL-terminated; SLICE_NULL where the key is absent.
struct slice properties_get(const struct properties *p, const char *key);
const struct property *properties_find(const struct properties *p, struct slice key); // NULL: absent

// Appends the line "key=value\n", escaped so that Java and we read the same back.
void properties_write_line(struct strbuf *out, struct slice key, struct slice value);
void properties_write(struct strbuf *out, const struct properties *p); // all entries, in order

#endif
