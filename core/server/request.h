// SPDX-License-Identifier: Apache-2.0
// One request of a Kafka connection: who asks, what was asked, how a handler answers it.
//
// Happy path. A frame comes in on a loop: request_frame() takes a pooled request, parses the header in place,
// looks the API up in the listener's table and calls its handler. The handler decodes the body
// (REQUEST_DECODE), works, and answers with REQUEST_REPLY, at once or later, on the same loop. Replies leave
// in the order of the requests, at the end of the loop's turn, in one write a connection. After the reply the
// request is gone: do not touch it.
//
// What waits. A handler that cannot answer at once keeps the request and returns; it may set `cancel`. Only
// APIs with REQUEST_PIPELINED (Produce) let later requests of the same connection start meanwhile; for all
// others the connection is paused until the reply, as Kafka does. Work on other threads ends with
// request_post(), which comes back to the request's loop; a request has one such post outstanding at most.
//
// Failures. The connection is gone: `cancel` is called if set (take the request out of your lists and call
// request_abandon), else the request lives on and its later reply is dropped. A body that does not decode
// closes the connection. An API or version that is not served closes it too (ApiVersions answers version 0
// with UNSUPPORTED_VERSION).
#ifndef KRAFT_SERVER_REQUEST_H
#define KRAFT_SERVER_REQUEST_H

#include "core/base/arena.h"
#include "core/base/logline.h"
#include "core/base/node.h"
#include "core/base/rope.h"
#include "core/base/slice.h"
#include "core/base/types.h"
#include "core/security/context.h"
#include "core/protocol/header.h"

struct broker;          // core/server/broker.h: the broker half of a node
struct broker_loop;     // core/server/broker.h: a data loop of it
struct controller_node; // the controller half of a node
struct image;           // core/metadata/image.h
struct request;
struct request_conn;
struct request_loop;
struct request_listener;

enum request_flags {
    REQUEST_PIPELINED = 1, // later requests of the connection may start before this one is answered
    REQUEST_IN_PLACE =
        2, // decode from the frame itself: slices are valid until the end of the turn only.
           // Without it the frame is copied into the request's arena, slices live as long as the request
    REQUEST_CLUSTER_ACTION = 4, // server to server only
};

typedef void request_handler(struct request *rq);

// One API: what we serve of it, and where. Defined in the API's own file; core/server/request_table.c lists
// them. Not served on a listener (handler NULL) means not advertised there.
struct request_api {
    int16_t key;                    // enum kp_api
    int16_t version_min;            // lowest version that is served
    int16_t version_max;            // highest version that is served
    int16_t advertised_min;         // lowest version in ApiVersions; below version_min for Produce only
    uint8_t flags;                  // enum request_flags
    request_handler *on_broker;     // on a broker listener
    request_handler *on_controller; // on a controller listener
};

#define REQUEST_APIS_MAX 128                                            // api keys end below this
extern const struct request_api *const request_table[REQUEST_APIS_MAX]; // by api key; NULL = nowhere served

// A Kafka listener: what its connections may ask for. Made once, before node_listen; constant afterwards.
struct request_listener {
    const char *name;                        // "PLAINTEXT"; outlives the listener
    bool controller;                         // a controller listener
    int16_t security_protocol;               // SecurityProtocol id
    struct broker *broker;                   // broker half; NULL on a controller listener
    struct controller_node *controller_node; // controller half; NULL on a broker listener
    struct request_loop *const *loops;       // the request loops that its connections may live on
    unsigned loops_count;                    // number of them
    uint32_t pipeline_max;  // unanswered requests of one connection before it is paused; 0 = the default
    const char *cluster_id; // 22 characters
    node_id node_id;        // this node
    int16_t kraft_version;  // of the quorum: 0 static voters, 1 dynamic; shown among the finalized features
    // Controller listener: the committed image to answer from, borrowed for this turn; NULL = none yet. NULL
    // on broker listeners.
    const struct image *(*image)(const struct request *rq);
    node_id (*controller_id)(
        const struct request *rq); // controller listener: the active controller, -1 none; else NULL
};

// What all requests of one loop share. One for each loop that has Kafka connections.
struct request_loop {
    struct node_loop *loop;     // the loop
    struct broker_loop *data;   // the broker's state of this loop; NULL on the controller's loop
    struct log_sink *log;       // log lines; may be NULL
    struct node_hook turn_end;  // sends the replies of the turn
    struct request *free;       // pooled requests
    unsigned free_count;        // number of them
    struct request_conn *dirty; // connections with replies to send at the end of the turn
};
// Registers the turn-end hook that sends replies: call it after hooks that make replies were added. On the
// loop, or before it runs.
void request_loop_init(struct request_loop *l, struct node_loop *loop, struct broker_loop *data,
                       struct log_sink *log);
void request_loop_fini(struct request_loop *l);

// The `accept` function of node_listen_opts; `data` is a `struct request_listener *`.
int request_accept(struct node_conn *c, void *data);
// Gives back what request_accept made, before anything was asked: the connection goes to somebody else
// (accept_magic of node_listen_opts).
void request_hand_on(struct node_conn *c);

