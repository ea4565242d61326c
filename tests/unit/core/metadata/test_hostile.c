// SPDX-License-Identifier: Apache-2.0
// Records of random content, whole and with flipped bits: replay refuses or takes them, and the image stays
// sound.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/metadata/metadata_version.h"
#include "tests/unit/core/metadata/history.h"
#include "tests/vectors/vectors.h"

// Replays the bytes (a record without its frame) if they decode.
static void try_bytes(struct history *h, uint32_t type, int16_t version, struct slice bytes)
{
    const struct kp_message_type *t = kp_message_of_metadata(type);
    struct kp_reader r;
    h->r.type = (enum metadata_record_type)type;
    h->r.version = version;
    kp_reader_init(&r, bytes, &h->arena, &h->msg);
    if (t && kp_message_decode(t, &h->r.body, &r, version) == 0)
        (void)history_apply(h);
}

static void nothing_that_decodes_can_break_the_image(void **state)
{
    (void)state;
    struct history h;
    history_init(&h, 11);
    assert_int_equal(history_feature(&h, FEATURE_METADATA_VERSION, METADATA_VERSION_MAX), 0);
    struct vectors v = vectors_open("metadata");
    int lines = 0;
    for (json_t *line; (line = vectors_next(&v)) != NULL; json_decref(line)) {
        size_t len;
        uint8_t *bytes = vectors_unhex(json_string_value(json_object_get(line, "hex")), &len);
        uint32_t type = (uint32_t)json_integer_value(json_object_get(line, "api_key"));
        int16_t version = (int16_t)json_integer_value(json_object_get(line, "version"));
        for (int round = 0; round < 60; round++) {
            uint8_t *copy = arena_dup(&h.arena, bytes, len + 1);
            if (round > 0 && len > 0)
                copy[history_random(&h, len)] ^= (uint8_t)(1u << history_random(&h, 8));
            try_bytes(&h, type, version, slice_of(copy, len));
            (void)history_step(&h);
        }
        free(bytes);
        lines++;
    }
    vectors_close(&v);
    assert_true(lines > 100);
    struct image *copy = history_through_snapshot(h.img, &h.msg);
    if (!copy)
        fail_msg("%s", h.msg.text);
    struct image_hash x = image_hash_of(copy), y = image_hash_of(h.img);
    assert_true(x.low == y.low && x.high == y.high);
    image_unref(copy);
    history_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_that_decodes_can_break_the_image)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
