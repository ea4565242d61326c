// SPDX-License-Identifier: Apache-2.0
// Makes a node's configuration: every key alone, then the typed fields, then what must hold between keys.
#include "core/config/server_config.h"

#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/base/strbuf.h"
#include "core/config/check.h"
#include "core/config/key.h"
#include "core/config/server_internal.h"

struct slice config__text(const struct server_config *c, const char *name)
{
    const struct config_entry *e = config_values_find(&c->values, slice_str(name));
    if (e) {
        return config_trim(e->value);
    }
    const struct config_key *k = config_find(CONFIG_KIND_BROKER, slice_str(name));
    MUST(k != NULL);
    return slice_str(k->value);
}

bool config__given(const struct server_config *c, const char *name)
{
    return config_values_find(&c->values, slice_str(name)) != NULL;
}

int64_t config__long(const struct server_config *c, const char *name)
{
    int64_t n = -1;
    struct slice text = config__text(c, name);
    MUST(slice_is_null(text) || config_read_long(text, &n));
    return n;
}

bool config__bool(const struct server_config *c, const char *name)
{
    bool b = false;
    MUST(config_read_bool(config__text(c, name), &b));
    return b;
}

const char *config__keep(struct server_config *c, struct slice text)
{
    char *copy = arena_alloc(&c->arena, text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

// ---- every key alone

static void warn(const struct config_warn *w, const struct strbuf *text)
{
    if (w && w->warn) {
        w->warn(w->data, strbuf_text(text));
    }
}

static void name_origin(struct strbuf *out, const struct config_entry *e)
{
    if (e->origin == CONFIG_FROM_FILE) {
        strbuf_printf(out, " (line %u of the file)", e->line);
    } else {
        strbuf_add_str(out, e->origin == CONFIG_FROM_ENVIRONMENT ? " (from the environment)"
                                                                 : " (from --override)");
    }
}

static void warn_unknown(const struct config_warn *w, const struct config_entry *e)
{
    struct strbuf text;
    strbuf_init(&text);
    const char *advice = config_removed(e->key), *near = config_nearest(CONFIG_KIND_BROKER, e->key);
    if (advice) {
        strbuf_printf(&text, "key " SLICE_FMT " was removed in Kafka 4.0 and has no effect",
                      SLICE_ARG(e->key));
    } else {
        strbuf_printf(&text, "unknown key " SLICE_FMT, SLICE_ARG(e->key));
    }
    name_origin(&text, e);
    if (advice) {
        strbuf_printf(&text, ": %s", advice);
    } else if (near) {
        strbuf_printf(&text, "; did you mean %s?", near);
    }
    warn(w, &text);
    strbuf_fini(&text);
}

static int check_keys(const struct server_config *c, const struct config_warn *w, struct errmsg *msg)
{
    struct strbuf idle;
    strbuf_init(&idle);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->values.count; i++) {
        const struct config_entry *e = c->values.items[i];
        const struct config_key *key = config_find(CONFIG_KIND_BROKER, e->key);
        if (!key) {
            warn_unknown(w, e);
            continue;
        }
        rc = config_check(key, e->value, msg);
        if (rc && e->origin == CONFIG_FROM_FILE) {
            err_prefix(msg, "line %u", e->line);
        }
        if (!(key->flags & CONFIG_OBEYED)) {
            strbuf_printf(&idle, "%s" SLICE_FMT,
                          idle.len ? ", " : "known keys without effect in this release: ", SLICE_ARG(e->key));
        }
    }
    if (rc == 0 && idle.len > 0) {
        warn(w, &idle);
    }
    strbuf_fini(&idle);
    return rc;
}

// ---- fields

static int make_identity(struct server_config *c, struct errmsg *msg)
{
    struct slice roles = config__text(c, "process.roles");
    c->is_broker = config_list_has(roles, "broker");
    c->is_controller = config_list_has(roles, "controller");
    if (!c->is_broker && !c->is_controller) {
        return err_set(msg, ERR_INVALID,
                       "process.roles is missing: write process.roles=broker,controller for a node that is "
                       "both, or one of the "
                       "two");
    }
    bool has_id = config__given(c, "node.id"), has_broker_id = config__given(c, "broker.id");
    int64_t id = has_id ? config__long(c, "node.id") : config__long(c, "broker.id");
    if (!has_id && !has_broker_id) {
        return err_set(msg, ERR_INVALID,
                       "node.id is missing: give every node of the cluster a number of its own, from 0 on");
    }
    if (has_id && has_broker_id && id != config__long(c, "broker.id")) {
        return err_set(msg, ERR_INVALID, "node.id is %lld and broker.id is %lld: remove broker.id",
                       (long long)id, (long long)config__long(c, "broker.id"));
    }
    if (id < 0) {
        return err_set(msg, ERR_INVALID, "node.id is %lld: it must be 0 or more", (long long)id);
    }
    c->id = (node_id)id;
    struct slice rack = config__text(c, "broker.rack");
    c->rack = slice_is_null(rack) || rack.len == 0 ? NULL : config__keep(c, rack);
    return 0;
}

static int make_directories(struct server_config *c, struct errmsg *msg)
{
    struct slice dirs = config__text(c, "log.dirs"), rest, one;
    if (slice_is_null(dirs) || dirs.len == 0) {
        dirs = config__text(c, "log.dir");
    }
    rest = dirs;
    while (config_list_next(&rest, &one)) {
        c->log_dirs_count++;
    }
    if (c->log_dirs_count == 0) {
        return err_set(msg, ERR_INVALID, "log.dirs is empty: name at least one directory for the logs");
    }
    c->log_dirs = arena_alloc(&c->arena, c->log_dirs_count * sizeof *c->log_dirs);
    rest = dirs;
    for (uint32_t i = 0; i < c->log_dirs_count && config_list_next(&rest, &one); i++) {
        while (one.len > 1 && one.data[one.len - 1] == '/') {
            one.len--;
        }
        c->log_dirs[i] = config__keep(c, one);
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(c->log_dirs[k], c->log_dirs[i]) == 0) {
                return err_set(msg, ERR_INVALID, "log.dirs names %s twice", c->log_dirs[i]);
            }
        }
    }
    struct slice metadata = config__text(c, "metadata.log.dir");
    c->metadata_log_dir =
        slice_is_null(metadata) || metadata.len == 0 ? c->log_dirs[0] : config__keep(c, metadata);
    return 0;
}

