// SPDX-License-Identifier: Apache-2.0
// DescribeCluster: the brokers, or on a controller listener the controllers (KIP-700, KIP-919).
#include "core/protocol/gen/describe_cluster_request.h"
#include "core/protocol/gen/describe_cluster_response.h"
#include "core/server/api.h"
#include "core/server/broker.h"
#include "core/server/cluster_view.h"
#include "core/server/controller_node.h"

enum endpoint_type { ENDPOINT_BROKERS = 1, ENDPOINT_CONTROLLERS = 2 };

static void add(struct kp_describe_cluster_response *out, node_id id, const struct image_endpoint *e,
                struct slice rack, bool fenced)
{
    struct kp_describe_cluster_response_describe_cluster_broker *to = &out->brokers[out->brokers_count++];
    kp_describe_cluster_response_describe_cluster_broker_init(to);
    to->broker_id = id;
    to->host = e->host;
    to->port = e->port;
    to->rack = rack;
    to->is_fenced = fenced;
}

static void describe_brokers(struct request *rq, const struct kp_describe_cluster_request *in,
                             const struct image *image, struct kp_describe_cluster_response *out)
{
    out->brokers = arena_alloc(&rq->arena, (size_t)image_broker_count(image) * sizeof *out->brokers);
    for (const struct image_broker *b = image_broker_next(image, NULL); b != NULL;
         b = image_broker_next(image, b)) {
        const struct image_endpoint *e = cluster_view_endpoint(b, rq->ctx->listener_name);
        if (e == NULL && b->endpoints_count > 0 && b->fenced) {
            e = &b->endpoints[0];
        }
        if (e != NULL && (!b->fenced || in->include_fenced_brokers)) {
            add(out, b->id, e, b->rack, b->fenced);
        }
    }
    out->controller_id = cluster_view_controller(rq, image);
}

// Everything but error and message has its default then.
static void refuse(struct request *rq, int16_t error, const char *text)
{
    struct kp_describe_cluster_response out;
    kp_describe_cluster_response_init(&out);
    out.throttle_time_ms = rq->throttle_ms;
    out.error_code = error;
    out.error_message = slice_str(text);
    REQUEST_REPLY(rq, describe_cluster_response, &out);
}

static void refuse_type(struct request *rq, int8_t type)
{
    refuse(rq, KE_UNSUPPORTED_ENDPOINT_TYPE, arena_printf(&rq->arena, "Unsupported endpoint type %d", type));
}

static struct kp_describe_cluster_request *begin(struct request *rq, struct kp_describe_cluster_response *out)
{
    struct kp_describe_cluster_request *in = REQUEST_DECODE(rq, describe_cluster_request);
    if (in != NULL) {
        kp_describe_cluster_response_init(out);
        out->throttle_time_ms = rq->throttle_ms;
        out->cluster_id = slice_str(rq->listener->cluster_id);
        out->endpoint_type = in->endpoint_type;
        if (in->include_cluster_authorized_operations) {
            out->cluster_authorized_operations = cluster_view_cluster_operations();
        }
    }
    return in;
}

static void handle_broker(struct request *rq)
{
    struct kp_describe_cluster_response out;
    struct kp_describe_cluster_request *in = begin(rq, &out);
    if (in == NULL) {
        return;
    }
    if (in->endpoint_type == ENDPOINT_CONTROLLERS) {
        refuse(rq, KE_MISMATCHED_ENDPOINT_TYPE,
               "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
               "CONTROLLER");
    } else if (in->endpoint_type != ENDPOINT_BROKERS) {
        refuse_type(rq, in->endpoint_type);
    } else {
        describe_brokers(rq, in, request_image(rq), &out);
        REQUEST_REPLY(rq, describe_cluster_response, &out);
    }
}

// A controller is shown at the endpoint that it registered, else at the one that the quorum knows of it: a
// node that looks for the active controller must find it before anybody is registered.
static void describe_controllers(struct request *rq, const struct image *image,
                                 struct kp_describe_cluster_response *out)
{
    struct quorum_description *d = arena_alloc(&rq->arena, sizeof *d);
    quorum_describe(controller_node_quorum(rq->listener->controller_node), d);
    size_t n = d->members_count;
    for (const struct image_controller *c = image_controller_next(image, NULL); c != NULL;
         c = image_controller_next(image, c)) {
        n++;
    }
    out->brokers = arena_alloc(&rq->arena, (n + 1) * sizeof *out->brokers);
    for (const struct image_controller *c = image_controller_next(image, NULL); c != NULL;
         c = image_controller_next(image, c)) {
        for (int32_t i = 0; i < c->endpoints_count; i++) {
            if (slice_equal(c->endpoints[i].name, rq->ctx->listener_name)) {
                add(out, c->id, &c->endpoints[i], SLICE_NULL, false);
                break;
            }
        }
    }
    for (uint32_t i = 0; i < d->members_count; i++) {
        const struct quorum_voter *v = &d->members[i].voter;
        if (v->endpoints_count > 0 && image_controller(image, v->id) == NULL) {
            struct image_endpoint e = {.host = slice_str(v->endpoints[0].host), .port = v->endpoints[0].port};
            add(out, v->id, &e, SLICE_NULL, false);
        }
    }
}

static void handle_controller(struct request *rq)
{
    struct kp_describe_cluster_response out;
    struct kp_describe_cluster_request *in = begin(rq, &out);
    if (in == NULL) {
        return;
    }
    if (in->endpoint_type == ENDPOINT_BROKERS) {
        refuse(rq, KE_MISMATCHED_ENDPOINT_TYPE,
               "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type "
               "BROKER");
        return;
    }
    if (in->endpoint_type != ENDPOINT_CONTROLLERS) {
        refuse_type(rq, in->endpoint_type);
        return;
    }
    describe_controllers(rq, request_image(rq), &out);
    out.controller_id = rq->listener->controller_id != NULL ? rq->listener->controller_id(rq) : -1;
    REQUEST_REPLY(rq, describe_cluster_response, &out);
}

const struct request_api api_describe_cluster = {.key = KP_API_DESCRIBE_CLUSTER,
                                                 .version_min = 0,
                                                 .version_max = KP_DESCRIBE_CLUSTER_REQUEST_MAX_VERSION,
                                                 .on_broker = handle_broker,
                                                 .on_controller = handle_controller};
