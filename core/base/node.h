// SPDX-License-Identifier: Apache-2.0
// The node interface: time, timers, loops, pools, randomness and connections, as all code above net/ sees
// them.
//
// libuv implements it for the server (net/), the simulator with virtual time (tests/sim/). A node is one
// struct; nothing here is process-wide.
//
// Executors. A *loop* runs callbacks one at a time on its own thread: tasks posted to it, timers, connection
// events, and at the end of each turn its turn-end hooks. A *pool* runs jobs that may block. Everything that
// is not marked "any thread" is called on the thread of the loop concerned.
//
// Life of a turn: events are delivered (frames, timers, tasks), then the turn-end hooks run in order of
// adding, then all that was sent is written, one writev per connection. A frame's bytes stay valid until the
// turn-end hooks have run.
#ifndef KRAFT_BASE_NODE_H
#define KRAFT_BASE_NODE_H

#include "core/base/err.h"
#include "core/base/rope.h"
#include "core/base/slice.h"
#include "core/base/types.h"

struct node;      // one server's world
struct node_loop; // event loop with its own thread
struct node_pool; // worker threads for jobs that may block
struct node_conn; // a connection; belongs to one loop for life
struct node_listener;

// ---- time and randomness
// -------------------------------------------------------------------------------------
mono_us node_now(struct node_loop *loop); // monotonic time of this turn (cached once a turn)
mono_us node_clock(struct node *n);       // monotonic time right now; any thread
time_ms node_wall(struct node *n);        // wall clock right now; any thread
void node_random(struct node *n, void *buf,
                 size_t len);             // cryptographic in the server, seeded in the simulator; any thread
uint64_t node_random_u64(struct node *n); // any thread

// ---- the end
// ------------------------------------------------------------------------------------------------- A state
// that must not go on (a failed vote or metadata write): logs the reason and stops the node at once, without
// any further write. Does not return in the server (exit status 1); goes back to the scheduler in the
// simulator. Any thread.
void node_stop(struct node *n, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));

// ---- loops, tasks, timers
// ------------------------------------------------------------------------------------
struct node_task {
    void (*run)(struct node_task *t); // called once on the loop it was posted to
    struct node_task *next;           // owned by the interface while posted
};
struct node_loop *node_loop_create(struct node *n, const char *name); // starts it; any thread
void node_loop_post(struct node_loop *loop, struct node_task *t);     // any thread; `t` lives until run
bool node_loop_is_current(struct node_loop *loop);                    // am I on this loop's thread?
struct node *node_loop_node(struct node_loop *loop);

struct node_hook {
    void (*run)(struct node_hook *h); // at the end of every turn in which something happened
    struct node_hook *next;           // owned by the interface
};
void node_loop_add_turn_end(struct node_loop *loop, struct node_hook *h); // stays until the loop ends

// One-shot timer on a hierarchical wheel (1 ms steps); intrusive, nothing is allocated. Zero it before first
// use.
struct node_timer {
    void (*fire)(struct node_timer *t);
    uint64_t due_ms;                      // owned by the interface
    struct node_timer *next, **prev_link; // owned by the interface; prev_link NULL = not running
};
void node_timer_start(struct node_loop *loop, struct node_timer *t,
                      uint64_t after_ms); // (re)starts it; never fires inside the call
void node_timer_stop(struct node_loop *loop, struct node_timer *t); // nothing happens if it is not running
static inline bool node_timer_running(const struct node_timer *t)
{
    return t->prev_link != NULL;
}

// ---- pools
// ---------------------------------------------------------------------------------------------------
struct node_job {
    void (*work)(struct node_job *j); // on a pool thread; may block, may lock, must not touch loop state
    void (*done)(struct node_job *j); // on `loop` afterwards; NULL: nothing is called
    struct node_loop *loop;           // where `done` runs; may be NULL with `done` NULL
    struct node_job *next;            // owned by the interface
};
// Threads start at the first job. The jobs of a pool of one thread run in order.
struct node_pool *node_pool_create(struct node *n, const char *name, unsigned threads); // any thread
void node_pool_run(struct node_pool *pool,
                   struct node_job *j); // any thread; `j` lives until done (or work) ran

