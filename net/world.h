// SPDX-License-Identifier: Apache-2.0
// The inside of a node on libuv: what the files of net/ share. Nobody else includes it.
//
// Life of a loop's turn: libuv delivers timers and readable sockets; the check handle (after the poll) or the
// prepare handle (before it, for what timers did) then runs loop_turn: posted tasks, resumed connections, the
// users' hooks, output, and last the `closed` callbacks. Received bytes lie in memory that is recycled only
// after that.
#ifndef KRAFT_NET_WORLD_H
#define KRAFT_NET_WORLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <uv.h>

#include "core/base/list.h"
#include "core/base/logline.h"
#include "core/base/metrics.h"
#include "core/base/node.h"
#include "net/limits.h"
#include "net/net.h"
#include "net/wheel.h"

enum net_metric {
    NET_ACCEPTED,
    NET_REFUSED_FULL,
    NET_DIALLED,
    NET_DIAL_FAILED,
    NET_CLOSED,
    NET_OPEN,
    NET_MALFORMED,
    NET_BYTES_IN,
    NET_BYTES_OUT,
    NET_FRAMES_IN,
    NET_RECEIVES,
    NET_SENDS,
    NET_MEMORY_WAITS,
    NET_TURNS,
    NET_METRICS
};

#define NODE_MAGIC 0x6b6e6f64u
#define LOOP_MAGIC 0x6b6c6f70u
#define CONN_MAGIC 0x6b636f6eu

struct signal_hook {
    struct node_loop *loop; // where the task runs
    struct node_task task;  // posted to the loop; calls the user's
    struct node_task *user; // the user's task
    atomic_bool posted;     // not yet run since the last signal
    int number;             // signal
};
#define SIGNAL_HOOKS_MAX 8

struct node {
    uint32_t magic;                               // NODE_MAGIC
    struct net_options opts;                      // with defaults filled in
    struct metric_set *metrics;                   // never NULL
    struct metrics own_metrics;                   // registry where the user has none
    pthread_mutex_t mutex;                        // guards the lists and counts of this struct
    pthread_cond_t changed;                       // some count went down
    struct list loops;                            // node_loop
    struct list pools;                            // node_pool
    struct list listeners;                        // node_listener
    struct node_pool *resolver;                   // for names; made at the first dial that needs it
    _Atomic uint64_t frame_bytes;                 // memory in received frames
    _Atomic int64_t pending;                      // posted tasks and pool jobs that are not finished
    struct signal_hook signals[SIGNAL_HOOKS_MAX]; // hooks in use
    unsigned signals_count;                       // of them
    int signal_fd, stop_fd;                       // what the main thread waits for
    unsigned conns_max;                           // connections, above which none is accepted
    atomic_uint conns;                            // open now
    int spare_fd;                                 // given up to refuse a connection when descriptors run out
    struct log_limit limit_full, limit_malformed, limit_memory, limit_accept; // one for each kind of line
};

struct node_loop {
    uint32_t magic;                       // LOOP_MAGIC
    struct list_node link;                // in node.loops
    struct node *node;                    // owner
    char name[16];                        // of the thread
    pthread_t thread;                     // that runs it
    uv_loop_t uv;                         // libuv's part
    uv_async_t wake;                      // from other threads
    uv_prepare_t prepare;                 // before the poll
    uv_check_t check;                     // after it
    uv_idle_t spin;                       // active: the poll does not wait
    uv_timer_t timer;                     // for the wheel
    uint64_t timer_ms;                    // when it is set for; UINT64_MAX: not set
    struct wheel wheel;                   // all timers
    _Atomic(struct node_task *) inbox;    // posted tasks, newest first
    _Atomic(struct node_job *) jobs_done; // finished jobs, newest first
    atomic_int sleeping;                  // 1: the loop polls and must be woken
    struct node_hook *hooks, **hooks_end; // turn-end hooks, in order
    mono_us now;                          // time of this turn; 0: not yet taken
    bool active;                          // something happened in this turn
    bool draining;                        // node_shutdown: no new connections
    bool stopping;                        // leaves its thread at the end of this turn
    struct list conns;                    // all connections (node_conn.link)
    struct list dirty;                    // with output to write (node_conn.dirty_link)
    struct list resumed;                  // to be parsed on (node_conn.resume_link)
    struct list starved;                  // wait for memory (node_conn.resume_link)
    struct list partial;                  // with undelivered bytes, oldest first (node_conn.in_link)
    struct list dying;                    // `closed` is to be called (node_conn.dirty_link)
    struct list dials;                    // in progress (net_dial.link)
    size_t conns_count;                   // of conns
    struct node_timer pressure;           // looks at `starved`
    struct node_timer tidy;               // gives memory back
    struct chunk *recv;                   // shared receive buffer; NULL while idle
    size_t recv_used;                     // bytes of it that this turn's frames lie in
    size_t turn_bytes;                    // received in this turn
    size_t tidy_bytes;                    // received since the last tidying
    unsigned tidy_rounds;                 // quiet ones in a row
    struct chunk **held;                  // chunks to be released at the end of the turn
    size_t held_count, held_cap;          // in use, room
    struct chunk *scratch;                // file bytes on their way out
};

struct node_pool {
    struct list_node link;        // in node.pools
    struct node *node;            // owner
    char name[16];                // of its threads
    unsigned threads_max;         // threads at most
    unsigned threads;             // started
    unsigned idle;                // that wait
    bool stopping;                // threads end when the queue is empty
    pthread_mutex_t mutex;        // guards this struct
    pthread_cond_t work;          // a job was queued
    struct node_job *head, **end; // queue
    pthread_t *ids;               // started threads
};

