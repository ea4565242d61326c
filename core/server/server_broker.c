// SPDX-License-Identifier: Apache-2.0
// The broker half's place in the assembly: its start and end on the broker loop, images into the data path,
// broker_ops.
//
// The first image that reaches the data path is one that holds this process's own registration: whatever was
// in the metadata log before it is known then, so that no partition on disk is taken for stray and none is
// missed.
#include "core/server/server_priv.h"

#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/base/path.h"
#include "core/metadata/delta.h"
#include "core/server/auto_topics.h"
#include "core/server/replica_manager.h"

#define METADATA_FILES_MAX 16    // descriptors kept open for a metadata directory of its own
#define REQUEST_TIMEOUT_MS 30000 // request.timeout.ms

// ---- what the data path asks for (broker_ops) -----------------------------------------------------------
static void op_auto_create(struct broker *b, struct request *rq, const struct slice *names, unsigned count,
                           void (*done)(struct request *rq, const int16_t *errors, unsigned count))
{
    struct server *s = b->ops_data;
    auto_topics_create(s->forwarder, s->config, rq, names, count, done);
}

static void op_producer_id(struct broker *b, struct request *rq,
                           void (*done)(struct request *rq, int16_t error, int64_t producer_id))
{
    struct server *s = b->ops_data;
    producer_ids_next(s->producer_ids, rq, done);
}

struct offline_notice {
    struct node_task task;
    struct server *server;
    struct uuid dir;
};

static void dir_offline_task(struct node_task *t)
{
    struct offline_notice *n = (struct offline_notice *)t;
    struct server *s = n->server;
    uint32_t room = sizeof s->offline_dirs / sizeof *s->offline_dirs;
    if (s->lifecycle)
        broker_lifecycle_dir_offline(s->lifecycle, n->dir);
    if (s->offline_dirs_count < room)
        s->offline_dirs[s->offline_dirs_count++] = n->dir;
    if (s->offline_dirs_count >= s->config->log_dirs_count)
        node_stop(s->node, "every log directory is offline");
    mem_free(n);
}

static void op_dir_offline(struct broker *b, const struct uuid *dir)
{
    struct server *s = b->ops_data;
    struct offline_notice *n = mem_zalloc(sizeof *n);
    n->task.run = dir_offline_task;
    n->server = s;
    n->dir = *dir;
    node_loop_post(s->broker_loop, &n->task);
}

static void op_assign_dir(struct broker *b, const struct uuid *topic_id, partition_id partition,
                          const struct uuid *dir)
{
    struct server *s = b->ops_data;
    dir_assignments_add(s->dirs, *topic_id, partition, *dir);
}

static node_id op_controller(struct broker *b)
{
    struct server *s = b->ops_data;
    return atomic_load(&s->active_controller);
}

static const struct broker_ops ops = {.auto_create_topics = op_auto_create,
                                      .next_producer_id = op_producer_id,
                                      .log_dir_offline = op_dir_offline,
                                      .assign_replica_dir = op_assign_dir,
                                      .controller_id = op_controller};

const struct broker_ops *server_broker_ops(void)
{
    return &ops;
}

// ---- which controller ------------------------------------------------------------------------------------
void server_broker_follow(struct server *s, node_id active)
{
    if (!s->lifecycle) // not started, or stopped
        return;
    atomic_store(&s->active_controller, active);
    controller_channel_follow(s->heartbeats, active);
    controller_channel_follow(s->forwards, active);
    if (s->metadata)
        controller_channel_follow(s->metadata, active);
}

// One line has found the active controller: those that wait for a hung predecessor go there too.
static void on_found(void *data, node_id active)
{
    server_broker_follow(data, active);
}

// ---- images ---------------------------------------------------------------------------------------------
static bool holds_own_registration(struct server *s, const struct image *image)
{
    const struct image_broker *b = image_broker(image, s->config->id);
    return b && s->lifecycle && uuid_equal(b->incarnation, broker_lifecycle_incarnation(s->lifecycle));
}

static bool somebody_stops(const struct image_delta *delta, broker_id self)
{
    for (int64_t i = 0; i < delta->brokers_count; i++)
        if (delta->brokers[i].id != self && delta->brokers[i].after &&
            delta->brokers[i].after->in_controlled_shutdown)
            return true;
    return false;
}

