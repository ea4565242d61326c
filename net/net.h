// SPDX-License-Identifier: Apache-2.0
// A node on libuv: what a program needs to make one, run it until a signal and end it in order.
//
// Everything else is core/base/node.h. The only libuv user of the project; this header shows none of its
// types.
#ifndef KRAFT_NET_NET_H
#define KRAFT_NET_NET_H

#include "core/base/logline.h"
#include "core/base/metrics.h"
#include "core/base/node.h"

struct net_options {
    struct log_sink *log;        // where lines go; NULL = nowhere. Outlives the node
    struct metrics *metrics;     // registry for the node's own counters; NULL = none. Outlives the node
    uint64_t frame_memory_bytes; // most memory in received frames of the whole process; 0 = a quarter of the
                                 // machine's (or its cgroup's)
    unsigned
        descriptors_kept; // of the limit of open files, what accepted connections leave to files; 0 = none
    uint32_t receive_buffer_bytes; // SO_RCVBUF of accepted and dialled sockets; 0 = the system's choice
    uint32_t send_buffer_bytes;    // SO_SNDBUF; 0 = the system's choice
    uint32_t
        send_queue_bytes_high; // above this much unsent output a connection is read no further; 0 = 1 MiB
    uint32_t user_timeout_ms;  // TCP_USER_TIMEOUT of dialled connections: a cut cable shows after it; 0 = the
                               // system's choice
};

// Makes a node; starts no thread. Raises RLIMIT_NOFILE to its hard limit and ignores SIGPIPE (process-wide).
// One node a process. Errors: ERR_IO.
int node_create(const struct net_options *opts, struct node **out, struct errmsg *msg);
// The hard limit of open files, which a node works with. Any thread.
unsigned net_descriptors_max(void);

// Signals are tasks of a loop: `task` is posted to `loop` each time the signal comes (several at once may
// become one). SIGHUP: reload. Set before node_run_until_signal. The task is posted again only after it has
// run.
void node_on_signal(struct node *n, int signal_number, struct node_loop *loop, struct node_task *task);

// Waits on the calling (main) thread until SIGTERM or SIGINT comes or node_request_stop was called, and
// serves signals meanwhile. Answers the signal's number, or 0. A second SIGTERM or SIGINT during the orderly
// end kills the process at once.
int node_run_until_signal(struct node *n);
void node_request_stop(struct node *n); // any thread: node_run_until_signal returns 0

// The orderly end, on the main thread, after the server has stopped its own work: closes listeners, closes
// every connection
// (`closed` is called; queued bytes get `flush_ms` to leave), waits for running pool jobs and their `done`,
// runs posted tasks until none is left, ends loops and pools and frees the node. Timers fire until the loops
// end.
void node_shutdown(struct node *n, uint32_t flush_ms);

#endif
