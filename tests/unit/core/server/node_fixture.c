// SPDX-License-Identifier: Apache-2.0
// Whole nodes in the simulated world, and their client.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/bytes.h"
#include "core/base/strbuf.h"
#include "core/protocol/gen/create_topics_request.h"
#include "core/protocol/gen/create_topics_response.h"
#include "core/protocol/header.h"
#include "raft/format.h"
#include "storage/meta_properties.h"
#include "tests/unit/core/server/node_fixture.h"

#define CLUSTER_ID "4L6g3nShT-eMCtK--X86sw"

// ---- formatting -----------------------------------------------------------------------------------------
static void write_properties(struct nodes *n, struct sim_node *s)
{
    struct strbuf b;
    strbuf_init(&b);
    strbuf_printf(&b, "process.roles=%s%s%s\nnode.id=%d\n", s->roles & ROLE_BROKER ? "broker" : "",
                  s->roles == (ROLE_BROKER | ROLE_CONTROLLER) ? "," : "",
                  s->roles & ROLE_CONTROLLER ? "controller" : "", s->id);
    strbuf_add_str(&b, "controller.listener.names=CONTROLLER\nlog.dirs=/data\nlisteners=");
    if (s->roles & ROLE_BROKER)
        strbuf_printf(&b, "PLAINTEXT://n%d:%d", s->id, BROKER_PORT);
    if (s->roles & ROLE_CONTROLLER)
        strbuf_printf(&b, "%sCONTROLLER://n%d:%d", s->roles & ROLE_BROKER ? "," : "", s->id, CONTROLLER_PORT);
    strbuf_add_str(&b, "\ncontroller.quorum.bootstrap.servers=");
    for (unsigned i = 0, k = 0; i < n->count; i++)
        if (n->node[i].roles & ROLE_CONTROLLER)
            strbuf_printf(&b, "%sn%d:%d", k++ ? "," : "", n->node[i].id, CONTROLLER_PORT);
    strbuf_printf(&b, "\n%s\n", n->extra ? n->extra : "");
    (void)snprintf(s->properties, sizeof s->properties, "%s", strbuf_text(&b));
    strbuf_fini(&b);
}

struct format_call {
    struct nodes *n;
    struct sim_node *s;
};

static void format_node(void *data)
{
    struct format_call *c = data;
    struct errmsg msg = {.text = ""};
    struct vfs *fs = world_host_fs(c->s->host);
    struct quorum_voter *voters = calloc(NODES_MAX, sizeof *voters);
    uint32_t count = 0;
    for (unsigned i = 0; i < c->n->count; i++) {
        struct sim_node *v = &c->n->node[i];
        if (!(v->roles & ROLE_CONTROLLER))
            continue;
        voters[count] = (struct quorum_voter){
            .id = v->id, .directory_id = v->dir, .endpoints_count = 1, .kraft_version_max = 1};
        (void)snprintf(voters[count].endpoints[0].name, sizeof voters[count].endpoints[0].name, "CONTROLLER");
        (void)snprintf(voters[count].endpoints[0].host, sizeof voters[count].endpoints[0].host, "n%d", v->id);
        voters[count++].endpoints[0].port = CONTROLLER_PORT;
    }
    int err = fs->ops->mkdir(fs, "/data");
    struct raft_format f = {.dynamic = true, .voters = voters, .voters_count = count, .now = 1};
    if (err == 0 && (c->s->roles & ROLE_CONTROLLER))
        err = raft_format_write(fs, "/data/__cluster_metadata-0", &f, &msg);
    struct meta_properties props = {.id = c->s->id, .directory_id = c->s->dir};
    (void)snprintf(props.cluster_id, sizeof props.cluster_id, CLUSTER_ID);
    if (err == 0)
        err = meta_properties_write(fs, "/data", &props, &msg);
    if (err == 0)
        err = fs->ops->sync_dir(fs, "/data");
    if (err == 0)
        err = fs->ops->sync_dir(fs, "/");
    free(voters);
    if (err != 0)
        fail_msg("format of node %d: %s %s", c->s->id, err_text(err), msg.text);
}

