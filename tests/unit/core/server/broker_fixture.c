// SPDX-License-Identifier: Apache-2.0
// A broker in the simulated world, and its client.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "core/base/bytes.h"
#include "core/metadata/delta.h"
#include "core/metadata/record_list.h"
#include "core/metadata/replay.h"
#include "core/protocol/gen/fetch_request.h"
#include "core/protocol/gen/fetch_response.h"
#include "core/protocol/gen/produce_request.h"
#include "core/protocol/gen/produce_response.h"
#include "core/protocol/header.h"
#include "core/record/builder.h"
#include "core/server/data_plane.h"
#include "core/server/replica_manager.h"
#include "tests/unit/core/server/broker_fixture.h"

#define CLUSTER_ID "4L6g3nShT-eMCtK--X86sw"
#define MINUTE_MS 60000

static const struct uuid dir_ids[] = {{{9, 9, 9}}, {{8, 8, 8}}};
static const char *const dirs[] = {"/data", "/more"};

// ---- the image ------------------------------------------------------------------------------------------

static void add_broker(struct record_list *l, struct kp_register_broker_record_broker_endpoint *e,
                       broker_id id)
{
    struct kp_register_broker_record *r =
        &record_list_add(l, METADATA_REGISTER_BROKER, 3)->body.register_broker;
    kp_register_broker_record_broker_endpoint_init(e);
    e->name = SLICE_LIT("PLAINTEXT");
    e->host = id == 1 ? SLICE_LIT("broker") : SLICE_LIT("other");
    e->port = FIXTURE_PORT;
    r->broker_id = id;
    r->broker_epoch = id;
    r->incarnation_id.b[0] = (uint8_t)id;
    r->end_points = e;
    r->end_points_count = 1;
    r->fenced = false;
}

static void add_topic(struct record_list *l, const char *name, uint8_t id, int32_t partitions,
                      int32_t *leader)
{
    struct kp_topic_record *t = &record_list_add(l, METADATA_TOPIC, 0)->body.topic;
    t->name = slice_str(name);
    t->topic_id.b[3] = id;
    for (int32_t i = 0; i < partitions; i++) {
        struct kp_partition_record *p = &record_list_add(l, METADATA_PARTITION, 0)->body.partition;
        p->topic_id.b[3] = id;
        p->partition_id = i;
        p->replicas = p->isr = leader;
        p->replicas_count = p->isr_count = 1;
        p->leader = *leader;
        p->leader_epoch = 0;
        p->partition_epoch = 0;
    }
}

static void add_config(struct record_list *l, const char *topic, const char *key, const char *value)
{
    struct kp_config_record *c = &record_list_add(l, METADATA_CONFIG, 0)->body.config;
    c->resource_type = 2;
    c->resource_name = slice_str(topic);
    c->name = slice_str(key);
    c->value = slice_str(value);
}

static const struct image *make_image(const struct image *from)
{
    struct arena arena;
    arena_init(&arena);
    struct record_list list;
    record_list_init(&list, &arena);
    struct kp_register_broker_record_broker_endpoint e1;
    struct kp_register_broker_record_broker_endpoint e2;
    int32_t mine = 1;
    int32_t other = 2;
    add_broker(&list, &e1, 1);
    add_broker(&list, &e2, 2);
    add_topic(&list, "t", 1, 2, &mine);
    add_topic(&list, "flushed", 2, 1, &mine);
    add_topic(&list, "elsewhere", 3, 1, &other);
    add_topic(&list, "small", 4, 1, &mine);
    add_config(&list, "flushed", "flush.messages", "1");
    add_config(&list, "small", "max.message.bytes", "200");
    add_topic(&list, "wide", 6, 12, &mine);
    add_config(&list, "wide", "flush.messages", "1");
    add_topic(&list, "short", 5, 1, &mine);
    add_config(&list, "short", "segment.bytes", "1048576");
    add_config(&list, "short", "retention.ms", "60000");
    add_config(&list, "short", "segment.ms", "30000");
    add_config(&list, "short", "message.timestamp.type", "LogAppendTime");
    struct image_builder *b = image_builder_create(from);
    for (uint32_t i = 0; i < list.count; i++) {
        struct errmsg msg = {""};
        if (image_replay(b, &list.items[i], i + 1, 1, &msg) != 0) {
            fail_msg("replay: %s", msg.text);
        }
    }
    arena_fini(&arena);
    return image_builder_finish(b);
}

// ---- the broker -----------------------------------------------------------------------------------------

static void next_producer_id(struct broker *b, struct request *rq,
                             void (*done)(struct request *, int16_t, int64_t))
{
    struct fixture *f = b->ops_data;
    done(rq, 0, f->next_producer_id++);
}

