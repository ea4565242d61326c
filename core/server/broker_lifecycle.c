// SPDX-License-Identifier: Apache-2.0
// A broker's life: one request at a time to the active controller, a registration or a heartbeat.
#include "core/server/broker_lifecycle.h"

#include "core/base/assert.h"
#include "core/base/logline.h"
#include "core/base/mem.h"
#include "core/metadata/metadata_version.h"
#include "core/protocol/gen/apis.h"
#include "core/protocol/gen/broker_heartbeat_request.h"
#include "core/protocol/gen/broker_heartbeat_response.h"
#include "core/protocol/gen/broker_registration_request.h"
#include "core/protocol/gen/broker_registration_response.h"
#include "core/protocol/gen/errors.h"
#include "core/server/controller_channel.h"
#include "core/server/limits.h"

#define OFFLINE_DIRS_MAX 64      // log.dirs has no more
#define CATCH_UP_MS 20           // between heartbeats while fenced or stopping
#define RETRY_MS 100             // after a refused registration
#define SHUTDOWN_SILENCE_MS 3000 // a stopping broker that nobody answers goes by itself
#define SHUTDOWN_MS_MAX 60000    // longest controlled shutdown

enum lifecycle_state { LC_STARTING, LC_CATCHING_UP, LC_RUNNING, LC_STOPPING, LC_STOPPED };

struct broker_lifecycle {
    struct broker_lifecycle_opts opts;     // as given
    enum lifecycle_state state;            // see the header
    struct uuid incarnation;               // new at every start of the process
    broker_epoch epoch;                    // of the registration; -1 none
    log_offset replayed;                   // last offset published; -1 none
    struct channel_request request;        // the one request
    bool in_flight;                        // it is with the channel
    bool registering;                      // it is a registration
    bool again;                            // something changed while it was under way: another one at once
    bool ever_running;                     // `running` was called
    bool ever_registered;                  // the first registration has succeeded
    struct node_timer timer;               // next heartbeat or retry
    struct log_limit refused_limit;        // of the line that tells of a refused registration
    mono_us started;                       // for the registration timeout
    mono_us shutdown_started;              // for SHUTDOWN_MS_MAX
    mono_us heard;                         // last answer while stopping
    struct node_timer shutdown_timer;      // looks at the two
    struct uuid offline[OFFLINE_DIRS_MAX]; // log directories that failed
    uint32_t offline_count;                // of them
};

#define FROM(ptr, field)                                                                                     \
    ((struct broker_lifecycle *)(void *)((char *)(ptr)-offsetof(struct broker_lifecycle, field)))

static void next_request(struct broker_lifecycle *lc);

static void later(struct broker_lifecycle *lc, uint32_t ms)
{
    node_timer_start(lc->opts.loop, &lc->timer, ms);
}

// ---- registration ---------------------------------------------------------------------------------------
static int encode_registration(struct channel_request *r, int16_t version, struct rope *out)
{
    struct broker_lifecycle *lc = FROM(r, request);
    struct kp_broker_registration_request q;
    kp_broker_registration_request_init(&q);
    q.broker_id = lc->opts.id;
    q.cluster_id = slice_str(lc->opts.cluster_id);
    q.incarnation_id = lc->incarnation;
    q.rack = slice_str(lc->opts.rack);
    q.previous_broker_epoch = lc->ever_registered ? lc->epoch : lc->opts.previous_epoch;
    struct arena arena;
    arena_init(&arena);
    q.listeners = arena_alloc(&arena, (lc->opts.listeners_count + 1) * sizeof *q.listeners);
    for (uint32_t i = 0; i < lc->opts.listeners_count; i++) {
        struct kp_broker_registration_request_listener *l = &q.listeners[q.listeners_count++];
        kp_broker_registration_request_listener_init(l);
        l->name = lc->opts.listeners[i].name;
        l->host = lc->opts.listeners[i].host;
        l->port = lc->opts.listeners[i].port;
        l->security_protocol = (int16_t)lc->opts.listeners[i].security;
    }
    int32_t features_count = 0;
    const struct feature_range *ranges = feature_ranges(&features_count);
    q.features = arena_alloc(&arena, ((size_t)features_count + 1) * sizeof *q.features);
    for (int32_t i = 0; i < features_count; i++) {
        struct kp_broker_registration_request_feature *f = &q.features[q.features_count++];
        kp_broker_registration_request_feature_init(f);
        f->name = slice_str(ranges[i].name);
        f->min_supported_version = ranges[i].min;
        f->max_supported_version = ranges[i].max;
    }
    q.log_dirs = arena_dup(&arena, lc->opts.log_dirs, lc->opts.log_dirs_count * sizeof *q.log_dirs);
    q.log_dirs_count = (int32_t)lc->opts.log_dirs_count;
    int err = kp_broker_registration_request_encode(&q, out, version);
    arena_fini(&arena);
    return err;
}

