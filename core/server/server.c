// SPDX-License-Identifier: Apache-2.0
// A node, assembled: loops, pools, listeners, and the order in which its halves start and stop.
//
// Start: directories and logs (main thread), listeners (closed to clients until there is something to serve),
// then each half on its loop. Stop: the broker half hands over its leaderships and leaves while everything
// still works; then its lines are closed, then the quorum; the owner ends the loops; last the logs are closed
// and marked clean.
#include "core/server/server_priv.h"

#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/base/path.h"
#include "core/server/config_view.h"
#include "storage/log_dir.h"

#define ANSWER_FRAME_BYTES (64 * 1024 * 1024) // longest answer of a controller

#define FROM(ptr, field) ((struct server *)(void *)((char *)(ptr)-offsetof(struct server, field)))

// ---- small things for the parts -------------------------------------------------------------------------
struct log_sink *server_log(const struct server *s)
{
    return s->log;
}

struct forwarder *server_forwarder(const struct server *s)
{
    return s->forwarder;
}

const struct server_config *server_configuration(const struct server *s)
{
    return s->config;
}

struct node_loop *server_signal_loop(const struct server *s)
{
    return s->broker_loop ? s->broker_loop : s->controller_loop;
}

uint16_t server_listener_port(const struct server *s, const char *name)
{
    for (uint32_t i = 0; i < s->listeners_count; i++)
        if (slice_equal_str(s->listeners[i].config->name, name) && s->listeners[i].socket)
            return node_listener_port(s->listeners[i].socket);
    return 0;
}

struct controller_channel *server_open_channel(struct server *s, struct node_loop *loop, const char *name,
                                               uint32_t answer_ms, void (*found)(void *data, node_id active))
{
    char client[16];
    (void)snprintf(client, sizeof client, "%d", s->config->id);
    struct controller_channel_opts o = {.loop = loop,
                                        .log = s->log,
                                        .name = name,
                                        .client_id = client,
                                        .bootstrap = s->places,
                                        .bootstrap_count = s->places_count,
                                        .connect_timeout_ms = s->config->quorum_request_timeout_ms,
                                        .answer_timeout_ms = answer_ms,
                                        .frame_bytes_max = ANSWER_FRAME_BYTES,
                                        .found = found,
                                        .data = s};
    return controller_channel_open(&o);
}

// ---- listeners ------------------------------------------------------------------------------------------
static int accept_broker(struct node_conn *c, void *data)
{
    struct server_listener *l = data;
    return atomic_load(&l->server->broker_accepts) ? request_accept(c, &l->request) : ERR_STATE;
}

static int accept_controller(struct node_conn *c, void *data)
{
    struct server_listener *l = data;
    return atomic_load(&l->server->controller_accepts) ? request_accept(c, &l->request) : ERR_STATE;
}

static int accept_quorum(struct node_conn *c, void *data)
{
    struct server_listener *l = data;
    request_hand_on(c);
    if (!atomic_load(&l->server->controller_accepts))
        return ERR_STATE;
    return quorum_accept(controller_node_quorum(l->server->controller), c);
}

static const struct image *controller_image(const struct request *rq)
{
    return controller_node_image(rq->listener->controller_node);
}

static node_id active_controller(const struct request *rq)
{
    return quorum_leader(controller_node_quorum(rq->listener->controller_node));
}

static void prepare_listener(struct server *s, struct server_listener *l, const struct config_endpoint *e)
{
    bool controller = server_config_is_controller_listener(s->config, e->name);
    l->server = s;
    l->config = e;
    l->request = (struct request_listener){.name = (const char *)e->name.data,
                                           .controller = controller,
                                           .security_protocol = (int16_t)e->security,
                                           .broker = controller ? NULL : &s->broker,
                                           .cluster_id = s->cluster_id,
                                           .node_id = s->config->id,
                                           .kraft_version = s->config->voters_count > 0 ? 0 : 1,
                                           .image = controller ? controller_image : NULL,
                                           .controller_id = controller ? active_controller : NULL};
    if (controller) {
        l->request.loops = s->controller_requests_list;
        l->request.loops_count = 1;
        return;
    }
    l->loops = mem_calloc(s->data_loops_count, sizeof *l->loops);
    for (unsigned i = 0; i < s->data_loops_count; i++)
        l->loops[i] = &s->broker.loops[i].requests;
    l->request.loops = l->loops;
    l->request.loops_count = s->data_loops_count;
}