static void add_node(struct nodes *n, node_id id, int roles)
{
    struct sim_node *s = &n->node[n->count++];
    char name[16];
    (void)snprintf(name, sizeof name, "n%d", id);
    *s = (struct sim_node){.all = n, .id = id, .roles = roles, .host = world_host_new(n->world, name)};
    s->dir.b[0] = 7;
    s->dir.b[15] = (uint8_t)id;
}

static void make_client(void *data)
{
    struct nodes *n = data;
    n->client_loop = node_loop_create(world_host_node(n->client_host), "client");
}

void nodes_init(struct nodes *n, uint64_t seed, unsigned controllers, unsigned brokers, bool combined,
                const char *extra)
{
    memset(n, 0, sizeof *n);
    n->world = world_new(seed);
    n->extra = extra;
    arena_init(&n->arena);
    for (unsigned i = 0; i < controllers; i++)
        add_node(n, (node_id)i + 1, ROLE_CONTROLLER | (combined ? ROLE_BROKER : 0));
    for (unsigned i = 0; i < brokers; i++)
        add_node(n, (node_id)i + 11, ROLE_BROKER);
    for (unsigned i = 0; i < n->count; i++) {
        write_properties(n, &n->node[i]);
        struct format_call c = {n, &n->node[i]};
        struct node *node = world_boot(n->node[i].host);
        assert_true(world_call(node, format_node, &c));
        world_crash(n->node[i].host, false);
    }
    n->client_host = world_host_new(n->world, "client");
    assert_true(world_call(world_boot(n->client_host), make_client, n));
}

void nodes_free(struct nodes *n)
{
    free((void *)(uintptr_t)n->reply.data);
    arena_fini(&n->arena);
    world_free(n->world);
}

struct sim_node *nodes_get(struct nodes *n, node_id id)
{
    for (unsigned i = 0; i < n->count; i++)
        if (n->node[i].id == id)
            return &n->node[i];
    fail_msg("there is no node %d", id);
    return NULL;
}

// ---- life -----------------------------------------------------------------------------------------------
static void on_running(void *data)
{
    ((struct sim_node *)data)->running = true;
}

static void on_stopped(void *data)
{
    ((struct sim_node *)data)->stopped = true;
}

static void start_server(void *data)
{
    struct sim_node *s = data;
    struct errmsg msg = {.text = ""};
    struct config_values values;
    config_values_init(&values);
    int err = config_values_add_file(&values, slice_str(s->properties), &msg);
    if (err == 0)
        err = server_config_make(&values, NULL, &s->config, &msg);
    if (err != 0)
        fail_msg("configuration of node %d: %s", s->id, msg.text);
    config_values_fini(&values);
    struct server_opts o = {.node = world_host_node(s->host),
                            .fs = world_host_fs(s->host),
                            .config = s->config,
                            .data_loops = 1,
                            .cluster_id = CLUSTER_ID,
                            .log_dir_ids = &s->dir,
                            .metadata_dir_id = s->dir,
                            .running = on_running,
                            .stopped = on_stopped,
                            .data = s};
    s->create_error = server_create(&o, &s->server, &msg);
    if (s->create_error == 0)
        s->create_error = server_start(s->server, &msg);
    if (s->create_error != 0)
        fail_msg("node %d does not start: %s", s->id, msg.text);
}

void node_start(struct sim_node *s)
{
    s->running = s->stopped = false;
    s->server = NULL;
    world_host_forget_stop(s->host);
    struct node *node = world_boot(s->host);
    if (!world_call(node, start_server, s))
        fail_msg("node %d stopped itself: %s", s->id, world_host_stopped(s->host));
}

