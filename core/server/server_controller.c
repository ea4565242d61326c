// SPDX-License-Identifier: Apache-2.0
// The controller half's place in the assembly: its start and end on the controller loop, and where its images
// go.
#include "core/server/limits.h"
#include "core/server/server_priv.h"

#include "core/base/mem.h"
#include "core/base/path.h"

#define UNCLEAN_INTERVAL_MS 300000 // how often leaderless partitions are looked at, as in Kafka
#define ANSWER_MS 5000             // a silent active controller is given up after this

// ---- images ---------------------------------------------------------------------------------------------
static void mail_task(struct node_task *t)
{
    struct server *s = (struct server *)(void *)((char *)t - offsetof(struct server, mail_task));
    atomic_store(&s->mail_posted, false);
    mutex_lock(&s->mail_lock);
    struct image *image = s->mail;
    s->mail = NULL;
    mutex_unlock(&s->mail_lock);
    if (image)
        server_broker_image(s, image);
    image_unref(image);
}

// To the broker half of a combined node: the newest image, once per turn.
static void mail_image(struct server *s, struct image *image)
{
    mutex_lock(&s->mail_lock);
    image_unref(s->mail);
    s->mail = image_ref(image);
    mutex_unlock(&s->mail_lock);
    if (!atomic_exchange(&s->mail_posted, true))
        node_loop_post(s->broker_loop, &s->mail_task);
}

static void on_image(void *data, struct image *image)
{
    struct server *s = data;
    if (s->broker_loop)
        mail_image(s, image);
    if (s->registration)
        controller_registration_image(s->registration, image);
    if (!s->broker_loop && !s->controller_announced && image_metadata_version(image) > 0) {
        s->controller_announced = true;
        if (s->opts.running)
            s->opts.running(s->opts.data);
    }
}

// The broker half's lines follow at once, instead of waiting for a hung predecessor.
static void leader_task(struct node_task *t)
{
    struct server *s = (struct server *)(void *)((char *)t - offsetof(struct server, leader_task));
    atomic_store(&s->leader_posted, false);
    server_broker_follow(s, atomic_load(&s->leader));
}

static void on_leader(void *data, node_id leader)
{
    struct server *s = data;
    if (s->registrations)
        controller_channel_follow(s->registrations, leader);
    atomic_store(&s->leader, leader);
    if (s->broker_loop && !atomic_exchange(&s->leader_posted, true))
        node_loop_post(s->broker_loop, &s->leader_task);
}

// ---- the end --------------------------------------------------------------------------------------------
// Connections live until the loops end: what still comes in on them finds no controller and is refused.
static void on_stopped(void *data)
{
    struct server *s = data;
    for (uint32_t i = 0; i < s->listeners_count; i++)
        s->listeners[i].request.controller_node = NULL;
    controller_node_destroy(s->controller);
    s->opts.stopped(s->opts.data);
}

void server_controller_stop(struct server *s)
{
    atomic_store(&s->controller_accepts, false);
    if (s->membership)
        controller_membership_free(s->membership);
    s->membership = NULL;
    if (s->registration)
        controller_registration_free(s->registration);
    if (s->registrations)
        controller_channel_close(s->registrations);
    s->registration = NULL;
    for (uint32_t i = 0; i < s->listeners_count; i++)
        if (s->listeners[i].request.controller && s->listeners[i].socket)
            node_listener_close(s->listeners[i].socket);
    if (s->controller)
        controller_node_shutdown(s->controller);
    else
        s->opts.stopped(s->opts.data);
}

// ---- the start ------------------------------------------------------------------------------------------
static void copy_text(char *to, size_t size, struct slice from)
{
    size_t n = from.len < size ? from.len : size - 1;
    memcpy(to, from.data, n);
    to[n] = 0;
}

