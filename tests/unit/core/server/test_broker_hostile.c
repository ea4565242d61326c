// SPDX-License-Identifier: Apache-2.0
// Requests of random content, whole, cut short and with flipped bits: the broker goes on serving.
//
// The vectors' requests are sent as they are, and once more with names and partitions that exist, so that
// their random numbers reach the handlers' depths. Clients die in between, with requests under way.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "core/base/bytes.h"
#include "core/protocol/gen/delete_records_request.h"
#include "core/protocol/gen/errors.h"
#include "core/protocol/gen/fetch_request.h"
#include "core/protocol/gen/fetch_response.h"
#include "core/protocol/gen/list_offsets_request.h"
#include "core/protocol/gen/offset_for_leader_epoch_request.h"
#include "core/protocol/gen/produce_request.h"
#include "core/protocol/header.h"
#include "tests/unit/core/server/broker_fixture.h"
#include "tests/vectors/vectors.h"

static struct fixture f; // one at a time
static uint64_t random_state = 1;

static uint64_t draw(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

// APIs whose handlers need nothing but the broker of the fixture.
static bool is_ours(int api)
{
    switch (api) {
    case KP_API_PRODUCE:
    case KP_API_FETCH:
    case KP_API_LIST_OFFSETS:
    case KP_API_METADATA:
    case KP_API_API_VERSIONS:
    case KP_API_DELETE_RECORDS:
    case KP_API_INIT_PRODUCER_ID:
    case KP_API_OFFSET_FOR_LEADER_EPOCH:
    case KP_API_DESCRIBE_LOG_DIRS:
    case KP_API_DESCRIBE_CLUSTER:
    case KP_API_DESCRIBE_PRODUCERS:
    case KP_API_DESCRIBE_TOPIC_PARTITIONS:
        return true;
    default:
        return false;
    }
}

static void renew_clients(void)
{
    world_crash(f.client_host, false);
    world_run(f.world, 50);
    (void)world_boot(f.client_host);
    for (unsigned k = 0; k < f.clients[0].replies_count; k++) {
        free((void *)(uintptr_t)f.clients[0].replies[k].data);
    }
    f.clients[0].replies_count = 0;
}

static void send_once(struct slice frame)
{
    struct client *c = &f.clients[0];
    if (c->conn == NULL || c->closed || c->replies_count > FIXTURE_REPLIES_MAX - 8) {
        renew_clients();
        c = fixture_connect(&f, 0);
    }
    client_send_bytes(c, frame);
    world_run(f.world, draw(8) == 0 ? 1000 : 5);
}

static void send_variants(int16_t api, int16_t version, struct slice body)
{
    struct rope out;
    rope_init(&out);
    struct kp_request_header h;
    kp_request_header_init(&h);
    h.request_api_key = api;
    h.request_api_version = version;
    h.client_id = SLICE_LIT("hostile");
    assert_int_equal(kp_header_write_request(&out, &h), 0);
    rope_write(&out, body.data, body.len);
    uint8_t *bytes = malloc(out.len + 1);
    size_t len = out.len;
    assert_int_equal(rope_flatten(&out, bytes), 0);
    rope_clear(&out);
    send_once(slice_of(bytes, len));
    for (int i = 0; i < 2; i++) {
        size_t at = len > 20 ? 10 + draw(len - 10) : len - 1;
        uint8_t old = bytes[at];
        bytes[at] ^= (uint8_t)(1u << draw(8));
        send_once(slice_of(bytes, len));
        bytes[at] = old;
    }
    send_once(slice_of(bytes, 10 + draw(len - 9)));
    free(bytes);
}

static struct slice existing_topic(void)
{
    return draw(2) ? SLICE_LIT("t") : SLICE_LIT("flushed");
}

// Puts in names, ids and partitions that exist; the other numbers stay as they came.
static void make_real(int16_t api, void *m)
{
    if (api == KP_API_PRODUCE) {
        struct kp_produce_request *r = m;
        r->transactional_id = SLICE_NULL;
        r->acks = (int16_t)draw(3) - 1;
        for (int32_t i = 0; i < r->topic_data_count; i++) {
            r->topic_data[i].name = existing_topic();
            r->topic_data[i].topic_id = (struct uuid){{[3] = 1}};
            for (int32_t k = 0; k < r->topic_data[i].partition_data_count; k++) {
                r->topic_data[i].partition_data[k].index = (int32_t)draw(2);
                r->topic_data[i].partition_data[k].records.bytes =
                    fixture_batch(&f, 1 + (int32_t)draw(5), (int64_t)draw(3) - 1, (int32_t)draw(3));
            }
        }
    } else if (api == KP_API_FETCH) {
        struct kp_fetch_request *r = m;
        r->replica_id = r->replica_state.replica_id = draw(4) ? -1 : (int32_t)draw(3);
        r->cluster_id = SLICE_NULL;
        if (draw(2)) {
            r->session_id = 0;
            r->session_epoch = (int32_t)draw(2) - 1;
        }
        for (int32_t i = 0; i < r->topics_count; i++) {
            r->topics[i].topic = SLICE_LIT("t");
            r->topics[i].topic_id = (struct uuid){{[3] = 1}};
            for (int32_t k = 0; k < r->topics[i].partitions_count; k++) {
                struct kp_fetch_request_fetch_partition *p = &r->topics[i].partitions[k];
                p->partition = (int32_t)draw(2);
                p->current_leader_epoch = (int32_t)draw(3) - 1;
                p->last_fetched_epoch = (int32_t)draw(3) - 1;
                p->fetch_offset = draw(3) ? (int64_t)draw(20) : p->fetch_offset;
            }
        }
    } else if (api == KP_API_LIST_OFFSETS) {
        struct kp_list_offsets_request *r = m;
        for (int32_t i = 0; i < r->topics_count; i++) {
            r->topics[i].name = existing_topic();
            for (int32_t k = 0; k < r->topics[i].partitions_count; k++) {
                r->topics[i].partitions[k].partition_index = (int32_t)draw(2);
                r->topics[i].partitions[k].current_leader_epoch = -1;
                if (draw(2)) {
                    r->topics[i].partitions[k].timestamp = (int64_t)draw(2000) - 8;
                }
            }
        }
    } else if (api == KP_API_OFFSET_FOR_LEADER_EPOCH) {
        struct kp_offset_for_leader_epoch_request *r = m;
        for (int32_t i = 0; i < r->topics_count; i++) {
            r->topics[i].topic = existing_topic();
            for (int32_t k = 0; k < r->topics[i].partitions_count; k++) {
                r->topics[i].partitions[k].partition = (int32_t)draw(2);
                r->topics[i].partitions[k].current_leader_epoch = -1;
            }
        }
    } else if (api == KP_API_DELETE_RECORDS) {
        struct kp_delete_records_request *r = m;
        for (int32_t i = 0; i < r->topics_count; i++) {
            r->topics[i].name = existing_topic();
            for (int32_t k = 0; k < r->topics[i].partitions_count; k++) {
                r->topics[i].partitions[k].partition_index = (int32_t)draw(2);
                if (draw(2)) {
                    r->topics[i].partitions[k].offset = (int64_t)draw(20) - 2;
                }
            }
        }
    }
}

static void send_real(int16_t api, int16_t version, struct slice body)
{
    const struct kp_message_type *type = kp_message_of_api(api, KP_REQUEST);
    struct arena arena;
    struct kp_reader r;
    arena_init(&arena);
    kp_reader_init(&r, body, &arena, NULL);
    void *m = arena_zalloc(&arena, type->size);
    kp_message_init(type, m);
    assert_int_equal(kp_message_decode(type, m, &r, version), 0);
    make_real(api, m);
    struct rope out;
    rope_init(&out);
    assert_int_equal(kp_message_encode(type, m, &out, version), 0);
    uint8_t *bytes = malloc(out.len + 1);
    size_t len = out.len;
    assert_int_equal(rope_flatten(&out, bytes), 0);
    rope_clear(&out);
    arena_fini(&arena);
    send_variants(api, version, slice_of(bytes, len));
    free(bytes);
}

static void random_requests_do_not_stop_the_broker(void **unused)
{
    (void)unused;
    const char *seed = getenv("KRAFT_SEED"); // other random bytes
    random_state = seed != NULL ? strtoull(seed, NULL, 10) * 2 + 1 : 1;
    fixture_start(&f, 3);
    struct vectors v = vectors_open("requests");
    for (json_t *line; (line = vectors_next(&v)) != NULL; json_decref(line)) {
        int16_t api = (int16_t)json_integer_value(json_object_get(line, "api_key"));
        int16_t version = (int16_t)json_integer_value(json_object_get(line, "version"));
        if (!is_ours(api)) {
            continue;
        }
        size_t len = 0;
        uint8_t *body = vectors_unhex(json_string_value(json_object_get(line, "hex")), &len);
        send_variants(api, version, slice_of(body, len));
        send_real(api, version, slice_of(body, len));
        free(body);
    }
    vectors_close(&v);
    renew_clients();
    assert_null(world_host_stopped(f.host));
    struct client *c = fixture_connect(&f, 1);
    log_offset base = -1;
    assert_int_equal(client_produce(c, "t", 0, -1, fixture_batch(&f, 1, -1, -1), &base), KE_NONE);
    struct kp_fetch_response *out = client_fetch(c, base, 0);
    assert_int_equal(out->responses[0].partitions[0].error_code, KE_NONE);
    assert_true(out->responses[0].partitions[0].records.bytes.len > 0);
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_requests_do_not_stop_the_broker)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