void node_crash(struct sim_node *s, bool machine)
{
    world_crash(s->host, machine);
    s->server = NULL;
    s->running = false;
}

static void stop_server(void *data)
{
    server_stop(((struct sim_node *)data)->server);
}

static bool has_stopped(void *data)
{
    return ((struct sim_node *)data)->stopped;
}

void node_end(struct sim_node *s)
{
    assert_true(world_call(world_host_node(s->host), stop_server, s));
    if (!world_run_until(s->all->world, 120000, has_stopped, s))
        fail_msg("node %d does not stop", s->id);
    node_crash(s, false);
}

void nodes_start_all(struct nodes *n)
{
    for (unsigned i = 0; i < n->count; i++)
        node_start(&n->node[i]);
}

static void check_alive(struct nodes *n)
{
    for (unsigned i = 0; i < n->count; i++)
        if (n->node[i].server && world_host_stopped(n->node[i].host))
            fail_msg("node %d stopped itself: %s", n->node[i].id, world_host_stopped(n->node[i].host));
}

static bool all_running(void *data)
{
    struct nodes *n = data;
    check_alive(n);
    for (unsigned i = 0; i < n->count; i++)
        if (n->node[i].server && (n->node[i].roles & ROLE_BROKER) && !n->node[i].running)
            return false;
    return true;
}

bool nodes_wait_running(struct nodes *n, uint64_t ms)
{
    return world_run_until(n->world, ms, all_running, n);
}

struct sim_node *nodes_active(struct nodes *n)
{
    for (unsigned i = 0; i < n->count; i++) {
        struct sim_node *s = &n->node[i];
        if (s->server && s->server->controller && controller_node_is_serving(s->server->controller))
            return s;
    }
    return NULL;
}

static bool has_active(void *data)
{
    check_alive(data);
    return nodes_active(data) != NULL;
}

bool nodes_wait_active(struct nodes *n, uint64_t ms)
{
    return world_run_until(n->world, ms, has_active, n);
}

// ---- images ---------------------------------------------------------------------------------------------
static const struct image *image_of(struct sim_node *s)
{
    if (!s->server)
        return NULL;
    if (s->roles & ROLE_CONTROLLER)
        return s->server->controller ? controller_node_image(s->server->controller) : NULL;
    return s->server->published;
}

struct hash_call {
    struct sim_node *s;
    struct image_hash hash;
};

static void hash_image(void *data)
{
    struct hash_call *c = data;
    c->hash = image_hash_of(image_of(c->s));
}

struct image_hash node_hash(struct sim_node *s)
{
    struct hash_call c = {.s = s};
    assert_true(world_call(world_host_node(s->host), hash_image, &c));
    return c.hash;
}

log_offset node_offset(struct sim_node *s)
{
    return image_of(s) ? image_offset(image_of(s)) : -1;
}

bool node_has_topic(struct sim_node *s, const char *name)
{
    return image_of(s) && image_topic_named(image_of(s), slice_str(name)) != NULL;
}

// ---- the client -----------------------------------------------------------------------------------------
static int client_frame(struct node_conn *c, uint8_t *data, size_t len)
{
    struct nodes *n = node_conn_data(c);
    uint8_t *copy = malloc(len);
    memcpy(copy, data, len);
    free((void *)(uintptr_t)n->reply.data);
    n->reply = slice_of(copy, len);
    n->answered = true;
    return 0;
}

static void client_closed(struct node_conn *c, int reason)
{
    struct nodes *n = node_conn_data(c);
    if (n->conn == c)
        n->conn = NULL;
}

static const struct node_conn_ops client_ops = {.frame = client_frame, .closed = client_closed};

static void client_dialed(struct node_conn *c, int err, void *data)
{
    struct nodes *n = data;
    n->dialed = true;
    n->conn = c;
    if (c) {
        node_conn_set_data(c, n);
        node_conn_set_ops(c, &client_ops);
    }
}