static int parse_bootstrap(struct server_config *c, struct slice text, struct errmsg *msg)
{
    struct slice rest = text, one;
    while (config_list_next(&rest, &one)) {
        c->bootstrap_count++;
    }
    c->bootstrap = arena_zalloc(&c->arena, (c->bootstrap_count + 1) * sizeof *c->bootstrap);
    rest = text;
    for (uint32_t i = 0; i < c->bootstrap_count && config_list_next(&rest, &one); i++) {
        struct slice host;
        int rc = endpoint_parse_host_port(one, &host, &c->bootstrap[i].port, msg);
        if (rc) {
            err_prefix(msg, "controller.quorum.bootstrap.servers");
            return rc;
        }
        c->bootstrap[i].id = -1;
        c->bootstrap[i].host = slice_of(config__keep(c, host), host.len);
    }
    return 0;
}

static int make_quorum(struct server_config *c, struct errmsg *msg)
{
    int32_t count;
    int rc = endpoint_parse_voters(config__text(c, "controller.quorum.voters"), false, &c->arena, &c->voters,
                                   &count, msg);
    if (rc) {
        err_prefix(msg, "controller.quorum.voters");
        return rc;
    }
    c->voters_count = (uint32_t)count;
    rc = parse_bootstrap(c, config__text(c, "controller.quorum.bootstrap.servers"), msg);
    if (rc) {
        return rc;
    }
    if (c->voters_count == 0 && c->bootstrap_count == 0) {
        return err_set(msg, ERR_INVALID,
                       "no controllers are named: write controller.quorum.bootstrap.servers=HOST:PORT[,...] "
                       "with the controller "
                       "listeners of the cluster (for a single node its own)");
    }
    bool listed = false;
    for (uint32_t i = 0; i < c->voters_count; i++) {
        listed = listed || c->voters[i].id == c->id;
    }
    if (c->voters_count > 0 && c->is_controller && !listed) {
        return err_set(
            msg, ERR_INVALID,
            "this node is a controller with node.id %d, but controller.quorum.voters does not list it: add "
            "%d@HOST:PORT",
            c->id, c->id);
    }
    if (c->voters_count > 0 && !c->is_controller && listed) {
        return err_set(
            msg, ERR_INVALID,
            "this node is only a broker, but controller.quorum.voters lists its node.id %d: give it another "
            "node.id, or add controller to process.roles",
            c->id);
    }
    c->auto_join = config__bool(c, "controller.quorum.auto.join.enable");
    c->election_timeout_ms = (uint32_t)config__long(c, "controller.quorum.election.timeout.ms");
    c->fetch_timeout_ms = (uint32_t)config__long(c, "controller.quorum.fetch.timeout.ms");
    c->quorum_request_timeout_ms = (uint32_t)config__long(c, "controller.quorum.request.timeout.ms");
    c->snapshot_bytes =
        (uint32_t)(config__long(c, "metadata.log.max.record.bytes.between.snapshots") > INT32_MAX
                       ? INT32_MAX
                       : config__long(c, "metadata.log.max.record.bytes.between.snapshots"));
    c->snapshot_interval_ms = (uint64_t)config__long(c, "metadata.log.max.snapshot.interval.ms");
    c->metadata_segment_bytes = (uint32_t)config__long(c, "metadata.log.segment.bytes");
    c->metadata_retention_bytes = config__long(c, "metadata.max.retention.bytes");
    c->metadata_retention_ms = config__long(c, "metadata.max.retention.ms");
    c->metadata_idle_ms = (uint32_t)config__long(c, "metadata.max.idle.interval.ms");
    return 0;
}

