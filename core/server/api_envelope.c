// SPDX-License-Identifier: Apache-2.0
// Envelope (58): a broker forwards a client's request with who sent it and from where (KIP-590).
//
// The embedded request is handled as if it had come on this listener from that client; its answer, header
// included, is the Envelope's. An embedded request that found no active controller makes the Envelope answer
// NOT_CONTROLLER without data, and the broker sends it to the right one.
#include "core/server/controller_api.h"

#include "core/base/bytes.h"
#include "core/protocol/gen/default_principal.h"
#include "core/protocol/gen/envelope_request.h"
#include "core/protocol/gen/envelope_response.h"
#include "core/server/address.h"
#include "core/server/controller_node_priv.h"

struct envelope {
    struct request *outer; // the Envelope
    bool refused;          // the embedded request met no active controller
};

static void answer(struct request *rq, struct slice data, enum kafka_error error)
{
    struct kp_envelope_response out;
    kp_envelope_response_init(&out);
    out.response_data = data;
    out.error_code = (int16_t)error;
    REQUEST_REPLY(rq, envelope_response, &out);
}

void controller_envelope_refuse(struct request *rq)
{
    struct envelope *e = rq->embedded_data;
    e->refused = true;
}

static void embedded_done(struct request *rq, void *data)
{
    struct envelope *e = data;
    struct request *outer = e->outer;
    if (e->refused || rq->reply.len == 0) {
        answer(outer, SLICE_NULL, e->refused ? KE_NOT_CONTROLLER : KE_UNKNOWN_SERVER_ERROR);
        return;
    }
    uint8_t *bytes = arena_alloc(&outer->arena, rq->reply.len);
    if (rope_flatten(&rq->reply, bytes) != 0)
        answer(outer, SLICE_NULL, KE_UNKNOWN_SERVER_ERROR);
    else
        answer(outer, slice_of(bytes, rq->reply.len), KE_NONE);
}

// A serialized principal: int16 version (0), then DefaultPrincipalData of that version.
static bool read_principal(struct request *rq, struct slice bytes, struct request_context *ctx)
{
    struct kp_default_principal p;
    kp_default_principal_init(&p);
    if (bytes.data == NULL || bytes.len < 2 || bytes_load_be16(bytes.data) != 0)
        return false;
    struct kp_reader r;
    kp_reader_init(&r, slice_of(bytes.data + 2, bytes.len - 2), &rq->arena, NULL);
    if (kp_default_principal_decode(&p, &r, 0) != 0)
        return false;
    ctx->principal_type = p.type;
    ctx->principal_name = p.name;
    ctx->token_authenticated = p.token_authenticated;
    return true;
}

static bool read_address(struct request *rq, struct slice bytes, struct request_context *ctx)
{
    char *text = arena_alloc(&rq->arena, ADDRESS_TEXT_BYTES);
    if (!address_print(bytes, text))
        return false;
    ctx->client_host = slice_str(text);
    return true;
}

static void handle_on_controller(struct request *rq)
{
    struct kp_envelope_request *in = REQUEST_DECODE(rq, envelope_request);
    if (!in)
        return;
    if (!authorize(rq->ctx, ACL_CLUSTER_ACTION, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        answer(rq, SLICE_NULL,
               KE_CLUSTER_AUTHORIZATION_FAILED); // the sender must be one of ours, whoever it speaks for
        return;
    }
    struct request_context ctx = *rq->ctx;
    ctx.forwarded = true;
    if (!read_principal(rq, in->request_principal, &ctx)) {
        answer(rq, SLICE_NULL, KE_PRINCIPAL_DESERIALIZATION_FAILURE);
        return;
    }
    const struct kp_api_info *inner =
        in->request_data.len >= 2 ? kp_api_find((int16_t)bytes_load_be16(in->request_data.data)) : NULL;
    if (!read_address(rq, in->client_host_address, &ctx) || !inner || !inner->forwarded) {
        answer(rq, SLICE_NULL, KE_INVALID_REQUEST); // nothing but what brokers forward
        return;
    }
    struct envelope *e = arena_zalloc(&rq->arena, sizeof *e);
    e->outer = rq;
    int err = request_embedded(rq->loop, rq->listener, &ctx, in->request_data, embedded_done, e);
    if (err != 0)
        answer(rq, SLICE_NULL, err == ERR_UNSUPPORTED ? KE_UNSUPPORTED_VERSION : KE_INVALID_REQUEST);
}

const struct request_api api_envelope = {.key = KP_API_ENVELOPE,
                                         .version_min = 0,
                                         .version_max = 0,
                                         .advertised_min = 0,
                                         .flags = REQUEST_CLUSTER_ACTION,
                                         .on_controller = handle_on_controller};