static void registration_refused(struct broker_lifecycle *lc, int16_t error)
{
    if (error == KE_INCONSISTENT_CLUSTER_ID)
        node_stop(
            lc->opts.node,
            "the controllers belong to another cluster than this broker's directories (cluster id %s): check "
            "controller.quorum.bootstrap.servers, or format the directories for that cluster",
            lc->opts.cluster_id);
    mono_us waited = node_now(lc->opts.loop) - lc->started;
    if (!lc->ever_registered && waited >= (mono_us)lc->opts.registration_timeout_ms * 1000)
        node_stop(lc->opts.node,
                  "broker %d could not register within %u ms (last answer: %s): is another process running "
                  "with this "
                  "node.id, and do the controllers have a leader?",
                  lc->opts.id, lc->opts.registration_timeout_ms, kafka_error_name(error));
    if (log_limit_allow(&lc->refused_limit, node_now(lc->opts.loop), REFUSED_LOG_PERIOD_US, 1, NULL))
        log_warn(lc->opts.log, "lifecycle", "registration was refused, trying again", "broker=%d error=%s",
                 lc->opts.id, kafka_error_name(error));
    later(lc, RETRY_MS);
}

static enum channel_verdict registration_answer(struct channel_request *r, int err, int16_t version,
                                                struct slice body)
{
    struct broker_lifecycle *lc = FROM(r, request);
    struct kp_broker_registration_response a;
    kp_broker_registration_response_init(&a);
    struct arena arena;
    arena_init(&arena);
    struct kp_reader reader;
    kp_reader_init(&reader, body, &arena, NULL);
    if (err == 0 && kp_broker_registration_response_decode(&a, &reader, version) != 0)
        a.error_code = KE_UNKNOWN_SERVER_ERROR;
    else if (err != 0)
        a.error_code = err == ERR_UNSUPPORTED ? KE_UNSUPPORTED_VERSION : KE_REQUEST_TIMED_OUT;
    arena_fini(&arena);
    if (a.error_code == KE_NOT_CONTROLLER)
        return CHANNEL_ELSEWHERE;
    lc->in_flight = false;
    if (lc->state == LC_STOPPED || err == ERR_CANCELED)
        return CHANNEL_DONE;
    if (a.error_code != KE_NONE) {
        registration_refused(lc, a.error_code);
        return CHANNEL_DONE;
    }
    lc->epoch = a.broker_epoch;
    lc->ever_registered = true;
    if (lc->state == LC_STARTING)
        lc->state = LC_CATCHING_UP;
    log_info(lc->opts.log, "lifecycle", "registered", "broker=%d epoch=%lld", lc->opts.id,
             (long long)lc->epoch);
    lc->opts.registered(lc->opts.data, lc->epoch);
    next_request(lc);
    return CHANNEL_DONE;
}

// ---- heartbeats -----------------------------------------------------------------------------------------
static int encode_heartbeat(struct channel_request *r, int16_t version, struct rope *out)
{
    struct broker_lifecycle *lc = FROM(r, request);
    struct kp_broker_heartbeat_request q;
    kp_broker_heartbeat_request_init(&q);
    q.broker_id = lc->opts.id;
    q.broker_epoch = lc->epoch;
    q.current_metadata_offset = lc->replayed;
    q.want_fence = lc->replayed < lc->epoch;
    q.want_shut_down = lc->state == LC_STOPPING;
    q.offline_log_dirs = lc->offline;
    q.offline_log_dirs_count = (int32_t)lc->offline_count;
    return kp_broker_heartbeat_request_encode(&q, out, version);
}