static int open_listener(struct server *s, struct server_listener *l, struct errmsg *msg)
{
    bool controller = l->request.controller;
    struct node_listen_opts o = {
        .host = (const char *)l->config->host.data,
        .port = l->config->port,
        .backlog = s->config->listen_backlog,
        .loops = controller ? &s->controller_loop : s->data_loops,
        .loops_count = controller ? 1 : s->data_loops_count,
        .limits = {.frame_bytes_max = s->config->request_bytes_max,
                   .idle_ms = s->config->connection_idle_ms > 0 && s->config->connection_idle_ms < UINT32_MAX
                                  ? (uint32_t)s->config->connection_idle_ms
                                  : 0},
        .magic = controller ? QUORUM_MAGIC : 0,
        .accept = controller ? accept_controller : accept_broker,
        .accept_magic = controller ? accept_quorum : NULL,
        .data = l};
    int err = node_listen(s->node, &o, &l->socket, msg);
    if (err != 0)
        err_prefix(msg, "listener " SLICE_FMT, SLICE_ARG(l->config->name));
    return err;
}

// Ports that were left to the system become known when the listeners are open.
static void note_ports(struct server *s)
{
    for (uint32_t i = 0; i < s->config->advertised_count; i++) {
        s->advertised[i] = s->config->advertised[i];
        if (s->advertised[i].port == 0)
            s->advertised[i].port = server_listener_port(s, (const char *)s->advertised[i].name.data);
    }
    s->controller_endpoint = s->config->controller_advertised;
    if (s->config->is_controller && s->controller_endpoint.port == 0)
        s->controller_endpoint.port =
            server_listener_port(s, (const char *)s->config->controller_listener->name.data);
}

// ---- where controllers may be ---------------------------------------------------------------------------
static void add_place(struct server *s, node_id id, struct slice host, uint16_t port)
{
    struct controller_endpoint *p = &s->places[s->places_count];
    if (s->places_count == SERVER_ENDPOINTS_MAX || host.len == 0 || host.len >= sizeof p->host || port == 0)
        return;
    *p = (struct controller_endpoint){.id = id, .port = port};
    memcpy(p->host, host.data, host.len);
    s->places_count++;
}

static void gather_places(struct server *s)
{
    if (s->config->is_controller)
        add_place(s, s->config->id, s->controller_endpoint.host, s->controller_endpoint.port);
    for (uint32_t i = 0; i < s->config->voters_count; i++)
        if (!s->config->is_controller || s->config->voters[i].id != s->config->id)
            add_place(s, s->config->voters[i].id, s->config->voters[i].host, s->config->voters[i].port);
    for (uint32_t i = 0; i < s->config->bootstrap_count; i++)
        add_place(s, -1, s->config->bootstrap[i].host, s->config->bootstrap[i].port);
}