static void learn_controllers(struct server *s, const struct image *image)
{
    for (const struct image_controller *c = image_controller_next(image, NULL); c;
         c = image_controller_next(image, c)) {
        struct controller_endpoint e = {.id = c->id};
        if (c->endpoints_count == 0 || c->endpoints[0].host.len >= sizeof e.host)
            continue;
        memcpy(e.host, c->endpoints[0].host.data, c->endpoints[0].host.len);
        e.port = c->endpoints[0].port;
        controller_channel_learn(s->heartbeats, &e);
        controller_channel_learn(s->forwards, &e);
        if (s->metadata)
            controller_channel_learn(s->metadata, &e);
    }
}

void server_broker_image(struct server *s, struct image *newest)
{
    struct image *image = (struct image *)(uintptr_t)image_visible(newest);
    if (!s->lifecycle || (!s->published && !holds_own_registration(s, image)))
        return;
    struct arena arena;
    arena_init(&arena);
    struct image *from = s->published ? s->published : image_empty();
    struct image_delta delta;
    image_diff(from, image, &arena, &delta);
    broker_publish(&s->broker, image, &delta);
    if (delta.controllers_count > 0)
        learn_controllers(s, image);
    bool hurry = somebody_stops(&delta, s->config->id);
    arena_fini(&arena);
    bool first = s->published == NULL;
    s->published = image_ref(image);
    image_unref(from);
    if (first)
        broker_start(&s->broker);
    broker_lifecycle_replayed(s->lifecycle, image_offset(image));
    if (hurry)
        broker_lifecycle_hurry(s->lifecycle);
}

static void follower_image(void *data, struct image *image, log_offset offset)
{
    server_broker_image(data, image);
}

// ---- the metadata log of a node without the controller role ---------------------------------------------
struct metadata_entry {
    bool found, clean;
};

static int find_metadata(void *data, const struct log_dir_entry *e)
{
    struct metadata_entry *m = data;
    if (e->kind == LOG_DIR_PARTITION && strcmp(e->topic, "__cluster_metadata") == 0) {
        m->found = true;
        m->clean = e->clean;
    }
    return 0;
}

static struct log_dir *find_log_dir(struct server *s)
{
    for (uint32_t i = 0; i < s->config->log_dirs_count; i++)
        if (strcmp(s->config->log_dirs[i], s->config->metadata_log_dir) == 0)
            return replica_manager_dir(s->broker.replicas, i);
    return NULL;
}

static void open_metadata_dir(struct server *s)
{
    struct errmsg msg = {.text = ""};
    s->metadata_dir = find_log_dir(s);
    if (s->metadata_dir)
        return;
    s->metadata_files = file_cache_new(METADATA_FILES_MAX);
    struct log_dir_options o = {
        .fs = s->opts.fs, .path = s->config->metadata_log_dir, .files = s->metadata_files};
    if (log_dir_open(&o, &s->metadata_dir, &msg) != 0)
        node_stop(s->node, "metadata.log.dir cannot be used: %s", msg.text);
    log_dir_set_id(s->metadata_dir, s->opts.metadata_dir_id);
    s->metadata_dir_owned = true;
}

static void start_follower(struct server *s)
{
    struct errmsg msg = {.text = ""};
    struct metadata_entry m = {false, false};
    open_metadata_dir(s);
    if (log_dir_list(s->metadata_dir, find_metadata, &m, &msg) != 0)
        node_stop(s->node, "the metadata directory cannot be listed: %s", msg.text);
    if (s->metadata_dir_owned)
        log_dir_loaded(s->metadata_dir);
    s->metadata = server_open_channel(s, s->broker_loop, "metadata", s->config->fetch_timeout_ms, on_found);
    struct metadata_follower_opts o = {.node = s->node,
                                       .loop = s->broker_loop,
                                       .log = s->log,
                                       .fs = s->opts.fs,
                                       .dir = s->metadata_dir,
                                       .channel = s->metadata,
                                       .id = s->config->id,
                                       .directory_id = s->opts.metadata_dir_id,
                                       .cluster_id = s->cluster_id,
                                       .segment_bytes = s->config->metadata_segment_bytes,
                                       .snapshot_bytes = s->config->snapshot_bytes,
                                       .pool = s->pool_short,
                                       .existing = m.found,
                                       .clean = m.clean,
                                       .on_image = follower_image,
                                       .data = s};
    int err = metadata_follower_start(&o, &s->follower, &msg);
    if (err != 0)
        node_stop(s->node, "the metadata log cannot be opened: %s", msg.text[0] ? msg.text : err_text(err));
}

// ---- lifecycle ------------------------------------------------------------------------------------------
static void on_registered(void *data, broker_epoch epoch)
{
    struct server *s = data;
    atomic_store(&s->broker.epoch, epoch);
}