// How a connection's bytes travel: plain sockets now, TLS behind the same functions.
// Results as recv and send: bytes, 0 at the peer's end, or -errno (-EAGAIN: wait for the socket).
struct transport {
    const char *name;                                                         // "plain"
    ssize_t (*recv)(struct node_conn *c, const struct iovec *iov, int count); // as readv
    ssize_t (*send)(struct node_conn *c, const struct iovec *iov, int count,
                    bool more); // as writev; more: hold back a part packet
    ssize_t (*send_file)(struct node_conn *c, int fd, uint64_t pos,
                         size_t len);   // NULL: read to memory instead
    void (*close)(struct node_conn *c); // before the socket is closed; may be NULL
};
extern const struct transport transport_plain;

enum conn_state {
    CONN_OPEN,     // frames flow
    CONN_FLUSHING, // closing, its last bytes leave
    CONN_DYING,    // in loop.dying; `closed` comes
    CONN_GONE,     // `closed` was called; the handle closes
};

struct node_conn {
    uint32_t magic;        // CONN_MAGIC
    uint8_t state;         // enum conn_state
    bool head_wanted;      // the first four bytes have not been seen (accepted connections with a magic)
    bool watching_write;   // write interest is armed
    bool above_low;        // output was above the low mark: `drained` is owed
    bool choked;           // output is above the high mark: not read further
    bool starved;          // in loop.starved: waits for memory
    bool delivering;       // inside conn_parse
    bool accepted;         // not dialled
    int watched;           // events that uv_poll waits for now
    int fd;                // socket
    int reason;            // for `closed`
    unsigned paused;       // node_conn_pause calls not yet undone
    struct list_node link; // in loop.conns
    struct list_node dirty_link;                          // in loop.dirty or loop.dying
    struct list_node resume_link;                         // in loop.resumed or loop.starved
    struct node_loop *loop;                               // for life
    const struct transport *transport;                    // how bytes travel
    void *transport_data;                                 // its own
    const struct node_conn_ops *ops;                      // user's callbacks; NULL before they are set
    void *data;                                           // user's pointer
    struct node_conn_limits limits;                       // frame size, idle time
    uint32_t listener_magic;                              // selects accept_magic
    int (*accept_magic)(struct node_conn *c, void *data); // user's
    void *accept_data;                                    // for it
    struct chunk *in;                                     // received bytes not yet delivered; NULL: none
    uint32_t in_start, in_end;                            // run of them in `in`
    uint64_t charged;                                     // counted in node.frame_bytes for `in`
    struct list_node in_link;                             // in loop.partial while `in` is set
    uint32_t last_frame;     // length of the last frame: how much to receive next time
    mono_us in_since;        // when `in` was begun
    struct rope out;         // to be sent
    size_t out_skip;         // bytes of its first piece that have left
    mono_us last_io;         // when a byte last went either way
    struct node_timer timer; // idle time; while flushing: its end
    uv_poll_t poll;          // watches the socket
};

struct node_listener {
    struct list_node link;        // in node.listeners
    struct node *node;            // owner
    struct node_listen_opts opts; // loops are a copy
    char *host;                   // copy
    int fd;                       // listening socket
    uint16_t port;                // bound
    unsigned next_loop;           // for the next connection
    atomic_bool closing;          // node_listener_close was called
    bool watching;                // `poll` is initialised
    struct node_task start, stop; // run on loops[0]
    uv_poll_t poll;               // watches it
};

// ---- node.c
void net_log_limited(struct node *n, struct log_limit *l, enum log_level level, const char *message,
                     const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void net_pending_add(struct node *n, int64_t by);
static inline void net_count(struct node *n, enum net_metric m, int64_t by)
{
    metric_add(n->metrics, (unsigned)m, by);
}

// ---- loop.c
void loop_touch(struct node_loop *l); // something happens: the turn will end with hooks
void loop_hold(struct node_loop *l,
               struct chunk *c);          // releases the caller's reference at the end of the turn
void loop_wake(struct node_loop *l);      // any thread
void loop_stop_join(struct node_loop *l); // main thread
void loop_timer_update(struct node_loop *l);

// ---- pool.c
void pool_stop_join(struct node_pool *p); // main thread

// ---- conn.c
struct node_conn *conn_new(struct node_loop *l, int fd,
                           const struct node_conn_limits *limits); // on the loop; NULL: no memory for it
void conn_start(struct node_conn *c);                              // begins to read
void conn_fail(struct node_conn *c, int reason); // closes at once; `closed` comes at the end of the turn
void conn_discard(struct node_conn *c);          // closes without `closed`
void conn_watch(struct node_conn *c);            // brings the poll handle in line with the state
void conn_close_all(struct node_loop *l, uint32_t flush_ms);
void conn_bury(struct node_loop *l); // calls `closed` of all in loop.dying
void socket_tune(struct node *n, int fd, bool dialled);

// ---- conn_read.c
void conn_read(struct node_conn *c);          // the socket is readable
void conn_parse_on(struct node_conn *c);      // delivers what was kept while paused
void conn_starved_check(struct node_loop *l); // memory may be there again
void conn_release_input(struct node_conn *c);

// ---- conn_write.c
void conn_flush(struct node_conn *c); // writes what the socket takes

// ---- listen.c, dial.c
void listener_free(struct node_listener *l); // main thread, after the loops
void dial_cancel_all(struct node_loop *l);
int resolve(const char *host, uint16_t port, bool passive, bool numeric_only, struct addrinfo **out);

#endif