// ---- create ---------------------------------------------------------------------------------------------
static void fill_broker(struct server *s)
{
    const struct server_config *c = s->config;
    struct broker *b = &s->broker;
    b->node = s->node;
    b->vfs = s->opts.fs;
    b->log = s->log;
    b->ops = server_broker_ops();
    b->ops_data = s;
    b->pool_short = s->pool_short;
    b->pool_long = s->pool_long;
    b->settings = (struct broker_settings){.config = &c->values,
                                           .id = c->id,
                                           .cluster_id = s->cluster_id,
                                           .rack = c->rack,
                                           .open_files_max = s->opts.open_files_max,
                                           .log_dirs = c->log_dirs,
                                           .log_dir_ids = s->log_dir_ids,
                                           .log_dirs_count = c->log_dirs_count,
                                           .auto_create_topics = c->auto_create_topics,
                                           .num_partitions = c->num_partitions,
                                           .default_replication_factor = c->replication_factor,
                                           .fetch_max_bytes = c->fetch_max_bytes,
                                           .fetch_sessions_max = c->fetch_sessions_max,
                                           .request_partitions_max = c->request_partitions_max,
                                           .producer_id_expiration_ms = c->producer_id_expiration_ms,
                                           .replica_lag_time_ms_max = c->replica_lag_time_ms_max,
                                           .log_retention_check_ms = c->log_retention_check_ms,
                                           .high_watermark_checkpoint_ms = c->high_watermark_checkpoint_ms,
                                           .recovery_point_checkpoint_ms = c->recovery_point_checkpoint_ms,
                                           .log_start_checkpoint_ms = c->log_start_checkpoint_ms,
                                           .flush_scheduler_ms = c->flush_scheduler_ms,
                                           .file_delete_delay_ms = c->file_delete_delay_ms,
                                           .unstable_api_versions = c->unstable_api_versions};
}

static void fill_controller(struct server *s)
{
    const struct server_config *c = s->config;
    s->validator = config_view_validator(c);
    s->controller_opts = (struct controller_opts){.id = c->id,
                                                  .cluster_id = slice_str(s->cluster_id),
                                                  .num_partitions = c->num_partitions,
                                                  .replication_factor = c->replication_factor,
                                                  .min_insync_replicas = c->min_insync_replicas,
                                                  .unclean_election = c->unclean_election,
                                                  .delete_topics = c->delete_topics,
                                                  .session_timeout_ms = c->broker_session_ms,
                                                  .replication_factor_max = 1,
                                                  .imbalance_limit = c->imbalance_percent / 100.0,
                                                  .configs = s->validator};
}

static bool is_log_dir(const struct server_config *c, const char *dir)
{
    for (uint32_t i = 0; i < c->log_dirs_count; i++)
        if (strcmp(c->log_dirs[i], dir) == 0)
            return true;
    return false;
}

// A metadata directory that no log_dir locks is locked here.
static int lock_metadata_dir(struct server *s, struct errmsg *msg)
{
    if (!s->config->is_controller ||
        (s->config->is_broker && is_log_dir(s->config, s->config->metadata_log_dir)))
        return 0;
    char *path = path_join(s->config->metadata_log_dir, ".lock");
    int err = s->opts.fs->ops->lock(s->opts.fs, path, &s->metadata_lock);
    if (err != 0)
        err = err_set(msg, err,
                      err == ERR_LOCKED ? "%s is held by another process: is this node running already?"
                                        : "%s: cannot be locked",
                      path);
    mem_free(path);
    return err;
}

int server_create(const struct server_opts *opts, struct server **out, struct errmsg *msg)
{
    struct server *s = mem_zalloc(sizeof *s);
    const struct server_config *c = opts->config;
    s->opts = *opts;
    s->config = c;
    s->node = opts->node;
    s->log = opts->log;
    s->cluster_id = mem_strdup(opts->cluster_id);
    s->log_dir_ids = mem_dup(opts->log_dir_ids, c->log_dirs_count * sizeof *s->log_dir_ids);
    s->advertised = mem_calloc(c->advertised_count + 1, sizeof *s->advertised);
    atomic_store(&s->active_controller, -1);
    mutex_init(&s->mail_lock);
    s->pool_short = node_pool_create(s->node, "short", 2);
    int err = lock_metadata_dir(s, msg);
    if (err == 0 && c->is_broker) {
        s->pool_long = node_pool_create(s->node, "long", 1);
        s->broker_loop = node_loop_create(s->node, "broker");
        s->data_loops_count = opts->data_loops;
        s->data_loops = mem_calloc(s->data_loops_count, sizeof *s->data_loops);
        for (unsigned i = 0; i < s->data_loops_count; i++) {
            char name[16] = "data-0";
            if (i > 0) {
                name[5] = (char)('0' + i / 10 % 10);
                name[6] = (char)('0' + i % 10);
            }
            s->data_loops[i] = node_loop_create(s->node, name);
        }
        fill_broker(s);
        err = broker_init(&s->broker, s->data_loops, s->data_loops_count, msg);
        s->broker_ready = err == 0;
    }
    if (err == 0 && c->is_controller) {
        s->pool_raft = node_pool_create(s->node, "raft-log", 1);
        s->controller_loop = node_loop_create(s->node, "controller");
        fill_controller(s);
        s->controller_requests_list[0] = &s->controller_requests;
    }
    if (err != 0) {
        server_free(s);
        return err;
    }
    *out = s;
    return 0;
}

