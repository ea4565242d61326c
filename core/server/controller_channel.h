// SPDX-License-Identifier: Apache-2.0
// A node's line to the active controller: finds it, keeps one connection, retries what another one refused.
//
// Happy path: a request is queued; the channel dials a known controller, exchanges ApiVersions, asks
// DescribeCluster (controllers) who is active, dials that one, and from then on sends at once. Failures:
//  - refused, reset, timed out: the next known controller is asked after a short, growing pause;
//  - the answer says NOT_CONTROLLER (the request's `answer` returns CHANNEL_ELSEWHERE): the active one is
//  looked for
//    again and the request goes out anew, until its deadline;
//  - deadline: `answer` is called with ERR_TIMEOUT.
// Requests of one channel leave in order; answers come in order. All calls on the channel's loop.
#ifndef KRAFT_SERVER_CONTROLLER_CHANNEL_H
#define KRAFT_SERVER_CONTROLLER_CHANNEL_H

#include "core/base/node.h"

struct controller_channel;
struct log_sink;

// Where a controller may be found.
struct controller_endpoint {
    node_id id;     // -1: not known yet (controller.quorum.bootstrap.servers)
    char host[256]; // name or address, resolved at every dial
    uint16_t port;  // of its controller listener
};

enum channel_verdict {
    CHANNEL_DONE,      // answered; the channel forgets the request before `answer` is called
    CHANNEL_ELSEWHERE, // the answerer is not the active controller: look for it and send again
    CHANNEL_LATER,     // send again to the same controller after a pause
};

// One request; belongs to the caller, who keeps it alive until `answer` returned CHANNEL_DONE or was told an
// error.
struct channel_request {
    int16_t api;         // Kafka API key
    int16_t version_min; // lowest and highest version that `encode` can write
    int16_t version_max;
    uint32_t timeout_ms; // from channel_send on; 0 = never gives up
    // Writes the body (no header) of this version to `out`. May be called again when the request is sent
    // anew.
    int (*encode)(struct channel_request *r, int16_t version, struct rope *out);
    // err 0: `body` is the answer's body of `version` (valid during the call). Else ERR_TIMEOUT, ERR_CANCELED
    // (channel closed), ERR_UNSUPPORTED (no common version); the verdict is ignored then.
    enum channel_verdict (*answer)(struct channel_request *r, int err, int16_t version, struct slice body);

    struct channel_request *next; // owned by the channel from here on
    struct node_timer timer;      // deadline
    struct controller_channel *channel;
    mono_us deadline;     // when the timer fires
    int32_t correlation;  // of the last send
    int16_t sent_version; // of the last send
    uint8_t where;        // which list it is in
};

struct controller_channel_opts {
    struct node_loop *loop;                      // where everything happens
    struct log_sink *log;                        // core/base/logline.h; may be NULL
    const char *name;                            // for log lines: "heartbeat", "forward"
    const char *client_id;                       // in request headers; copied
    const struct controller_endpoint *bootstrap; // first places to ask; copied
    unsigned bootstrap_count;
    uint32_t connect_timeout_ms; // socket.connection.setup.timeout.ms
    uint32_t answer_timeout_ms;  // without any answer for this long, the controller is taken for gone
    uint32_t frame_bytes_max;    // longest answer
    // The active controller was found (also when it is the same as before); may be NULL.
    void (*found)(void *data, node_id active);
    void *data; // its first argument
};

struct controller_channel *controller_channel_open(const struct controller_channel_opts *opts);
void controller_channel_send(struct controller_channel *ch, struct channel_request *r);
// Takes the request back without calling `answer`; nothing happens when it is not queued.
void controller_channel_cancel(struct controller_channel *ch, struct channel_request *r);
// What a Fetch answer or an image taught: where controller `id` listens (adds or replaces).
void controller_channel_learn(struct controller_channel *ch, const struct controller_endpoint *at);
// Somebody else has learnt that `active` is the active controller now: a line to another one is given up, and
// what waits for an answer there is sent anew. A hung predecessor never closes its connections.
void controller_channel_follow(struct controller_channel *ch, node_id active);
// The active controller as last seen; -1 none.
node_id controller_channel_active(const struct controller_channel *ch);
// Calls `answer` of all that is queued with ERR_CANCELED, closes the connection. What is sent afterwards is
// answered ERR_CANCELED at once, inside the call.
void controller_channel_close(struct controller_channel *ch);
void controller_channel_free(
    struct controller_channel *ch); // closed, and its loop has ended; NULL is allowed

#endif
