// SPDX-License-Identifier: Apache-2.0
// Kafka's 128-bit identifiers: topic ids, directory ids, cluster and incarnation ids.
//
// On the wire and in memory 16 raw bytes; in files and tools 22 characters of URL-safe base64 without
// padding.
#ifndef KRAFT_BASE_UUID_H
#define KRAFT_BASE_UUID_H

#include "core/base/slice.h"

struct node;

struct uuid {
    uint8_t b[16]; // big-endian: the most significant byte first
};

#define UUID_TEXT_BYTES 23 // 22 characters and the NUL

#define UUID_ZERO ((struct uuid){{0}})
// The reserved values of KIP-858 and the id of __cluster_metadata ("AAAAAAAAAAAAAAAAAAAAAQ").
#define UUID_DIR_MIGRATING ((struct uuid){{0}})
#define UUID_DIR_UNASSIGNED ((struct uuid){{[15] = 1}})
#define UUID_DIR_LOST ((struct uuid){{[15] = 2}})
#define UUID_METADATA_TOPIC ((struct uuid){{[15] = 1}})

static inline bool uuid_equal(struct uuid a, struct uuid b)
{
    return memcmp(a.b, b.b, 16) == 0;
}
static inline bool uuid_is_zero(struct uuid a)
{
    return uuid_equal(a, UUID_ZERO);
}
int uuid_compare(struct uuid a, struct uuid b); // as Java's Uuid.compareTo: two signed 64-bit halves
bool uuid_is_reserved(struct uuid a);           // one of the first 100, which no random id may be
uint64_t uuid_hash(struct uuid a);              // for hash maps; the same on every machine
void uuid_format(struct uuid a, char out[UUID_TEXT_BYTES]);
// Reads 22 base64 characters (with or without padding, as Kafka does). False: not an id; *out is unchanged.
bool uuid_parse(struct slice text, struct uuid *out);
// A random version 4 id (RFC 4122), as Kafka makes them: never reserved, never text that begins with '-'.
struct uuid uuid_random(struct node *n);
// The same from 16 random bytes; false: these bytes would make a forbidden id, draw again.
bool uuid_from_random(const uint8_t bytes[16], struct uuid *out);

#endif