static void finish_shutdown(struct broker_lifecycle *lc)
{
    if (lc->state == LC_STOPPED)
        return;
    lc->state = LC_STOPPED;
    node_timer_stop(lc->opts.loop, &lc->timer);
    node_timer_stop(lc->opts.loop, &lc->shutdown_timer);
    if (lc->in_flight)
        controller_channel_cancel(lc->opts.channel, &lc->request);
    lc->in_flight = false;
    lc->opts.stopped(lc->opts.data);
}

static void heartbeat_ok(struct broker_lifecycle *lc, const struct kp_broker_heartbeat_response *a)
{
    lc->heard = node_now(lc->opts.loop);
    if (lc->state == LC_STOPPING) {
        if (a->should_shut_down)
            finish_shutdown(lc);
        else
            later(lc, CATCH_UP_MS);
        return;
    }
    if (a->is_fenced) {
        if (lc->state == LC_RUNNING)
            log_warn(lc->opts.log, "lifecycle", "the controller has fenced this broker",
                     "broker=%d epoch=%lld", lc->opts.id, (long long)lc->epoch);
        lc->state = LC_CATCHING_UP;
        if (lc->replayed >= lc->epoch) // else broker_lifecycle_replayed goes on
            later(lc, CATCH_UP_MS);
        else
            later(lc, lc->opts.heartbeat_ms);
        return;
    }
    if (lc->state != LC_RUNNING) {
        lc->state = LC_RUNNING;
        log_info(lc->opts.log, "lifecycle", "unfenced", "broker=%d epoch=%lld", lc->opts.id,
                 (long long)lc->epoch);
        if (!lc->ever_running)
            lc->opts.running(lc->opts.data);
        lc->ever_running = true;
    }
    later(lc, lc->again ? 0 : lc->opts.heartbeat_ms);
}

static void heartbeat_refused(struct broker_lifecycle *lc, int16_t error)
{
    log_warn(lc->opts.log, "lifecycle", "heartbeat was refused", "broker=%d epoch=%lld error=%s", lc->opts.id,
             (long long)lc->epoch, kafka_error_name(error));
    if (lc->state == LC_STOPPING &&
        (error == KE_BROKER_ID_NOT_REGISTERED || error == KE_STALE_BROKER_EPOCH)) {
        finish_shutdown(lc);
        return;
    }
    if (lc->state != LC_STOPPING && (error == KE_BROKER_ID_NOT_REGISTERED || error == KE_STALE_BROKER_EPOCH))
        lc->state = LC_STARTING; // unregistered, or somebody else took the id meanwhile: register anew
    later(lc, RETRY_MS);
}

static enum channel_verdict heartbeat_answer(struct channel_request *r, int err, int16_t version,
                                             struct slice body)
{
    struct broker_lifecycle *lc = FROM(r, request);
    struct kp_broker_heartbeat_response a;
    kp_broker_heartbeat_response_init(&a);
    struct arena arena;
    arena_init(&arena);
    struct kp_reader reader;
    kp_reader_init(&reader, body, &arena, NULL);
    if (err == 0 && kp_broker_heartbeat_response_decode(&a, &reader, version) != 0)
        a.error_code = KE_UNKNOWN_SERVER_ERROR;
    else if (err != 0)
        a.error_code = KE_REQUEST_TIMED_OUT;
    arena_fini(&arena);
    if (a.error_code == KE_NOT_CONTROLLER)
        return CHANNEL_ELSEWHERE;
    lc->in_flight = false;
    if (lc->state == LC_STOPPED || err == ERR_CANCELED)
        return CHANNEL_DONE;
    if (a.error_code == KE_NONE)
        heartbeat_ok(lc, &a);
    else
        heartbeat_refused(lc, a.error_code);
    lc->again = false;
    return CHANNEL_DONE;
}