static void make_rest(struct server_config *c)
{
    c->broker_heartbeat_ms = (uint32_t)config__long(c, "broker.heartbeat.interval.ms");
    c->broker_session_ms = (uint32_t)config__long(c, "broker.session.timeout.ms");
    c->registration_timeout_ms = (uint32_t)config__long(c, "initial.broker.registration.timeout.ms");
    c->controlled_shutdown = config__bool(c, "controlled.shutdown.enable");
    c->auto_rebalance = config__bool(c, "auto.leader.rebalance.enable");
    c->rebalance_check_seconds = (uint32_t)config__long(c, "leader.imbalance.check.interval.seconds");
    c->imbalance_percent = (uint32_t)config__long(c, "leader.imbalance.per.broker.percentage");

    c->auto_create_topics = config__bool(c, "auto.create.topics.enable");
    c->delete_topics = config__bool(c, "delete.topic.enable");
    c->num_partitions = (int32_t)config__long(c, "num.partitions");
    c->replication_factor = (int16_t)config__long(c, "default.replication.factor");
    c->min_insync_replicas = (int32_t)config__long(c, "min.insync.replicas");
    c->unclean_election = config__bool(c, "unclean.leader.election.enable");
    c->offsets_partitions = (int32_t)config__long(c, "offsets.topic.num.partitions");
    c->offsets_replication_factor = (int16_t)config__long(c, "offsets.topic.replication.factor");
    c->offsets_segment_bytes = (int32_t)config__long(c, "offsets.topic.segment.bytes");

    c->network_loops_given = config__given(c, "kraft.network.loops");
    c->network_loops =
        (uint32_t)config__long(c, c->network_loops_given ? "kraft.network.loops" : "num.network.threads");
    c->frame_memory_bytes = (uint64_t)config__long(c, "kraft.memory.frames.bytes");
    c->request_bytes_max = (uint32_t)config__long(c, "socket.request.max.bytes");
    // The reference's default would switch off the system's own fitting of buffers, which serves large
    // requests twice as well: only a value that somebody chose is obeyed.
    c->send_buffer_bytes = config__given(c, "socket.send.buffer.bytes")
                               ? (int32_t)config__long(c, "socket.send.buffer.bytes")
                               : -1;
    c->receive_buffer_bytes = config__given(c, "socket.receive.buffer.bytes")
                                  ? (int32_t)config__long(c, "socket.receive.buffer.bytes")
                                  : -1;
    c->listen_backlog = (int32_t)config__long(c, "socket.listen.backlog.size");
    c->connection_idle_ms = config__long(c, "connections.max.idle.ms");
    c->fetch_max_bytes = (int32_t)config__long(c, "fetch.max.bytes");
    c->fetch_sessions_max = (int32_t)config__long(c, "max.incremental.fetch.session.cache.slots");
    c->request_partitions_max = (int32_t)config__long(c, "max.request.partition.size.limit");

    c->producer_id_expiration_ms = (int32_t)config__long(c, "producer.id.expiration.ms");
    c->log_retention_check_ms = config__long(c, "log.retention.check.interval.ms");
    c->high_watermark_checkpoint_ms = config__long(c, "replica.high.watermark.checkpoint.interval.ms");
    c->recovery_point_checkpoint_ms = config__long(c, "log.flush.offset.checkpoint.interval.ms");
    c->log_start_checkpoint_ms = config__long(c, "log.flush.start.offset.checkpoint.interval.ms");
    c->flush_scheduler_ms = config__long(c, "log.flush.scheduler.interval.ms");
    c->file_delete_delay_ms = config__long(c, "log.segment.delete.delay.ms");
    c->recovery_threads = (uint32_t)config__long(c, "num.recovery.threads.per.data.dir");

    c->replica_lag_time_ms_max = (int32_t)config__long(c, "replica.lag.time.max.ms");
    c->replica_fetchers = (int32_t)config__long(c, "num.replica.fetchers");
    c->replica_fetch_max_bytes = (int32_t)config__long(c, "replica.fetch.max.bytes");
    c->replica_fetch_response_max_bytes = (int32_t)config__long(c, "replica.fetch.response.max.bytes");
    c->replica_fetch_wait_ms_max = (int32_t)config__long(c, "replica.fetch.wait.max.ms");
    c->replica_fetch_min_bytes = (int32_t)config__long(c, "replica.fetch.min.bytes");
    c->replica_fetch_backoff_ms = (int32_t)config__long(c, "replica.fetch.backoff.ms");
    c->unstable_api_versions = config__bool(c, "unstable.api.versions.enable");
}

