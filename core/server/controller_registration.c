// SPDX-License-Identifier: Apache-2.0
// Controller registration: whenever the image lacks this incarnation, one request at a time until it is
// there.
#include "core/server/controller_registration.h"

#include "core/base/logline.h"
#include "core/base/mem.h"
#include "core/metadata/image.h"
#include "core/metadata/metadata_version.h"
#include "core/protocol/gen/apis.h"
#include "core/protocol/gen/controller_registration_request.h"
#include "core/protocol/gen/controller_registration_response.h"
#include "core/protocol/gen/errors.h"
#include "core/server/controller_channel.h"
#include "core/server/limits.h"

#define REGISTRATION_FROM 15 // metadata.version that has the record (3.7-IV0)
#define REQUEST_TIMEOUT_MS 10000
#define RETRY_MS 500 // after a refusal

struct controller_registration {
    struct controller_registration_opts opts; // as given
    struct uuid incarnation;                  // new at every start of the process
    struct channel_request request;           // the one request
    bool wanted;                              // the image lacks us
    bool in_flight;                           // it is under way
    struct node_timer timer;                  // tries again
    struct log_limit refused_limit;           // of the line that tells of a refusal
};

#define FROM(ptr, field)                                                                                     \
    ((struct controller_registration *)(void *)((char *)(ptr)-offsetof(struct controller_registration,       \
                                                                       field)))

static int encode(struct channel_request *cr, int16_t version, struct rope *out)
{
    struct controller_registration *r = FROM(cr, request);
    struct kp_controller_registration_request q;
    struct kp_controller_registration_request_listener l;
    struct arena arena;
    int32_t count = 0;
    const struct feature_range *ranges = feature_ranges(&count);
    arena_init(&arena);
    kp_controller_registration_request_init(&q);
    kp_controller_registration_request_listener_init(&l);
    q.controller_id = r->opts.id;
    q.incarnation_id = r->incarnation;
    q.listeners = &l;
    q.listeners_count = 1;
    l.name = r->opts.endpoint->name;
    l.host = r->opts.endpoint->host;
    l.port = r->opts.endpoint->port;
    l.security_protocol = (int16_t)r->opts.endpoint->security;
    q.features = arena_alloc(&arena, ((size_t)count + 1) * sizeof *q.features);
    for (int32_t i = 0; i < count; i++) {
        struct kp_controller_registration_request_feature *f = &q.features[q.features_count++];
        kp_controller_registration_request_feature_init(f);
        f->name = slice_str(ranges[i].name);
        f->min_supported_version = ranges[i].min;
        f->max_supported_version = ranges[i].max;
    }
    int err = kp_controller_registration_request_encode(&q, out, version);
    arena_fini(&arena);
    return err;
}

static enum channel_verdict answer(struct channel_request *cr, int err, int16_t version, struct slice body)
{
    struct controller_registration *r = FROM(cr, request);
    struct kp_controller_registration_response a;
    kp_controller_registration_response_init(&a);
    a.error_code = KE_REQUEST_TIMED_OUT;
    if (err == 0) {
        struct arena arena;
        struct kp_reader reader;
        arena_init(&arena);
        kp_reader_init(&reader, body, &arena, NULL);
        if (kp_controller_registration_response_decode(&a, &reader, version) != 0)
            a.error_code = KE_UNKNOWN_SERVER_ERROR;
        arena_fini(&arena);
        if (a.error_code == KE_NOT_CONTROLLER)
            return CHANNEL_ELSEWHERE;
    }
    r->in_flight = false;
    if (err == ERR_CANCELED || a.error_code == KE_NONE)
        return CHANNEL_DONE;
    if (log_limit_allow(&r->refused_limit, node_now(r->opts.loop), REFUSED_LOG_PERIOD_US, 1, NULL))
        log_warn(r->opts.log, "controller", "registration was refused, trying again",
                 "controller=%d error=%s", r->opts.id, kafka_error_name(a.error_code));
    node_timer_start(r->opts.loop, &r->timer, RETRY_MS);
    return CHANNEL_DONE;
}

static void send(struct controller_registration *r)
{
    if (r->in_flight || !r->wanted || node_timer_running(&r->timer))
        return;
    memset(&r->request, 0, sizeof r->request);
    r->request.api = KP_API_CONTROLLER_REGISTRATION;
    r->request.timeout_ms = REQUEST_TIMEOUT_MS;
    r->request.encode = encode;
    r->request.answer = answer;
    r->in_flight = true;
    controller_channel_send(r->opts.channel, &r->request);
}

static void timer_cb(struct node_timer *t)
{
    send(FROM(t, timer));
}

struct controller_registration *
controller_registration_create(const struct controller_registration_opts *opts)
{
    struct controller_registration *r = mem_zalloc(sizeof *r);
    r->opts = *opts;
    r->incarnation = uuid_random(opts->node);
    r->timer.fire = timer_cb;
    return r;
}

void controller_registration_image(struct controller_registration *r, const struct image *image)
{
    const struct image_controller *c = image_controller(image, r->opts.id);
    r->wanted = image_metadata_version(image) >= REGISTRATION_FROM &&
                (!c || !uuid_equal(c->incarnation, r->incarnation));
    send(r);
}

void controller_registration_free(struct controller_registration *r)
{
    if (r->in_flight)
        controller_channel_cancel(r->opts.channel, &r->request);
    node_timer_stop(r->opts.loop, &r->timer);
    mem_free(r);
}
