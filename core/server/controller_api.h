// SPDX-License-Identifier: Apache-2.0
// What the API files of the active controller share: each says how it decides and how it fails, the rest is
// the same.
#ifndef KRAFT_SERVER_CONTROLLER_API_H
#define KRAFT_SERVER_CONTROLLER_API_H

#include "core/server/controller_node.h"
#include "core/server/forward.h"

// `reply`, the operation type and `handle_on_controller` of the API whose messages are kp_<message>_request
// and _response; the file defines `decide` and `fail` before.
#define CONTROLLER_API(message, operation)                                                                   \
    static void reply(struct controller_op *op)                                                              \
    {                                                                                                        \
        REQUEST_REPLY(op->rq, message##_response, (const struct kp_##message##_response *)op->out);          \
    }                                                                                                        \
    static const struct controller_op_type op_type = {#message, operation, decide, fail, reply};             \
    static void handle_on_controller(struct request *rq)                                                     \
    {                                                                                                        \
        struct kp_##message##_request *in = REQUEST_DECODE(rq, message##_request);                           \
        if (in)                                                                                              \
            controller_node_handle(rq, &op_type, in, sizeof(struct kp_##message##_response));                \
    }

// `fail` of an API whose response has one error code at its top.
#define CONTROLLER_API_FAIL(message)                                                                         \
    static void fail(struct controller_op *op, enum kafka_error error)                                       \
    {                                                                                                        \
        struct kp_##message##_response *out = op->out;                                                       \
        kp_##message##_response_init(out);                                                                   \
        out->error_code = (int16_t)error;                                                                    \
    }

// `decide` of an API whose decider takes nothing but the request.
#define CONTROLLER_API_DECIDE(message, decider)                                                              \
    static void decide(struct controller_op *op, struct controller *c, struct record_list *records)          \
    {                                                                                                        \
        struct kp_##message##_response *out = op->out;                                                       \
        kp_##message##_response_init(out);                                                                   \
        decider(c, op->in, out, records);                                                                    \
    }

// The same where the decider wants the version too.
#define CONTROLLER_API_DECIDE_VERSION(message, decider)                                                      \
    static void decide(struct controller_op *op, struct controller *c, struct record_list *records)          \
    {                                                                                                        \
        struct kp_##message##_response *out = op->out;                                                       \
        kp_##message##_response_init(out);                                                                   \
        decider(c, op->in, op->rq->version, out, records);                                                   \
    }

#endif
