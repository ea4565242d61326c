// SPDX-License-Identifier: Apache-2.0
// Bytes that a peer made up: every vector cut at every length, and with bytes changed, decodes in bounds or
// fails.
//
// Each input is a block of its own of exactly its size, so that the address sanitizer sees every byte read
// too far. The first argument `long` makes many more changed inputs. A changed input that decodes is encoded
// and printed, which walks all of it.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/protocol/json.h"
#include "tests/vectors/vectors.h"

static const char *const files[] = {
    "requests",          "responses", "metadata", "raft", "coordinator_group", "coordinator_transaction",
    "coordinator_share", "other"};
#define FILES (sizeof(files) / sizeof(files[0]))

// The most memory that a decoded message takes per byte of input: an element of a few bytes on the wire is a
// struct in C.
#define BYTES_PER_BYTE 160

static unsigned changes_per_line = 40;

// Deterministic numbers for one program run (xorshift64).
static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

struct input {
    const struct kp_message_type *type;
    int version;
    const uint8_t *bytes;
    size_t len;
    void *message; // room for the C struct
    struct arena *arena;
};

static int decode(struct input *in, const uint8_t *bytes, size_t len)
{
    struct kp_reader r;
    struct errmsg err = {{0}};
    arena_reset(in->arena);
    kp_reader_init(&r, slice_of(bytes, len), in->arena, &err);
    int rc = kp_message_decode(in->type, in->message, &r, in->version);
    if (rc && !err.text[0])
        fail_msg("%s v%d: no message", in->type->name, in->version);
    if (in->arena->used > BYTES_PER_BYTE * len + 256)
        fail_msg("%s v%d: %zu bytes reserved for %zu of input", in->type->name, in->version, in->arena->used,
                 len);
    return rc;
}

static void walk(struct input *in)
{
    struct rope rope;
    size_t size = kp_message_size(in->type, in->message, in->version);
    rope_init(&rope);
    assert_int_equal(kp_message_encode(in->type, in->message, &rope, in->version), 0);
    assert_int_equal(rope.len, size);
    rope_clear(&rope);
    json_decref(kp_message_to_json(in->type, in->message, in->version));
}

static void cut_everywhere(struct input *in)
{
    for (size_t len = 0; len < in->len; len++) {
        uint8_t *block = malloc(len ? len : 1);
        memcpy(block, in->bytes, len);
        if (decode(in, block, len) == 0)
            fail_msg("%s v%d: decodes from its first %zu bytes", in->type->name, in->version, len);
        free(block);
    }
}

// Numbers that lengths and counts are made of: all ones, sign bits, large varints.
static const uint8_t nasty[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0xfe, 0x40, 0x0f};

static void change_bytes(struct input *in)
{
    uint64_t seed = 88172645463325252u + in->len;
    for (unsigned i = 0; i < changes_per_line && in->len; i++) {
        uint8_t *block = malloc(in->len);
        memcpy(block, in->bytes, in->len);
        size_t run = 1 + next_random(&seed) % 4, at = next_random(&seed) % in->len;
        uint8_t value = nasty[next_random(&seed) % sizeof(nasty)];
        for (size_t k = at; k < at + run && k < in->len; k++)
            block[k] = next_random(&seed) % 2 ? value : (uint8_t)next_random(&seed);
        if (decode(in, block, in->len) == 0)
            walk(in);
        free(block);
    }
}

static void for_each_line(void (*check)(struct input *in))
{
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < FILES; i++) {
        struct vectors v = vectors_open(files[i]);
        json_t *json;
        while ((json = vectors_next(&v))) {
            struct input in = {.arena = &arena,
                               .version = (int)json_integer_value(json_object_get(json, "version"))};
            uint8_t *bytes = vectors_unhex(json_string_value(json_object_get(json, "hex")), &in.len);
            in.type = kp_message_by_name(slice_str(json_string_value(json_object_get(json, "message"))));
            in.bytes = bytes;
            in.message = malloc(in.type->size);
            check(&in);
            free(in.message);
            free(bytes);
            json_decref(json);
        }
        vectors_close(&v);
    }
    arena_fini(&arena);
}

static void a_message_cut_short_is_refused(void **state)
{
    for_each_line(cut_everywhere);
}

static void a_message_with_changed_bytes_is_refused_or_decoded_in_bounds(void **state)
{
    for_each_line(change_bytes);
}

// Every version of every message, from input of a few bytes that are all the same: counts and lengths of all
// sizes.
static void runs_of_one_byte_reserve_little(void **state)
{
    struct arena arena;
    uint8_t *block = malloc(64);
    arena_init(&arena);
    for (unsigned t = 0; t < kp_message_types_count; t++)
        for (int version = kp_message_types[t]->min_version; version <= kp_message_types[t]->max_version;
             version++)
            for (unsigned value = 0; value < 256; value++) {
                struct input in = {.type = kp_message_types[t], .version = version, .arena = &arena};
                in.message = malloc(in.type->size);
                memset(block, (int)value, 64);
                if (decode(&in, block, 64) == 0)
                    walk(&in);
                free(in.message);
            }
    arena_fini(&arena);
    free(block);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "long") == 0)
        changes_per_line = 3000;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_cut_short_is_refused),
        cmocka_unit_test(a_message_with_changed_bytes_is_refused_or_decoded_in_bounds),
        cmocka_unit_test(runs_of_one_byte_reserve_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