struct ask_call {
    struct nodes *n;
    uint16_t port;
    struct rope bytes;
    int16_t api, version;
    const void *body;
};

static void client_dial(void *data)
{
    struct ask_call *a = data;
    struct node_dial d = {.host = a->n->target,
                          .port = a->port,
                          .timeout_ms = 1000,
                          .limits = {.frame_bytes_max = 100 << 20},
                          .done = client_dialed,
                          .data = a->n};
    node_dial(a->n->client_loop, &d);
}

static void client_send(void *data)
{
    struct ask_call *a = data;
    struct kp_request_header h;
    struct rope body, frame;
    rope_init(&body);
    rope_init(&frame);
    kp_request_header_init(&h);
    h.request_api_key = a->api;
    h.request_api_version = a->version;
    h.correlation_id = 5;
    h.client_id = SLICE_LIT("test");
    assert_int_equal(kp_header_write_request(&body, &h), 0);
    assert_int_equal(kp_message_encode(kp_message_of_api(a->api, KP_REQUEST), a->body, &body, a->version), 0);
    uint8_t size[4];
    bytes_store_be32(size, (uint32_t)body.len);
    rope_write(&frame, size, 4);
    rope_move(&frame, &body);
    node_conn_send(a->n->conn, &frame);
    rope_clear(&frame);
}

static void client_close(void *data)
{
    struct nodes *n = data;
    if (n->conn)
        node_conn_close(n->conn, false);
    n->conn = NULL;
}

static bool is_dialed(void *data)
{
    return ((struct nodes *)data)->dialed;
}

static bool is_answered(void *data)
{
    struct nodes *n = data;
    return n->answered || !n->conn;
}

void *nodes_ask(struct nodes *n, struct sim_node *to, int16_t api, int16_t version, const void *body,
                uint64_t ms)
{
    struct ask_call a = {.n = n,
                         .port = to->roles & ROLE_BROKER ? BROKER_PORT : CONTROLLER_PORT,
                         .api = api,
                         .version = version,
                         .body = body};
    struct node *client = world_host_node(n->client_host);
    (void)snprintf(n->target, sizeof n->target, "n%d", to->id);
    n->dialed = n->answered = false;
    assert_true(world_call(client, client_dial, &a));
    if (!world_run_until(n->world, ms, is_dialed, n) || !n->conn)
        return NULL;
    assert_true(world_call(client, client_send, &a));
    (void)world_run_until(n->world, ms, is_answered, n);
    assert_true(world_call(client, client_close, n));
    if (!n->answered)
        return NULL;
    const struct kp_message_type *type = kp_message_of_api(api, KP_RESPONSE);
    struct kp_response_header h;
    struct kp_reader r;
    uint8_t *copy = arena_dup(&n->arena, n->reply.data, n->reply.len);
    kp_reader_init(&r, slice_of(copy, n->reply.len), &n->arena, NULL);
    void *out = arena_zalloc(&n->arena, type->size);
    kp_message_init(type, out);
    assert_int_equal(kp_header_read_response(&r, kp_api_find(api), version, &h), 0);
    assert_int_equal(kp_message_decode(type, out, &r, version), 0);
    return out;
}

int nodes_create_topic(struct nodes *n, struct sim_node *to, const char *name, int32_t partitions,
                       uint64_t ms)
{
    struct kp_create_topics_request q;
    struct kp_create_topics_request_creatable_topic t;
    kp_create_topics_request_init(&q);
    kp_create_topics_request_creatable_topic_init(&t);
    t.name = slice_str(name);
    t.num_partitions = partitions;
    t.replication_factor = 1;
    q.topics = &t;
    q.topics_count = 1;
    struct kp_create_topics_response *a = nodes_ask(n, to, KP_API_CREATE_TOPICS, 7, &q, ms);
    if (!a)
        return -100;
    assert_int_equal(a->topics_count, 1);
    return a->topics[0].error_code;
}