// ---- start and stop -------------------------------------------------------------------------------------
static void start_broker_task(struct node_task *t)
{
    server_broker_start(FROM(t, start_broker));
}

static void start_controller_task(struct node_task *t)
{
    server_controller_start(FROM(t, start_controller));
}

static void stop_broker_task(struct node_task *t)
{
    server_broker_stop(FROM(t, stop_broker));
}

static void stop_controller_task(struct node_task *t)
{
    server_controller_stop(FROM(t, stop_controller));
}

int server_start(struct server *s, struct errmsg *msg)
{
    s->listeners_count = s->config->listeners_count;
    s->listeners = mem_calloc(s->listeners_count + 1, sizeof *s->listeners);
    for (uint32_t i = 0; i < s->listeners_count; i++) {
        struct server_listener *l = &s->listeners[i];
        prepare_listener(s, l, &s->config->listeners[i]);
        int err = open_listener(s, l, msg);
        if (err != 0)
            return err;
    }
    note_ports(s);
    gather_places(s);
    s->start_broker.run = start_broker_task;
    s->start_controller.run = start_controller_task;
    s->stop_broker.run = stop_broker_task;
    s->stop_controller.run = stop_controller_task;
    if (s->controller_loop)
        node_loop_post(s->controller_loop, &s->start_controller);
    if (s->broker_loop)
        node_loop_post(s->broker_loop, &s->start_broker);
    return 0;
}

void server_stop(struct server *s)
{
    if (s->broker_loop)
        node_loop_post(s->broker_loop, &s->stop_broker);
    else
        node_loop_post(s->controller_loop, &s->stop_controller);
}

void server_free(struct server *s)
{
    if (s->broker_ready && atomic_load(&s->broker.epoch) < 0)
        atomic_store(&s->broker.epoch, server_previous_epoch(s)); // never registered: as it was
    if (s->broker_ready)
        broker_fini(&s->broker);
    if (s->controller)
        controller_node_free(s->controller);
    if (s->metadata_lock)
        vfs_file_unref(s->metadata_lock);
    if (s->metadata_dir_owned && s->metadata_dir)
        log_dir_drop(s->metadata_dir);
    if (s->metadata_files)
        file_cache_free(s->metadata_files);
    controller_channel_free(s->heartbeats);
    controller_channel_free(s->forwards);
    controller_channel_free(s->metadata);
    controller_channel_free(s->registrations);
    if (s->producer_ids)
        producer_ids_free(s->producer_ids);
    if (s->dirs)
        dir_assignments_free(s->dirs);
    if (s->forwarder)
        forwarder_free(s->forwarder);
    if (s->controller)
        request_loop_fini(&s->controller_requests);
    for (uint32_t i = 0; i < s->listeners_count; i++)
        mem_free(s->listeners[i].loops);
    mem_free(s->lifecycle_dirs);
    image_unref(s->published);
    image_unref(s->mail);
    mutex_fini(&s->mail_lock);
    mem_free(s->listeners);
    mem_free(s->data_loops);
    mem_free(s->validator);
    mem_free(s->advertised);
    mem_free(s->log_dir_ids);
    mem_free(s->cluster_id);
    mem_free(s);
}
