// SPDX-License-Identifier: Apache-2.0
// Forwarding: an admin request of a client travels to the active controller in an Envelope, with who sent it
// and from where.
//
// The broker loop owns the line; the client's loop hands the request over and gets it posted back with the
// answer. That holds a response header with the client's own correlation id, so that it leaves as it came.
#ifndef KRAFT_SERVER_FORWARD_H
#define KRAFT_SERVER_FORWARD_H

#include "core/server/request.h"

struct controller_channel;
struct forwarder;
struct node_loop;

struct forwarder *forwarder_create(struct node_loop *loop, struct controller_channel *ch,
                                   uint32_t timeout_ms);
void forwarder_free(struct forwarder *fw); // after its channel was closed and what was queued has come back

// `on_broker` of every API that is forwarded: the request goes as it came.
void forward_handler(struct request *rq);

// Sends a request of this node's making (header and body, copied), on behalf of `rq`'s client. `done` is
// called once, on the request's loop, with the answer (header and body, valid during the call), or with a
// Kafka error and nothing.
void forward_bytes(struct forwarder *fw, struct request *rq, struct slice bytes,
                   void (*done)(struct request *rq, int16_t error, struct slice answer, void *data),
                   void *data);

#endif