// ---- connections
// --------------------------------------------------------------------------------------------- Bytes on the
// wire are frames: int32 big-endian length, then that many bytes. A connection whose first four bytes are the
// listener's magic number (which is no valid length) is handed to other callbacks and carries frames of the
// same form after it.
struct node_conn_ops {
    // A whole frame without its length. Valid until the end of the turn; may be written to in place (base
    // offsets). Return 0 to go on, an ERR_ code to close the connection (after `closed`, with this reason).
    int (*frame)(struct node_conn *c, uint8_t *data, size_t len);
    // The connection is gone (peer, error, node_conn_close or shutdown). Called exactly once, last of all;
    // `reason` 0 = closed by us or orderly by the peer, else ERR_RESET, ERR_TIMEOUT, ERR_MALFORMED (bad
    // length) ...
    void (*closed)(struct node_conn *c, int reason);
    // All that was sent has left for the kernel, after node_conn_queued() had been above the low mark. May be
    // NULL.
    void (*drained)(struct node_conn *c);
};
struct node_conn_limits {
    uint32_t
        frame_bytes_max; // longer frames close the connection with ERR_MALFORMED (socket.request.max.bytes)
    uint32_t idle_ms; // close after this long without a byte either way; 0 = never (connections.max.idle.ms)
};
void node_conn_set_data(struct node_conn *c, void *data); // the user's pointer
void *node_conn_data(struct node_conn *c);
void node_conn_set_ops(struct node_conn *c, const struct node_conn_ops *ops);
struct node_loop *node_conn_loop(struct node_conn *c);
// Peer "a.b.c.d" or "::1" into a caller's buffer, and its port.
void node_conn_peer(struct node_conn *c, char *host, size_t host_size, uint16_t *port);
// Queues bytes for the end of the turn and empties the rope. The caller frames them (length included). After
// close: dropped.
void node_conn_send(struct node_conn *c, struct rope *bytes);
size_t node_conn_queued(struct node_conn *c); // bytes sent that the kernel has not taken yet
// Stops and restarts delivery of frames (throttling, back-pressure). Nested calls count. While paused the
// kernel's buffer fills.
void node_conn_pause(struct node_conn *c);
void node_conn_resume(struct node_conn *c);
// Closes: nothing more is delivered but `closed`, from a later point of this turn. What is queued is still
// written when `flush`, within a second.
void node_conn_close(struct node_conn *c, bool flush);

struct node_listen_opts {
    const char *host;         // address or name to bind; "" or NULL = every address
    uint16_t port;            // 0 = any free port, see node_listener_port
    int backlog;              // socket.listen.backlog.size
    struct node_loop **loops; // connections are spread over these, for life
    unsigned loops_count;
    struct node_conn_limits limits;
    uint32_t magic; // first four bytes (big-endian value) that select `accept_magic`; 0 = none
    // A connection was accepted, on its loop. Sets ops and data. Return non-zero to refuse (it is closed, no
    // `closed`).
    int (*accept)(struct node_conn *c, void *data);
    int (*accept_magic)(struct node_conn *c,
                        void *data); // after the magic number was read; sets ops and data anew
    void *data;                      // for the two
};
// Any thread, before or while the loops run. Errors: ERR_EXISTS (address in use), ERR_RESOLVE, ERR_IO;
// message says what to do.
int node_listen(struct node *n, const struct node_listen_opts *opts, struct node_listener **out,
                struct errmsg *msg);
uint16_t node_listener_port(const struct node_listener *l);
void node_listener_close(struct node_listener *l); // accepts no more; existing connections stay

struct node_dial {
    const char *host; // resolved anew at every dial, off the loop; copied
    uint16_t port;
    uint32_t timeout_ms; // to resolve and connect
    uint32_t magic;      // 0, or the four bytes to send first
    struct node_conn_limits limits;
    // Exactly one call, in a later turn. err 0: `c` is connected, set its ops and data here. Else c is NULL
    // and err is ERR_REFUSED (nobody listens there), ERR_RESOLVE, ERR_TIMEOUT, ERR_RESET or ERR_IO.
    void (*done)(struct node_conn *c, int err, void *data);
    void *data;
};
void node_dial(struct node_loop *loop, const struct node_dial *d); // `d` is copied

#endif
