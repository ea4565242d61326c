// SPDX-License-Identifier: Apache-2.0
// A metadata log that Apache Kafka wrote, replayed, against each of the snapshots that it made of it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/metadata/image.h"
#include "core/metadata/replay.h"
#include "core/metadata/snapshot.h"
#include "core/protocol/metadata_record.h"
#include "tests/vectors/vectors.h"

#define SNAPSHOTS_MAX 32

struct reading {
    struct arena arena;                            // takes what is decoded
    struct image *img;                             // after the log's records so far; owned
    struct image *at_offset[SNAPSHOTS_MAX];        // from the log, at the end of each snapshot; owned
    struct image_builder *snapshot[SNAPSHOTS_MAX]; // from the snapshot
    log_offset end[SNAPSHOTS_MAX];                 // end offset of each
    int count;                                     // snapshots
};

static void replay_line(struct reading *r, struct image_builder *b, json_t *line, log_offset offset)
{
    size_t len;
    uint8_t *bytes = vectors_unhex(json_string_value(json_object_get(line, "hex")), &len);
    struct slice kept = arena_dup_slice(&r->arena, slice_of(bytes, len));
    free(bytes);
    struct metadata_record record;
    struct errmsg msg;
    if (metadata_record_decode(&record, kept, &r->arena, &msg) != 0 ||
        image_replay(b, &record, offset, 1, &msg) != 0)
        fail_msg("%s", msg.text);
}

static int index_of(struct reading *r, log_offset end)
{
    for (int i = 0; i < r->count; i++)
        if (r->end[i] == end)
            return i;
    assert_true(r->count < SNAPSHOTS_MAX);
    struct image *empty = image_empty();
    r->end[r->count] = end;
    r->snapshot[r->count] = image_builder_create(empty);
    image_unref(empty);
    return r->count++;
}

// Snapshots first, to know their ends; then the log.
static void read_snapshots(struct reading *r)
{
    struct vectors v = vectors_open("metadata_log");
    for (json_t *line; (line = vectors_next(&v)) != NULL; json_decref(line)) {
        json_t *end = json_object_get(line, "snapshot");
        if (end)
            replay_line(r, r->snapshot[index_of(r, json_integer_value(end))], line,
                        json_integer_value(end) - 1);
    }
    vectors_close(&v);
}

static void note_images(struct reading *r, log_offset next)
{
    for (int i = 0; i < r->count; i++)
        if (!r->at_offset[i] && r->end[i] <= next)
            r->at_offset[i] = image_ref(r->img);
}

static void read_log(struct reading *r)
{
    struct vectors v = vectors_open("metadata_log");
    for (json_t *line; (line = vectors_next(&v)) != NULL; json_decref(line)) {
        json_t *offset = json_object_get(line, "offset");
        if (!offset)
            continue;
        note_images(r, json_integer_value(offset));
        struct image_builder *b = image_builder_create(r->img);
        replay_line(r, b, line, json_integer_value(offset));
        image_unref(r->img);
        r->img = image_builder_finish(b);
    }
    vectors_close(&v);
    note_images(r, INT64_MAX);
}

static void every_snapshot_of_the_reference_equals_the_replay_of_its_log(void **state)
{
    (void)state;
    struct reading r = {.img = image_empty()};
    arena_init(&r.arena);
    read_snapshots(&r);
    read_log(&r);
    assert_true(r.count > 10);
    for (int i = 0; i < r.count; i++) {
        struct image *from_snapshot = image_builder_finish(r.snapshot[i]);
        struct image_hash x = image_hash_of(r.at_offset[i]), y = image_hash_of(from_snapshot);
        if (x.low != y.low || x.high != y.high)
            fail_msg("the snapshot that ends at %lld differs", (long long)r.end[i]);
        image_unref(from_snapshot);
        image_unref(r.at_offset[i]);
    }
    image_unref(r.img);
    arena_fini(&r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_snapshot_of_the_reference_equals_the_replay_of_its_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