// ---- what must hold between keys

static int check_times(const struct server_config *c, struct errmsg *msg)
{
    static const char *const retention[] = {"log.retention.ms", "log.retention.minutes",
                                            "log.retention.hours"};
    for (size_t i = 0; i < sizeof retention / sizeof *retention; i++) {
        int64_t n = config__given(c, retention[i]) ? config__long(c, retention[i]) : -1;
        if (n == 0 || n < -1) {
            return err_set(msg, ERR_INVALID, "%s is %lld: write -1 for no limit, or 1 and more", retention[i],
                           (long long)n);
        }
    }
    if (c->broker_heartbeat_ms == 0 || (int32_t)c->broker_heartbeat_ms < 0 ||
        c->broker_session_ms <= c->broker_heartbeat_ms) {
        return err_set(msg, ERR_INVALID,
                       "broker.session.timeout.ms (%d) must be above broker.heartbeat.interval.ms (%d): "
                       "three heartbeats or more "
                       "should fit into a session",
                       (int)c->broker_session_ms, (int)c->broker_heartbeat_ms);
    }
    if (c->replication_factor < 1) {
        return err_set(msg, ERR_INVALID, "default.replication.factor is %d: it must be 1 or more",
                       c->replication_factor);
    }
    return 0;
}

// What would leave a door open that the operator believes to be shut.
static int check_security(const struct server_config *c, struct errmsg *msg)
{
    struct slice authorizer = config__text(c, "authorizer.class.name");
    if (!slice_is_null(authorizer) && authorizer.len > 0) {
        return err_set(msg, ERR_INVALID,
                       "authorizer.class.name is set, but this release has no access control: every client "
                       "may do everything. "
                       "Remove the key only where that is acceptable");
    }
    for (uint32_t i = 0; i < c->listeners_count; i++) {
        if (c->listeners[i].security != SECURITY_PLAINTEXT) {
            return err_set(msg, ERR_INVALID,
                           "listener %s has the security protocol %s, but this release serves PLAINTEXT "
                           "only: use a PLAINTEXT "
                           "listener on a network that you trust",
                           (const char *)c->listeners[i].name.data,
                           security_protocol_name(c->listeners[i].security));
        }
    }
    if (c->controller_security != SECURITY_PLAINTEXT) {
        return err_set(msg, ERR_INVALID,
                       "listener %s of the controllers has the security protocol %s, but this release speaks "
                       "PLAINTEXT only",
                       c->controller_listener_names[0], security_protocol_name(c->controller_security));
    }
    return 0;
}

int server_config_make(struct config_values *values, const struct config_warn *w, struct server_config **out,
                       struct errmsg *msg)
{
    struct server_config *c = mem_zalloc(sizeof *c);
    c->values = *values;
    config_values_init(values);
    arena_init(&c->arena);
    int rc = check_keys(c, w, msg);
    rc = rc ? rc : make_identity(c, msg);
    rc = rc ? rc : make_directories(c, msg);
    rc = rc ? rc : config__make_listeners(c, msg);
    rc = rc ? rc : make_quorum(c, msg);
    if (rc == 0) {
        make_rest(c);
        rc = check_times(c, msg);
    }
    rc = rc ? rc : check_security(c, msg);
    if (rc) {
        server_config_free(c);
        return rc;
    }
    *out = c;
    return 0;
}

void server_config_free(struct server_config *c)
{
    if (c) {
        config_values_fini(&c->values);
        arena_fini(&c->arena);
        mem_free(c);
    }
}