static void auto_create(struct broker *b, struct request *rq, const struct slice *names, unsigned count,
                        void (*done)(struct request *, const int16_t *, unsigned))
{
    struct fixture *f = b->ops_data;
    int16_t errors[16] = {0};
    (void)names;
    f->created_topics += count;
    done(rq, errors, count);
}

static void start_broker(void *data)
{
    struct fixture *f = data;
    struct node *n = world_host_node(f->host);
    f->broker = (struct broker){.node = n, .vfs = world_host_fs(f->host), .ops_data = f};
    f->broker.settings = (struct broker_settings){.id = 1,
                                                  .cluster_id = CLUSTER_ID,
                                                  .log_dirs = dirs,
                                                  .log_dir_ids = dir_ids,
                                                  .log_dirs_count = f->dirs_count,
                                                  .auto_create_topics = true,
                                                  .num_partitions = 1,
                                                  .default_replication_factor = 1,
                                                  .fetch_max_bytes = 57671680,
                                                  .fetch_sessions_max = 100,
                                                  .request_partitions_max = 2000,
                                                  .producer_id_expiration_ms = 86400000,
                                                  .replica_lag_time_ms_max = 30000,
                                                  .log_retention_check_ms = 300000,
                                                  .high_watermark_checkpoint_ms = 5000,
                                                  .recovery_point_checkpoint_ms = 60000,
                                                  .log_start_checkpoint_ms = 60000,
                                                  .flush_scheduler_ms = INT64_MAX,
                                                  .file_delete_delay_ms = 60000};
    f->ops = (struct broker_ops){.auto_create_topics = auto_create, .next_producer_id = next_producer_id};
    f->broker.ops = &f->ops;
    f->broker.pool_short = node_pool_create(n, "short", 2);
    f->broker.pool_long = node_pool_create(n, "long", 1);
    struct node_loop *loop = node_loop_create(n, "data-0");
    struct errmsg msg = {""};
    if (broker_init(&f->broker, &loop, 1, &msg) != 0) {
        fail_msg("broker_init: %s", msg.text);
    }
    struct image *empty = image_empty();
    f->image = make_image(empty);
    struct arena arena;
    struct image_delta delta;
    arena_init(&arena);
    image_diff(empty, f->image, &arena, &delta);
    broker_publish(&f->broker, f->image, &delta);
    arena_fini(&arena);
    image_unref(empty);
    broker_start(&f->broker);
    f->loops[0] = &f->broker.loops[0].requests;
    f->listener = (struct request_listener){.name = "PLAINTEXT",
                                            .broker = &f->broker,
                                            .loops = f->loops,
                                            .loops_count = 1,
                                            .cluster_id = CLUSTER_ID,
                                            .node_id = 1};
    struct node_listen_opts opts = {.host = "broker",
                                    .port = FIXTURE_PORT,
                                    .backlog = 50,
                                    .loops = &loop,
                                    .loops_count = 1,
                                    .limits = {.frame_bytes_max = 104857600},
                                    .accept = request_accept,
                                    .data = &f->listener};
    if (node_listen(n, &opts, &f->listening, &msg) != 0) {
        fail_msg("node_listen: %s", msg.text);
    }
}

static void finish_broker(void *data)
{
    struct fixture *f = data;
    struct errmsg msg = {""};
    // The rest of the broker is dropped with its node's memory: in the world a loop's hooks run to the end.
    if (replica_manager_close(f->broker.replicas, 1, &msg) != 0 && !f->disk_failed) {
        fail_msg("close: %s", msg.text);
    }
}

static void stop_upkeep(void *data)
{
    struct fixture *f = data;
    broker_stop(&f->broker);
}

static void stop_broker(struct fixture *f, bool clean)
{
    if (clean) {
        (void)world_call(world_host_node(f->host), stop_upkeep, f);
        world_run(f->world, 1000);
        (void)world_call(world_host_node(f->host), finish_broker, f);
    }
    world_crash(f->host, false);
    world_run(f->world, 1000);
}

void fixture_start(struct fixture *f, uint64_t seed)
{
    fixture_start_with(f, seed, 1);
}

void fixture_start_with(struct fixture *f, uint64_t seed, unsigned dirs_count)
{
    *f = (struct fixture){.next_producer_id = 1000, .dirs_count = dirs_count};
    f->world = world_new(seed);
    f->host = world_host_new(f->world, "broker");
    f->client_host = world_host_new(f->world, "client");
    arena_init(&f->arena);
    (void)world_boot(f->client_host);
    (void)world_boot(f->host);
    (void)world_call(world_host_node(f->host), start_broker, f);
    world_run(f->world, 100);
}

void fixture_restart(struct fixture *f, bool clean)
{
    stop_broker(f, clean);
    (void)world_boot(f->host);
    (void)world_call(world_host_node(f->host), start_broker, f);
    world_run(f->world, 100);
}