static struct quorum_voter *static_voters(struct server *s)
{
    const struct server_config *c = s->config;
    struct quorum_voter *v = mem_calloc(c->voters_count + 1, sizeof *v);
    for (uint32_t i = 0; i < c->voters_count; i++) {
        v[i].id = c->voters[i].id;
        v[i].endpoints_count = 1;
        copy_text(v[i].endpoints[0].name, sizeof v[i].endpoints[0].name,
                  slice_str(c->controller_listener_names[0]));
        copy_text(v[i].endpoints[0].host, sizeof v[i].endpoints[0].host, c->voters[i].host);
        v[i].endpoints[0].port = c->voters[i].port;
    }
    return v;
}

static void register_controller(struct server *s)
{
    s->registrations = server_open_channel(s, s->controller_loop, "registration", ANSWER_MS, NULL);
    struct controller_registration_opts o = {.node = s->node,
                                             .loop = s->controller_loop,
                                             .log = s->log,
                                             .channel = s->registrations,
                                             .id = s->config->id,
                                             .endpoint = &s->controller_endpoint};
    s->registration = controller_registration_create(&o);
    struct controller_membership_opts m = {.loop = s->controller_loop,
                                           .log = s->log,
                                           .quorum = controller_node_quorum(s->controller),
                                           .channel = s->registrations,
                                           .id = s->config->id,
                                           .directory_id = s->opts.metadata_dir_id,
                                           .cluster_id = s->cluster_id,
                                           .endpoint = &s->controller_endpoint,
                                           .auto_join = s->config->auto_join};
    s->membership = controller_membership_create(&m);
}

void server_controller_start(struct server *s)
{
    s->mail_task.run = mail_task;
    s->leader_task.run = leader_task;
    const struct server_config *c = s->config;
    struct errmsg msg = {.text = ""};
    char *dir = path_join(c->metadata_log_dir, "__cluster_metadata-0");
    struct quorum_voter *voters = c->voters_count > 0 ? static_voters(s) : NULL;
    struct quorum_opts q = {.node = s->node,
                            .loop = s->controller_loop,
                            .raft_log = s->pool_raft,
                            .short_pool = s->pool_short,
                            .fs = s->opts.fs,
                            .dir = dir,
                            .cluster_id = s->cluster_id,
                            .id = c->id,
                            .directory_id = s->opts.metadata_dir_id,
                            .static_voters = voters,
                            .static_voters_count = c->voters_count,
                            .disk_replaced = s->opts.disk_replaced,
                            .election_timeout_ms = c->election_timeout_ms,
                            .snapshot_bytes = c->snapshot_bytes,
                            .snapshot_interval_ms = c->snapshot_interval_ms,
                            .segment_bytes = c->metadata_segment_bytes,
                            .retention_bytes = c->metadata_retention_bytes,
                            .retention_ms = c->metadata_retention_ms,
                            .reserve_bytes = METADATA_RESERVE_BYTES,
                            .log = s->log};
    copy_text(q.endpoint.name, sizeof q.endpoint.name, s->controller_endpoint.name);
    copy_text(q.endpoint.host, sizeof q.endpoint.host, s->controller_endpoint.host);
    q.endpoint.port = s->controller_endpoint.port;
    struct controller_node_opts o = {.node = s->node,
                                     .loop = s->controller_loop,
                                     .log = s->log,
                                     .quorum = &q,
                                     .controller = &s->controller_opts,
                                     .config = c,
                                     .idle_noop_ms = c->metadata_idle_ms,
                                     .balance_interval_ms =
                                         c->auto_rebalance ? c->rebalance_check_seconds * 1000 : 0,
                                     .unclean_interval_ms = UNCLEAN_INTERVAL_MS,
                                     .on_image = on_image,
                                     .on_leader = on_leader,
                                     .stopped = on_stopped,
                                     .data = s};
    int err = controller_node_create(&o, &s->controller, &msg);
    mem_free(dir);
    mem_free(voters);
    if (err != 0)
        node_stop(s->node, "the controller cannot start: %s", msg.text[0] ? msg.text : err_text(err));
    request_loop_init(&s->controller_requests, s->controller_loop, NULL, s->log);
    for (uint32_t i = 0; i < s->listeners_count; i++)
        if (s->listeners[i].request.controller)
            s->listeners[i].request.controller_node = s->controller;
    register_controller(s);
    atomic_store(&s->controller_accepts, true);
}
