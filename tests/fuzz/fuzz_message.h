// SPDX-License-Identifier: Apache-2.0
// What the two message targets share: choose a message type and version, decode, and walk what came out.
#ifndef KRAFT_TESTS_FUZZ_MESSAGE_H
#define KRAFT_TESTS_FUZZ_MESSAGE_H

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/protocol/json.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_ARENA_LIMIT (64u << 20)

// What was decoded encodes to as many bytes as announced, and these decode and encode to the same bytes
// again.
static inline void fuzz_message_walk(const struct kp_message_type *t, void *message, int version,
                                     struct arena *arena)
{
    struct kp_reader r;
    size_t size = kp_message_size(t, message, version);
    uint8_t *once = mem_alloc(size), *twice = mem_alloc(size);
    MUST(kp_message_encode_into(t, message, once, version) == 0);
    kp_reader_init(&r, slice_of(once, size), arena, NULL);
    MUST(kp_message_decode(t, message, &r, version) == 0);
    MUST(kp_reader_left(&r) == 0);
    MUST(kp_message_size(t, message, version) == size);
    MUST(kp_message_encode_into(t, message, twice, version) == 0);
    MUST(memcmp(once, twice, size) == 0);
    json_decref(kp_message_to_json(t, message, version));
    mem_free(once);
    mem_free(twice);
}

static inline void fuzz_message(const struct kp_message_type *t, int version, struct slice bytes)
{
    struct arena arena;
    struct errmsg err;
    struct kp_reader r;
    void *message = mem_alloc(t->size);
    arena_init(&arena);
    arena.limit = FUZZ_ARENA_LIMIT;
    kp_reader_init(&r, bytes, &arena, &err);
    if (kp_message_decode(t, message, &r, version) == 0)
        fuzz_message_walk(t, message, version, &arena);
    arena_fini(&arena);
    mem_free(message);
}

#endif