void fixture_lose_power(struct fixture *f)
{
    world_crash(f->host, true);
    world_run(f->world, 10);
    (void)world_boot(f->host);
    (void)world_call(world_host_node(f->host), start_broker, f);
    world_run(f->world, 100);
}

static void publish_change(void *data)
{
    struct fixture *f = data;
    struct arena arena;
    struct record_list list;
    struct image_delta delta;
    arena_init(&arena);
    record_list_init(&list, &arena);
    f->fill(&list);
    struct image_builder *b = image_builder_create(f->image);
    log_offset at = image_offset(f->image);
    for (uint32_t i = 0; i < list.count; i++) {
        struct errmsg msg = {""};
        if (image_replay(b, &list.items[i], ++at, 1, &msg) != 0) {
            fail_msg("replay: %s", msg.text);
        }
    }
    struct image *next = image_builder_finish(b);
    image_diff(f->image, next, &arena, &delta);
    broker_publish(&f->broker, next, &delta);
    arena_fini(&arena);
    image_unref(f->image);
    f->image = next;
}

void fixture_change(struct fixture *f, void (*fill)(struct record_list *l))
{
    f->fill = fill;
    (void)world_call(world_host_node(f->host), publish_change, f);
    world_run(f->world, 10);
}

void fixture_stop(struct fixture *f)
{
    stop_broker(f, true);
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned k = 0; k < f->clients[i].replies_count; k++) {
            free((void *)(uintptr_t)f->clients[i].replies[k].data);
        }
    }
    arena_fini(&f->arena);
    world_free(f->world);
}

// ---- the client -----------------------------------------------------------------------------------------

static int got_frame(struct node_conn *conn, uint8_t *data, size_t len)
{
    struct client *c = node_conn_data(conn);
    assert_true(c->replies_count < FIXTURE_REPLIES_MAX);
    uint8_t *copy = malloc(len);
    memcpy(copy, data, len);
    c->replies[c->replies_count++] = slice_of(copy, len);
    return 0;
}

static void got_closed(struct node_conn *conn, int reason)
{
    struct client *c = node_conn_data(conn);
    (void)reason;
    c->conn = NULL;
    c->closed = true;
}

static const struct node_conn_ops client_ops = {.frame = got_frame, .closed = got_closed};

static void dialled(struct node_conn *conn, int err, void *data)
{
    struct client *c = data;
    assert_int_equal(err, 0);
    c->conn = conn;
    node_conn_set_data(conn, c);
    node_conn_set_ops(conn, &client_ops);
}

static void dial(void *data)
{
    struct client *c = data;
    struct node_loop *loop = node_loop_create(world_host_node(c->f->client_host), "client");
    struct node_dial d = {.host = "broker",
                          .port = FIXTURE_PORT,
                          .timeout_ms = 5000,
                          .limits = {.frame_bytes_max = 104857600},
                          .done = dialled,
                          .data = c};
    node_dial(loop, &d);
}

static bool is_connected(void *data)
{
    return ((struct client *)data)->conn != NULL;
}

struct client *fixture_connect(struct fixture *f, unsigned number)
{
    struct client *c = &f->clients[number];
    for (unsigned k = 0; k < c->replies_count; k++) {
        free((void *)(uintptr_t)c->replies[k].data);
    }
    *c = (struct client){.f = f};
    (void)world_call(world_host_node(f->client_host), dial, c);
    assert_true(world_run_until(f->world, MINUTE_MS, is_connected, c));
    return c;
}

struct sending {
    struct client *c;   // who
    struct slice bytes; // header and body
};

static void send_frame(void *data)
{
    struct sending *s = data;
    struct rope out;
    rope_init(&out);
    bytes_store_be32(rope_reserve(&out, 4), (uint32_t)s->bytes.len);
    rope_write(&out, s->bytes.data, s->bytes.len);
    node_conn_send(s->c->conn, &out);
}

void client_send_bytes(struct client *c, struct slice header_and_body)
{
    struct sending s = {c, header_and_body};
    assert_non_null(c->conn);
    (void)world_call(world_host_node(c->f->client_host), send_frame, &s);
}

void client_send(struct client *c, int16_t api, int16_t version, const void *body)
{
    struct rope out;
    rope_init(&out);
    struct kp_request_header h;
    kp_request_header_init(&h);
    h.request_api_key = api;
    h.request_api_version = version;
    h.correlation_id = ++c->correlation;
    h.client_id = SLICE_LIT("test");
    assert_int_equal(kp_header_write_request(&out, &h), 0);
    assert_int_equal(kp_message_encode(kp_message_of_api(api, KP_REQUEST), body, &out, version), 0);
    uint8_t *bytes = malloc(out.len);
    assert_int_equal(rope_flatten(&out, bytes), 0);
    client_send_bytes(c, slice_of(bytes, out.len));
    free(bytes);
    rope_clear(&out);
}