// Clients come in from here on: before, this broker could lead nothing and would show them an empty cluster.
static void on_running(void *data)
{
    struct server *s = data;
    atomic_store(&s->broker_accepts, true);
    if (s->opts.running)
        s->opts.running(s->opts.data);
}

static void close_lines(struct server *s)
{
    struct errmsg msg = {.text = ""};
    if (s->follower && metadata_follower_stop(s->follower, &msg) != 0)
        log_error(s->log, "metadata", "the metadata log could not be closed cleanly", "reason=%s", msg.text);
    s->follower = NULL;
    if (s->metadata_dir_owned) {
        if (log_dir_close(s->metadata_dir, atomic_load(&s->broker.epoch), &msg) != 0)
            log_error(s->log, "metadata", "the metadata directory could not be closed cleanly", "reason=%s",
                      msg.text);
        s->metadata_dir = NULL;
    }
    broker_lifecycle_free(s->lifecycle);
    s->lifecycle = NULL;
    if (s->metadata)
        controller_channel_close(s->metadata);
    controller_channel_close(s->forwards);
    controller_channel_close(s->heartbeats);
}

// The controller has let this broker go (or nobody answers): no more clients, then the rest.
static void on_left(void *data)
{
    struct server *s = data;
    atomic_store(&s->broker_accepts, false);
    for (uint32_t i = 0; i < s->listeners_count; i++)
        if (!s->listeners[i].request.controller && s->listeners[i].socket)
            node_listener_close(s->listeners[i].socket);
    broker_stop(&s->broker);
    node_loop_post(s->broker_loop, &s->stop_broker); // second step, outside the lifecycle's call
}

static struct uuid *online_dirs(struct server *s, uint32_t *count)
{
    struct uuid *ids = mem_calloc(s->config->log_dirs_count + 1, sizeof *ids);
    *count = 0;
    for (uint32_t i = 0; i < s->config->log_dirs_count; i++)
        if (replica_manager_dir_is_online(s->broker.replicas, i))
            ids[(*count)++] = s->log_dir_ids[i];
    return ids;
}

// Epoch of the last clean stop: known only where every directory was stopped cleanly in the same
// registration.
broker_epoch server_previous_epoch(struct server *s)
{
    broker_epoch epoch = -1;
    for (uint32_t i = 0; i < s->config->log_dirs_count; i++) {
        const struct log_dir *d = replica_manager_dir(s->broker.replicas, i);
        if (!d || !log_dir_was_clean(d) || (i > 0 && log_dir_previous_epoch(d) != epoch))
            return -1;
        epoch = log_dir_previous_epoch(d);
    }
    return epoch;
}

void server_broker_start(struct server *s)
{
    const struct server_config *c = s->config;
    s->heartbeats = server_open_channel(s, s->broker_loop, "heartbeat", c->broker_session_ms / 2, on_found);
    s->forwards = server_open_channel(s, s->broker_loop, "forward", REQUEST_TIMEOUT_MS, on_found);
    s->forwarder = forwarder_create(s->broker_loop, s->forwards, REQUEST_TIMEOUT_MS);
    s->producer_ids = producer_ids_create(&s->broker, s->broker_loop, s->forwards);
    s->dirs = dir_assignments_create(&s->broker, s->broker_loop, s->forwards);
    if (!c->is_controller)
        start_follower(s);
    uint32_t dirs_count;
    struct uuid *dirs = online_dirs(s, &dirs_count);
    struct broker_lifecycle_opts o = {.node = s->node,
                                      .loop = s->broker_loop,
                                      .log = s->log,
                                      .channel = s->heartbeats,
                                      .id = c->id,
                                      .cluster_id = s->cluster_id,
                                      .rack = c->rack,
                                      .listeners = s->advertised,
                                      .listeners_count = c->advertised_count,
                                      .log_dirs = dirs,
                                      .log_dirs_count = dirs_count,
                                      .previous_epoch = server_previous_epoch(s),
                                      .heartbeat_ms = c->broker_heartbeat_ms,
                                      .registration_timeout_ms = c->registration_timeout_ms,
                                      .registered = on_registered,
                                      .running = on_running,
                                      .stopped = on_left,
                                      .data = s};
    s->lifecycle_dirs = dirs;
    s->lifecycle = broker_lifecycle_start(&o);
}

void server_broker_stop(struct server *s)
{
    if (!s->leaving) {
        s->leaving = true;
        if (s->lifecycle)
            broker_lifecycle_shut_down(s->lifecycle);
        return;
    }
    close_lines(s);
    if (s->controller_loop)
        node_loop_post(s->controller_loop, &s->stop_controller);
    else
        s->opts.stopped(s->opts.data);
}