// ---- what comes next ------------------------------------------------------------------------------------
static void next_request(struct broker_lifecycle *lc)
{
    if (lc->state == LC_STOPPED)
        return;
    if (lc->in_flight) {
        lc->again = true;
        return;
    }
    node_timer_stop(lc->opts.loop, &lc->timer);
    memset(&lc->request, 0, sizeof lc->request);
    bool heartbeat = lc->state != LC_STARTING;
    lc->request.api = heartbeat ? KP_API_BROKER_HEARTBEAT : KP_API_BROKER_REGISTRATION;
    lc->request.version_min = 0;
    lc->request.version_max = heartbeat ? 2 : 4;
    lc->request.timeout_ms = heartbeat ? lc->opts.heartbeat_ms * 4 : lc->opts.registration_timeout_ms;
    lc->request.encode = heartbeat ? encode_heartbeat : encode_registration;
    lc->request.answer = heartbeat ? heartbeat_answer : registration_answer;
    lc->in_flight = true;
    lc->again = false;
    controller_channel_send(lc->opts.channel, &lc->request);
}

static void timer_cb(struct node_timer *t)
{
    next_request(FROM(t, timer));
}

// A stopping broker does not wait for ever: nobody answers (the last controller may be stopping too), or it
// takes too long.
static void shutdown_timer_cb(struct node_timer *t)
{
    struct broker_lifecycle *lc = FROM(t, shutdown_timer);
    mono_us now = node_now(lc->opts.loop);
    if (now - lc->heard >= (mono_us)SHUTDOWN_SILENCE_MS * 1000 ||
        now - lc->shutdown_started >= (mono_us)SHUTDOWN_MS_MAX * 1000) {
        log_warn(lc->opts.log, "lifecycle", "stopping without the controller's consent", "broker=%d",
                 lc->opts.id);
        finish_shutdown(lc);
        return;
    }
    node_timer_start(lc->opts.loop, &lc->shutdown_timer, RETRY_MS);
}

// ---- public ---------------------------------------------------------------------------------------------
struct broker_lifecycle *broker_lifecycle_start(const struct broker_lifecycle_opts *opts)
{
    MUST(node_loop_is_current(opts->loop));
    struct broker_lifecycle *lc = mem_zalloc(sizeof *lc);
    lc->opts = *opts;
    lc->incarnation = uuid_random(opts->node);
    lc->epoch = lc->replayed = -1;
    lc->timer.fire = timer_cb;
    lc->shutdown_timer.fire = shutdown_timer_cb;
    lc->started = node_now(opts->loop);
    next_request(lc);
    return lc;
}

void broker_lifecycle_replayed(struct broker_lifecycle *lc, log_offset offset)
{
    bool waited = lc->replayed < lc->epoch;
    lc->replayed = offset;
    if (lc->state == LC_CATCHING_UP && waited && offset >= lc->epoch)
        next_request(lc);
}

void broker_lifecycle_hurry(struct broker_lifecycle *lc)
{
    if (lc->state == LC_RUNNING)
        next_request(lc);
}

void broker_lifecycle_dir_offline(struct broker_lifecycle *lc, struct uuid dir)
{
    for (uint32_t i = 0; i < lc->offline_count; i++)
        if (uuid_equal(lc->offline[i], dir))
            return;
    if (lc->offline_count < OFFLINE_DIRS_MAX)
        lc->offline[lc->offline_count++] = dir;
    if (lc->state == LC_RUNNING || lc->state == LC_CATCHING_UP)
        next_request(lc);
}

struct uuid broker_lifecycle_incarnation(const struct broker_lifecycle *lc)
{
    return lc->incarnation;
}

broker_epoch broker_lifecycle_epoch(const struct broker_lifecycle *lc)
{
    return lc->epoch;
}

void broker_lifecycle_shut_down(struct broker_lifecycle *lc)
{
    MUST(lc->state != LC_STOPPING && lc->state != LC_STOPPED);
    lc->heard = lc->shutdown_started = node_now(lc->opts.loop);
    if (lc->epoch < 0) { // never registered: there is nothing to hand over
        finish_shutdown(lc);
        return;
    }
    lc->state = LC_STOPPING;
    if (lc->in_flight)
        controller_channel_cancel(lc->opts.channel, &lc->request);
    lc->in_flight = false;
    next_request(lc);
    node_timer_start(lc->opts.loop, &lc->shutdown_timer, RETRY_MS);
}

void broker_lifecycle_free(struct broker_lifecycle *lc)
{
    if (lc->in_flight)
        controller_channel_cancel(lc->opts.channel, &lc->request);
    node_timer_stop(lc->opts.loop, &lc->timer);
    node_timer_stop(lc->opts.loop, &lc->shutdown_timer);
    mem_free(lc);
}
