// SPDX-License-Identifier: Apache-2.0
// Forwarding: the Envelope's life between the client's loop and the broker loop.
//
// A forwarded request is one block of memory. The client's loop makes it, posts it to the broker loop
// (`hop`), which gives it to the channel; the answer is stored and posted back to the client's loop, which
// reads and frees it. NOT_CONTROLLER in the Envelope makes the channel look for the active controller and
// send again, until the deadline.
#include "core/server/forward.h"

#include "core/base/bytes.h"
#include "core/base/mem.h"
#include "core/protocol/gen/default_principal.h"
#include "core/protocol/gen/envelope_request.h"
#include "core/protocol/gen/envelope_response.h"
#include "core/protocol/gen/errors.h"
#include "core/server/address.h"
#include "core/server/broker.h"
#include "core/server/controller_channel.h"
#include "core/server/server.h"

struct forwarder {
    struct node_loop *loop;        // of the channel
    struct controller_channel *ch; // to the active controller
    uint32_t timeout_ms;           // request.timeout.ms
};

struct forwarded {
    struct channel_request channel; // first member; on the broker loop
    struct node_task hop;           // brings it there and back
    struct forwarder *fw;           // whose
    struct request *rq;             // on its own loop
    struct slice envelope;          // encoded body of the Envelope
    int16_t error;                  // outcome
    uint8_t *answer;                // header and body; may be NULL
    size_t answer_len;              // bytes of it
    void (*done)(struct request *rq, int16_t error, struct slice answer, void *data);
    void *data;
    uint8_t bytes[]; // of `envelope`
};

struct forwarder *forwarder_create(struct node_loop *loop, struct controller_channel *ch, uint32_t timeout_ms)
{
    struct forwarder *fw = mem_zalloc(sizeof *fw);
    fw->loop = loop;
    fw->ch = ch;
    fw->timeout_ms = timeout_ms;
    return fw;
}

void forwarder_free(struct forwarder *fw)
{
    mem_free(fw);
}

// ---- back on the client's loop --------------------------------------------------------------------------
static void come_back(struct node_task *t)
{
    struct forwarded *f = (struct forwarded *)(void *)((char *)t - offsetof(struct forwarded, hop));
    struct slice answer = f->answer ? slice_of(f->answer, f->answer_len) : SLICE_NULL;
    f->done(f->rq, f->error, answer, f->data);
    mem_free(f->answer);
    mem_free(f);
}

// ---- on the broker loop ---------------------------------------------------------------------------------
static int encode(struct channel_request *r, int16_t version, struct rope *out)
{
    struct forwarded *f = (struct forwarded *)r;
    rope_write(out, f->envelope.data, f->envelope.len);
    return 0;
}

static enum channel_verdict take_answer(struct channel_request *r, int err, int16_t version,
                                        struct slice body)
{
    struct forwarded *f = (struct forwarded *)r;
    f->error = err == 0 ? KE_NONE : err == ERR_UNSUPPORTED ? KE_UNSUPPORTED_VERSION : KE_REQUEST_TIMED_OUT;
    if (err == 0) {
        struct arena arena;
        arena_init(&arena);
        struct kp_reader reader;
        struct kp_envelope_response a;
        kp_reader_init(&reader, body, &arena, NULL);
        kp_envelope_response_init(&a);
        if (kp_envelope_response_decode(&a, &reader, version) != 0)
            f->error = KE_UNKNOWN_SERVER_ERROR;
        else
            f->error = a.error_code;
        if (f->error == KE_NONE && !slice_is_null(a.response_data) && a.response_data.len >= 4) {
            f->answer = mem_dup(a.response_data.data, a.response_data.len);
            f->answer_len = a.response_data.len;
        } else if (f->error == KE_NONE) {
            f->error = KE_UNKNOWN_SERVER_ERROR;
        }
        arena_fini(&arena);
        if (f->error == KE_NOT_CONTROLLER)
            return CHANNEL_ELSEWHERE;
    }
    f->hop.run = come_back;
    node_loop_post(f->rq->loop->loop, &f->hop);
    return CHANNEL_DONE;
}

static void go_out(struct node_task *t)
{
    struct forwarded *f = (struct forwarded *)(void *)((char *)t - offsetof(struct forwarded, hop));
    f->channel.api = KP_API_ENVELOPE;
    f->channel.version_min = 0;
    f->channel.version_max = 0;
    f->channel.timeout_ms = f->fw->timeout_ms;
    f->channel.encode = encode;
    f->channel.answer = take_answer;
    controller_channel_send(f->fw->ch, &f->channel);
}

// ---- on the client's loop -------------------------------------------------------------------------------
static struct slice principal_bytes(struct request *rq)
{
    struct kp_default_principal p;
    kp_default_principal_init(&p);
    p.type = rq->ctx->principal_type;
    p.name = rq->ctx->principal_name;
    p.token_authenticated = rq->ctx->token_authenticated;
    size_t size = kp_default_principal_size(&p, 0);
    uint8_t *bytes = arena_alloc(&rq->arena, 2 + size);
    bytes_store_be16(bytes, 0);
    (void)kp_message_encode_into(&kp_default_principal_type, &p, bytes + 2, 0);
    return slice_of(bytes, 2 + size);
}

static struct slice address_bytes(struct request *rq)
{
    uint8_t *bytes = arena_zalloc(&rq->arena, 16);
    size_t n = address_parse(rq->ctx->client_host, bytes); // of something else: all zero
    return slice_of(bytes, n == 4 ? 4 : 16);
}

void forward_bytes(struct forwarder *fw, struct request *rq, struct slice bytes,
                   void (*done)(struct request *rq, int16_t error, struct slice answer, void *data),
                   void *data)
{
    struct kp_envelope_request e;
    kp_envelope_request_init(&e);
    e.request_data = bytes;
    e.request_principal = principal_bytes(rq);
    e.client_host_address = address_bytes(rq);
    size_t size = kp_envelope_request_size(&e, 0);
    struct forwarded *f = mem_alloc(sizeof *f + size);
    memset(f, 0, sizeof *f);
    (void)kp_message_encode_into(&kp_envelope_request_type, &e, f->bytes, 0);
    f->envelope = slice_of(f->bytes, size);
    f->fw = fw;
    f->rq = rq;
    f->done = done;
    f->data = data;
    f->hop.run = go_out;
    node_loop_post(fw->loop, &f->hop);
}

static void handler_done(struct request *rq, int16_t error, struct slice answer, void *data)
{
    if (!slice_is_null(answer)) {
        request_reply_raw(rq, answer);
        return;
    }
    struct server *s = request_broker(rq)->ops_data;
    log_warn(server_log(s), "forward", "a request could not be forwarded", "api=%s error=%s",
             kp_apis[rq->api_key].name, kafka_error_name(error));
    request_close(rq); // the client tries again elsewhere
}

void forward_handler(struct request *rq)
{
    struct server *s = request_broker(rq)->ops_data;
    forward_bytes(server_forwarder(s), rq, rq->frame, handler_done, NULL);
}
