// SPDX-License-Identifier: Apache-2.0
// The simulated world from inside: events, executors, connections, heaps.
#ifndef KRAFT_SIM_WORLD_PRIV_H
#define KRAFT_SIM_WORLD_PRIV_H

#include <setjmp.h>
#include "core/base/mem.h"
#include "tests/sim/world/world.h"

#define WORLD_HOSTS_MAX 16
#define WORLD_TEXT 256

struct world_event {
    mono_us at;        // due
    uint64_t seq;      // order among equals
    struct node *node; // in whose context; NULL: the world's own
    uint64_t life;     // of the node, when it was made; another one: dropped
    void (*run)(struct world *w, void *data);
    void *data; // owned by the world's heap
};

struct world_timer {
    struct node_timer *t; // whose
    uint64_t id;          // of this start
};
struct node_loop {
    struct node *node;          // owner
    struct node_loop *next;     // in node.loops
    char name[32];              // for people
    mono_us last_post;          // tasks keep their order
    struct node_hook *hooks;    // turn-end hooks, in order
    struct world_timer *timers; // running ones
    size_t timers_count, timers_cap;
};
struct node_pool {
    struct node *node;      // owner
    struct node_pool *next; // in node.pools
    unsigned threads;       // workers
    mono_us free_at[8];     // when each worker is free
};
struct node_listener {
    struct node *node;          // owner
    struct node_listener *next; // in node.listeners
    struct node_listen_opts opts;
    uint16_t port;
    bool closed;
};

// One end of a connection. Lives in the world's heap until both ends are over.
struct node_conn {
    struct world *w;
    struct node *node;      // owner; NULL after its crash
    uint64_t life;          // of the owner
    struct node_loop *loop; // for life
    struct node_conn *peer; // other end; NULL when that is gone
    struct world_host *host, *peer_host;
    uint16_t port; // of the listener
    struct node_conn_ops ops;
    bool has_ops;
    void *data;
    struct node_conn_limits limits;
    uint8_t *in; // received, not yet a frame
    size_t in_len, in_cap;
    mono_us last_arrival;   // of what was sent to this end: order is kept
    size_t queued;          // bytes sent from this end and not arrived
    unsigned paused;        // nested
    bool closed;            // `closed` was or will be called
    struct node_conn *next; // in world.conns
};

struct heap_block {
    struct heap_block *prev, *next; // of the same owner; NULL owner: no list
    struct node *owner;             // NULL: the world or the test
    size_t size;                    // of the user's part
    void *base;                     // what libc gave: before the block where an alignment was asked for
    uint64_t magic;                 // HEAP_MAGIC while in use
};

struct node {
    struct world *w;
    struct world_host *host;
    uint64_t life; // number of this boot
    bool dead;
    struct node_loop *loops;
    struct node_pool *pools;
    struct node_listener *listeners;
    struct heap_block *blocks; // its memory
    uint64_t heap_bytes;
    uint64_t rng;         // its own random numbers
    struct node *earlier; // in world.nodes, freed with the world
};

struct world_disk_fs {
    struct vfs fs; // wrapper
    struct world_host *host;
};
struct world_host {
    struct world *w;
    char name[64];
    unsigned number;
    struct vfs_faulty *disk;
    struct world_disk_fs fs;
    struct node *node;                 // running; NULL: down
    char stopped[WORLD_TEXT];          // reason of node_stop; empty: none
    uint32_t disk_us_min, disk_us_max; // 0: the world's
    struct vfs_file *open[4096];       // files the running node may hold
    unsigned open_count;
};

struct world {
    uint64_t rng;
    mono_us now;
    uint64_t seq, lives, timer_ids;
    struct world_event *heap; // binary heap by (at, seq)
    size_t heap_count, heap_cap;
    struct world_times times;
    struct world_host *hosts[WORLD_HOSTS_MAX];
    unsigned hosts_count;
    bool cut[WORLD_HOSTS_MAX][WORLD_HOSTS_MAX];
    struct node_conn *conns;
    struct node *nodes;     // every node that ever ran
    struct node *current;   // whose code runs; memory is booked to it
    struct node_loop *loop; // on which loop; NULL: a pool job
    jmp_buf *escape;        // where node_stop goes
    struct mem_hooks hooks;
};

struct world *world_current(void); // the one world of the process
void world_schedule(struct world *w, mono_us at, struct node *node, void (*run)(struct world *, void *),
                    void *data);
// Memory of the world itself, whoever runs.
void *world_alloc(struct world *w, size_t size);
void world_release(struct world *w, void *p);
// Books memory to nobody until world_leave (the disk's, the connections').
struct node *world_enter_none(struct world *w);
void world_leave(struct world *w, struct node *was);
void world_heap_init(struct world *w);
void world_heap_drop(struct node *n);
// Runs fn in a node's context on a loop (or none); false: it stopped itself.
bool world_in_context(struct world *w, struct node *n, struct node_loop *loop, void (*fn)(void *),
                      void *data);
void world_turn_end(struct node_loop *loop);
void world_host_lost(struct world_host *h); // process is gone: what of it the world holds
void world_conns_drop(struct node *n);
void world_disk_init(struct world_host *h);
void world_disk_drop(struct world_host *h); // gives back what the dead node held open
mono_us world_net_delay(struct world *w);
bool world_is_cut(const struct world *w, const struct world_host *a, const struct world_host *b);
void world_flush_waiting(struct world *w);

#endif