static bool reply_or_end(void *data)
{
    struct client *c = data;
    return c->replies_taken < c->replies_count || c->closed;
}

bool client_has_reply(struct client *c)
{
    return c->replies_taken < c->replies_count;
}

void *client_receive(struct client *c, int16_t api, int16_t version)
{
    (void)world_run_until(c->f->world, MINUTE_MS, reply_or_end, c);
    if (!client_has_reply(c)) {
        fail_msg("no reply to api %d version %d (%s)", api, version, c->closed ? "closed" : "silence");
    }
    struct slice frame = c->replies[c->replies_taken++];
    const struct kp_message_type *type = kp_message_of_api(api, KP_RESPONSE);
    struct kp_reader r;
    struct kp_response_header h;
    struct errmsg msg = {""};
    kp_reader_init(&r, frame, &c->f->arena, &msg);
    assert_int_equal(kp_header_read_response(&r, kp_api_find(api), version, &h), 0);
    void *m = arena_zalloc(&c->f->arena, type->size);
    kp_message_init(type, m);
    if (kp_message_decode(type, m, &r, version) != 0) {
        fail_msg("reply to api %d version %d: %s", api, version, msg.text);
    }
    assert_int_equal(kp_reader_left(&r), 0);
    return m;
}

void *client_call(struct client *c, int16_t api, int16_t version, const void *body)
{
    client_send(c, api, version, body);
    return client_receive(c, api, version);
}

// ---- produce and fetch ----------------------------------------------------------------------------------

struct slice fixture_batch(struct fixture *f, int32_t count, int64_t producer_id, int32_t sequence)
{
    struct builder_options opts = BUILDER_OPTIONS_DEFAULT;
    opts.producer_id = producer_id;
    opts.producer_epoch = producer_id >= 0 ? 0 : -1;
    opts.base_sequence = sequence;
    struct builder b;
    builder_init(&b, &opts);
    for (int32_t i = 0; i < count; i++) {
        char value[32];
        int n = snprintf(value, sizeof value, "v%d", i);
        builder_append(&b, 1000 + i, SLICE_LIT("k"), slice_of(value, (size_t)n), NULL, 0);
    }
    struct slice out;
    assert_int_equal(builder_finish(&b, &out, NULL), 0);
    out = arena_dup_slice(&f->arena, out);
    builder_fini(&b);
    return out;
}

void client_send_produce(struct client *c, const char *topic, partition_id partition, int16_t acks,
                         struct slice batch)
{
    struct kp_produce_request in;
    struct kp_produce_request_topic_produce_data t;
    struct kp_produce_request_partition_produce_data p;
    kp_produce_request_init(&in);
    kp_produce_request_topic_produce_data_init(&t);
    kp_produce_request_partition_produce_data_init(&p);
    in.acks = acks;
    in.timeout_ms = 1000;
    in.topic_data = &t;
    in.topic_data_count = 1;
    t.name = slice_str(topic);
    t.partition_data = &p;
    t.partition_data_count = 1;
    p.index = partition;
    p.records.bytes = batch;
    client_send(c, KP_API_PRODUCE, 9, &in);
}

int16_t client_produce(struct client *c, const char *topic, partition_id partition, int16_t acks,
                       struct slice batch, log_offset *base)
{
    client_send_produce(c, topic, partition, acks, batch);
    struct kp_produce_response *out = client_receive(c, KP_API_PRODUCE, 9);
    if (base != NULL) {
        *base = out->responses[0].partition_responses[0].base_offset;
    }
    return out->responses[0].partition_responses[0].error_code;
}

void client_send_fetch(struct client *c, log_offset offset, int32_t max_wait_ms, int32_t min_bytes)
{
    struct kp_fetch_request in;
    struct kp_fetch_request_fetch_topic t;
    struct kp_fetch_request_fetch_partition p;
    kp_fetch_request_init(&in);
    kp_fetch_request_fetch_topic_init(&t);
    kp_fetch_request_fetch_partition_init(&p);
    in.max_wait_ms = max_wait_ms;
    in.min_bytes = min_bytes;
    in.max_bytes = 1 << 20;
    in.topics = &t;
    in.topics_count = 1;
    t.topic = SLICE_LIT("t");
    t.partitions = &p;
    t.partitions_count = 1;
    p.fetch_offset = offset;
    p.current_leader_epoch = 0;
    p.partition_max_bytes = 1 << 20;
    client_send(c, KP_API_FETCH, 12, &in);
}

struct kp_fetch_response *client_fetch(struct client *c, log_offset offset, int32_t max_wait_ms)
{
    client_send_fetch(c, offset, max_wait_ms, 1);
    return client_receive(c, KP_API_FETCH, 12);
}
