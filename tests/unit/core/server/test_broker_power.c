// SPDX-License-Identifier: Apache-2.0
// flush.messages=1 against machines that die: what was acknowledged is on the disk, at its offset, once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "core/protocol/gen/errors.h"
#include "core/protocol/gen/fetch_request.h"
#include "core/protocol/gen/fetch_response.h"
#include "core/protocol/gen/produce_response.h"
#include "core/record/builder.h"
#include "tests/unit/core/server/broker_fixture.h"

#define ROUNDS 12       // power losses of one run
#define PARTITIONS 12   // of the topic
#define IN_FLIGHT 24    // batches that wait for their answers
#define ACKED_MAX 50000 // batches that a run can acknowledge

static struct fixture f; // one at a time

struct acked {
    log_offset base; // offset that was answered
    int number;      // what the record says
};

struct run {
    struct acked acked[ACKED_MAX]; // all that was answered with success
    int acked_count;               // number of them
    int next;                      // number of the next record
    int sent[IN_FLIGHT];           // numbers under way, oldest first
    int sent_count;                // number of them
};

static struct slice numbered(int number)
{
    struct builder b;
    struct builder_options opts = BUILDER_OPTIONS_DEFAULT;
    char value[64];
    struct slice out;
    int n = snprintf(value, sizeof value, "%d", number);
    builder_init(&b, &opts);
    builder_append(&b, 1000 + number, SLICE_NULL, slice_of(value, (size_t)n), NULL, 0);
    assert_int_equal(builder_finish(&b, &out, NULL), 0);
    out = arena_dup_slice(&f.arena, out);
    builder_fini(&b);
    return out;
}

// Produces until the given time, keeping some batches under way.
static void produce_until(struct run *r, struct client *c, mono_us end)
{
    r->sent_count = 0;
    while (world_now(f.world) < end) {
        while (r->sent_count < IN_FLIGHT) {
            client_send_produce(c, "wide", r->next % PARTITIONS, r->next % 2 ? 1 : -1, numbered(r->next));
            r->sent[r->sent_count++] = r->next++;
        }
        if (!client_has_reply(c)) {
            world_run(f.world, 1);
            continue;
        }
        struct kp_produce_response *out = client_receive(c, KP_API_PRODUCE, 9);
        assert_int_equal(out->responses[0].partition_responses[0].error_code, KE_NONE);
        assert_true(r->acked_count < ACKED_MAX);
        r->acked[r->acked_count++] =
            (struct acked){out->responses[0].partition_responses[0].base_offset, r->sent[0]};
        r->sent_count--;
        for (int i = 0; i < r->sent_count; i++) {
            r->sent[i] = r->sent[i + 1];
        }
        free((void *)(uintptr_t)c->replies[c->replies_taken - 1].data);
        c->replies[c->replies_taken - 1] = SLICE_NULL;
        if (c->replies_taken == c->replies_count) {
            c->replies_taken = c->replies_count = 0;
        }
    }
    for (unsigned i = c->replies_taken; i < c->replies_count; i++) {
        free((void *)(uintptr_t)c->replies[i].data);
    }
    c->replies_taken = c->replies_count = 0;
}

static struct kp_fetch_response *fetch_wide(struct client *c, partition_id partition, log_offset offset)
{
    struct kp_fetch_request in;
    struct kp_fetch_request_fetch_topic t;
    struct kp_fetch_request_fetch_partition p;
    kp_fetch_request_init(&in);
    kp_fetch_request_fetch_topic_init(&t);
    kp_fetch_request_fetch_partition_init(&p);
    in.max_bytes = 1 << 20;
    in.topics = &t;
    in.topics_count = 1;
    t.topic = SLICE_LIT("wide");
    t.partitions = &p;
    t.partitions_count = 1;
    p.partition = partition;
    p.fetch_offset = offset;
    p.partition_max_bytes = 1 << 20;
    return client_call(c, KP_API_FETCH, 12, &in);
}

// Reads one partition: dense, each number once. at[number] = offset + 1.
static void read_partition(const struct run *r, struct client *c, partition_id partition, int *at)
{
    log_offset offset = 0;
    for (;;) {
        struct kp_fetch_response *out = fetch_wide(c, partition, offset);
        assert_int_equal(out->responses[0].partitions[0].error_code, KE_NONE);
        struct batch_iter it = batch_iter_of(out->responses[0].partitions[0].records.bytes);
        if (it.rest.len == 0) {
            return;
        }
        while (batch_iter_next(&it)) {
            struct record_iter records;
            struct record record;
            assert_int_equal(batch_check_crc(it.batch, NULL), 0);
            assert_int_equal(batch_base_offset(it.batch), offset);
            record_iter_init(&records, it.batch, NULL, NULL);
            assert_int_equal(record_iter_next(&records, &record, NULL), 0);
            char text[32] = "";
            memcpy(text, record.value.data, record.value.len);
            int number = (int)strtol(text, NULL, 10);
            assert_in_range(number, 0, r->next);
            assert_int_equal(number % PARTITIONS, partition);
            assert_int_equal(at[number], 0);
            at[number] = (int)offset + 1;
            record_iter_fini(&records);
            offset = batch_next_offset(it.batch);
        }
    }
}

// Every acknowledged record is at its offset.
static void check_log(const struct run *r, struct client *c)
{
    int *at = calloc((size_t)r->next + 1, sizeof *at);
    for (partition_id p = 0; p < PARTITIONS; p++) {
        read_partition(r, c, p, at);
    }
    for (int i = 0; i < r->acked_count; i++) {
        if (at[r->acked[i].number] != r->acked[i].base + 1) {
            fail_msg("record %d was acknowledged at %lld and is at %d", r->acked[i].number,
                     (long long)r->acked[i].base, at[r->acked[i].number] - 1);
        }
    }
    free(at);
    for (unsigned i = 0; i < c->replies_count; i++) {
        free((void *)(uintptr_t)c->replies[i].data);
    }
    c->replies_taken = c->replies_count = 0;
}

static void run_with(uint64_t seed)
{
    struct run *r = calloc(1, sizeof *r);
    fixture_start(&f, seed);
    for (int round = 0; round < ROUNDS; round++) {
        struct client *c = fixture_connect(&f, 0);
        check_log(r, c);
        produce_until(r, c, world_now(f.world) + world_between(f.world, 0, 150000));
        fixture_lose_power(&f);
    }
    struct client *c = fixture_connect(&f, 1);
    check_log(r, c);
    assert_true(r->acked_count > 20);
    fixture_stop(&f);
    free(r);
}

static void acknowledged_records_survive_a_loss_of_power(void **unused)
{
    (void)unused;
    const char *seeds = getenv("KRAFT_SEEDS"); // how many runs
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) : 8;
    for (uint64_t seed = 1; seed <= count; seed++) {
        printf("seed %llu\n", (unsigned long long)seed);
        run_with(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(acknowledged_records_survive_a_loss_of_power)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
