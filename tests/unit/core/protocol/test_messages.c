// SPDX-License-Identifier: Apache-2.0
// Every message line of the reference's vectors: same fields after decoding, same bytes after encoding.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/protocol/json.h"
#include "tests/vectors/vectors.h"

static const char *const files[] = {
    "requests",          "responses", "metadata", "raft", "coordinator_group", "coordinator_transaction",
    "coordinator_share", "other"};
#define FILES (sizeof(files) / sizeof(files[0]))

struct line {
    const struct kp_message_type *type;
    int version;
    json_t *fields; // as the reference prints them
    uint8_t *bytes;
    size_t len;
    struct arena arena;
    struct errmsg err;
    void *message; // C struct of type
    char where[200];
};

static struct line line_of(const char *file, int number, const json_t *json)
{
    struct line l = {0};
    const char *name = json_string_value(json_object_get(json, "message"));
    l.type = kp_message_by_name(slice_str(name));
    if (!l.type)
        fail_msg("%s: no such message", name);
    l.version = (int)json_integer_value(json_object_get(json, "version"));
    l.fields = json_object_get(json, "json");
    l.bytes = vectors_unhex(json_string_value(json_object_get(json, "hex")), &l.len);
    l.message = malloc(l.type->size);
    arena_init(&l.arena);
    snprintf(l.where, sizeof(l.where), "%s:%d: %s v%d", file, number, name, l.version);
    return l;
}

static void line_end(struct line *l)
{
    arena_fini(&l->arena);
    free(l->message);
    free(l->bytes);
}

static void decode(struct line *l)
{
    struct kp_reader r;
    kp_reader_init(&r, slice_of(l->bytes, l->len), &l->arena, &l->err);
    int rc = kp_message_decode(l->type, l->message, &r, l->version);
    if (rc)
        fail_msg("%s: %s: %s", l->where, err_text(rc), l->err.text);
    if (kp_reader_left(&r))
        fail_msg("%s: %zu bytes left", l->where, kp_reader_left(&r));
}

// The vectors say "" for records, whatever they hold: take ours.
static void take_records(json_t *theirs, json_t *ours)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_array(theirs))
        json_array_foreach(theirs, i, value) take_records(value, json_array_get(ours, i));
    if (!json_is_object(theirs))
        return;
    json_object_foreach(theirs, key, value)
    {
        json_t *mine = json_object_get(ours, key);
        if ((strcmp(key, "records") == 0 || strcmp(key, "unalignedRecords") == 0) && json_is_string(value) &&
            json_is_string(mine))
            json_string_set(value, json_string_value(mine));
        take_records(value, mine);
    }
}

static void expect_same_fields(struct line *l)
{
    json_t *json = kp_message_to_json(l->type, l->message, l->version);
    take_records(l->fields, json);
    if (!json_equal(json, l->fields)) {
        char *ours = json_dumps(json, JSON_SORT_KEYS), *theirs = json_dumps(l->fields, JSON_SORT_KEYS);
        fail_msg("%s:\nours   %s\ntheirs %s", l->where, ours, theirs);
    }
    json_decref(json);
}

static void expect_same_bytes(struct line *l, const uint8_t *bytes, size_t len, const char *how)
{
    if (len != l->len || memcmp(bytes, l->bytes, len) != 0)
        fail_msg("%s: %s gives other bytes (%zu, wanted %zu)", l->where, how, len, l->len);
}

static void expect_encoding(struct line *l, const char *how)
{
    struct rope rope;
    uint8_t *flat = malloc(l->len + 64);
    rope_init(&rope);
    assert_int_equal(kp_message_encode(l->type, l->message, &rope, l->version), 0);
    if (rope.len > l->len + 64)
        fail_msg("%s: %s gives %zu bytes", l->where, how, rope.len);
    assert_int_equal(rope_flatten(&rope, flat), 0);
    expect_same_bytes(l, flat, rope.len, how);
    assert_int_equal(kp_message_size(l->type, l->message, l->version), l->len);
    memset(flat, 0xee, l->len + 64);
    assert_int_equal(kp_message_encode_into(l->type, l->message, flat, l->version), 0);
    expect_same_bytes(l, flat, l->len, how);
    rope_clear(&rope);
    free(flat);
}

typedef void check_fn(struct line *l);

static void for_each_line(check_fn *check)
{
    for (size_t i = 0; i < FILES; i++) {
        struct vectors v = vectors_open(files[i]);
        json_t *json;
        while ((json = vectors_next(&v))) {
            struct line l = line_of(files[i], v.line, json);
            check(&l);
            line_end(&l);
            json_decref(json);
        }
        vectors_close(&v);
    }
}

static void check_decode(struct line *l)
{
    decode(l);
    expect_same_fields(l);
}
static void decoding_gives_the_reference_fields(void **state)
{
    for_each_line(check_decode);
}

static void check_encode(struct line *l)
{
    decode(l);
    expect_encoding(l, "encoding again");
}
static void encoding_what_was_decoded_gives_the_same_bytes(void **state)
{
    for_each_line(check_encode);
}

static void check_json(struct line *l)
{
    decode(l);
    expect_same_fields(l);
    memset(l->message, 0xcc, l->type->size);
    int rc =
        kp_message_from_json(l->type, l->message, l->fields, l->version, KP_JSON_STRICT, &l->arena, &l->err);
    if (rc)
        fail_msg("%s: %s: %s", l->where, err_text(rc), l->err.text);
    expect_encoding(l, "encoding from JSON");
}
static void encoding_what_json_says_gives_the_same_bytes(void **state)
{
    for_each_line(check_json);
}

// The vectors leave no message and no version out, so that the three tests above cover the whole codec.
static void every_version_of_every_message_is_in_the_vectors(void **state)
{
    uint8_t(*seen)[32] = calloc(kp_message_types_count, sizeof(*seen));
    for (size_t i = 0; i < FILES; i++) {
        struct vectors v = vectors_open(files[i]);
        json_t *json;
        while ((json = vectors_next(&v))) {
            struct slice name = slice_str(json_string_value(json_object_get(json, "message")));
            for (unsigned t = 0; t < kp_message_types_count; t++)
                if (slice_equal_str(name, kp_message_types[t]->name))
                    seen[t][json_integer_value(json_object_get(json, "version"))] = 1;
            json_decref(json);
        }
        vectors_close(&v);
    }
    for (unsigned t = 0; t < kp_message_types_count; t++)
        for (int version = kp_message_types[t]->min_version; version <= kp_message_types[t]->max_version;
             version++)
            if (!seen[t][version])
                fail_msg("%s v%d has no vector", kp_message_types[t]->name, version);
    free(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_gives_the_reference_fields),
        cmocka_unit_test(encoding_what_was_decoded_gives_the_same_bytes),
        cmocka_unit_test(encoding_what_json_says_gives_the_same_bytes),
        cmocka_unit_test(every_version_of_every_message_is_in_the_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