struct request {
    uint32_t magic;                // REQUEST_MAGIC while in use
    int16_t api_key;               // enum kp_api
    int16_t version;               // api version, within what is served
    int32_t correlation_id;        // echoed in the reply
    struct slice client_id;        // nullable
    const struct request_api *api; // table entry
    const struct request_listener
        *listener; // listener of the connection (of the outer one for an embedded request)
    const struct request_context *ctx; // who asks
    struct request_loop *loop;         // where it lives: handler, reply and cancel run there
    struct slice frame;                // header and body as received; valid as long as the decoded slices are
    struct kp_reader reader;           // at the body until it is decoded
    struct arena arena;                // memory that goes with the request
    int32_t throttle_ms; // for the reply's throttle_time_ms; afterwards the connection is paused that long
    void *state;         // the handler's own, usually in the arena
    void (*cancel)(struct request *rq); // the connection is gone; see above. Set by the handler, may be NULL

    struct request_conn *conn; // connection; NULL once it is gone, and for embedded requests
    struct request *next;      // next younger request of the connection, or the pool's list
    struct rope reply;         // reply that waits for older ones, or the embedded one's
    struct rope *out;          // where the reply is being written
    uint8_t *reply_size;       // the four bytes of the length in `out`
    size_t reply_start;        // out->len when it began
    bool answered;             // reply is complete
    bool paused;               // the connection is paused for this request
    bool unsupported_version;  // ApiVersions of a version that is not served: answer version 0 with the error
    bool close_after;          // close the connection when this reply has left
    void (*embedded_cb)(struct request *rq,
                        void *data);     // embedded: called with rq->reply complete (no length in front)
    void *embedded_data;                 // for embedded_cb
    struct node_task post;               // of request_post
    void (*post_cb)(struct request *rq); // of request_post
};

// ---- for handlers ---------------------------------------------------------------------------------------

// Decodes the body into a new message in the arena; NULL when it is malformed: the request is then gone
// already, return.
//   struct kp_metadata_request *in = REQUEST_DECODE(rq, metadata_request);
#define REQUEST_DECODE(rq, message)                                                                          \
    ({                                                                                                       \
        struct kp_##message *message_in = arena_alloc(&(rq)->arena, sizeof *message_in);                     \
        request_decoded((rq), kp_##message##_decode(message_in, &(rq)->reader, (rq)->version)) ? message_in  \
                                                                                               : NULL;       \
    })
bool request_decoded(struct request *rq, int err); // for the macro

// Encodes the message as the reply and finishes the request.
//   REQUEST_REPLY(rq, metadata_response, &out);
#define REQUEST_REPLY(rq, message, out_message)                                                              \
    request_reply_end((rq), kp_##message##_encode((out_message), request_reply_begin(rq), (rq)->version))

// The same in two steps, for replies that are written by hand: the rope has length and header written; append
// the body. Nothing else may be answered on this connection in between. `err` is the encoder's; not 0 closes
// the connection.
struct rope *request_reply_begin(struct request *rq);
void request_reply_end(struct request *rq, int err);

// Image to answer from in this turn, on either listener; NULL while there is none.
const struct image *request_image(const struct request *rq);

// Answers with bytes made elsewhere (a forwarded answer): response header and body, without the length.
void request_reply_raw(struct request *rq, struct slice header_and_body);
// Finishes without a reply (acks=0).
void request_reply_none(struct request *rq);
// Finishes and closes the connection, after what is before it in the queue.
void request_close(struct request *rq);
// From `cancel` (or whenever request_gone()): gives the request back without a reply.
void request_abandon(struct request *rq);
static inline bool request_gone(const struct request *rq)
{
    return rq->conn == NULL && rq->embedded_cb == NULL;
}

// Runs `cb` on the request's loop, in a later turn. Any thread; the request must not be finished before it
// ran.
void request_post(struct request *rq, void (*cb)(struct request *rq));

// Told once, on the loop, that a connection is gone; intrusive. Kept in the connection's list until then.
struct request_watch {
    void (*gone)(struct request_watch *w); // the watch is out of the list and may be freed
    struct request_conn *conn;             // whose
    struct request_watch *next;            // of the connection's list
};
void request_watch_conn(struct request *rq, struct request_watch *w); // rq->conn must be there
void request_watch_drop(struct request_watch *w);                     // takes it back; `gone` is not called

// ---- embedded requests (Envelope) -----------------------------------------------------------------------

// Handles a whole request (header and body, as in a frame) that came inside another one, on `loop`, as if it
// had come on `listener` from `ctx` (copied). `cb` gets the request with the reply in rq->reply (header
// first, no length): take it by rope_move; the request is given back after `cb`. Errors: ERR_MALFORMED,
// ERR_UNSUPPORTED (API or version; `cb` is not called).
int request_embedded(struct request_loop *loop, const struct request_listener *listener,
                     const struct request_context *ctx, struct slice bytes,
                     void (*cb)(struct request *rq, void *data), void *data);

#endif
