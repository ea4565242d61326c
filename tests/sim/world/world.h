// SPDX-License-Identifier: Apache-2.0
// A whole cluster's world in one process: virtual time, loops, pools, connections and disks, all drawn from
// one seed.
//
// It implements the node interface (core/base/node.h) by its link names, so production code runs in it
// unchanged. Everything is an event in one queue; each event runs in the context of one node. A crash drops a
// node whole: its events, its connections and its memory. Call every function here from outside of events
// (the test), except where a hook says otherwise.
#ifndef KRAFT_SIM_WORLD_H
#define KRAFT_SIM_WORLD_H

#include "core/base/node.h"
#include "storage/vfs_faulty.h"

struct world;
struct world_host; // a machine: a name, a disk, and at most one running node

struct world_times {
    uint32_t net_us_min, net_us_max;   // delay of bytes on a connection
    uint32_t disk_us_min, disk_us_max; // duration of a job on a pool
    uint32_t post_us_max;              // delay of a posted task
};

struct world *world_new(uint64_t seed); // takes over the memory hooks until world_free
void world_free(struct world *w);       // crashes what still runs
uint64_t world_random(struct world *w); // from the seed
uint64_t world_between(struct world *w, uint64_t min, uint64_t max); // inclusive
mono_us world_now(const struct world *w);
void world_set_times(struct world *w, const struct world_times *t);

// ---- running
// ---------------------------------------------------------------------------------------------------
bool world_step(struct world *w); // runs the next event; false: none is left
void world_run(struct world *w,
               uint64_t ms); // runs everything that is due in the next `ms` and moves time there
// Runs until `done` says so, at most `ms`. False: it never did.
bool world_run_until(struct world *w, uint64_t ms, bool (*done)(void *data), void *data);

// ---- hosts and nodes
// -------------------------------------------------------------------------------------------
struct world_host *world_host_new(struct world *w, const char *name); // `name` is what others dial
struct vfs_faulty *world_host_disk(struct world_host *h);
struct vfs *world_host_fs(struct world_host *h); // for the node's code: its memory is not the node's
void world_host_set_disk_us(struct world_host *h, uint32_t min,
                            uint32_t max);          // a slow disk; 0, 0: as the world's
struct node *world_boot(struct world_host *h);      // starts a process; the host must be down
struct node *world_host_node(struct world_host *h); // NULL: down
// Runs `fn` in the node's context. False: the node stopped itself inside (node_stop).
bool world_call(struct node *n, void (*fn)(void *data), void *data);
// The process dies at once; connections are reset. `machine`: the disk also loses what was not synced, as the
// seed decides.
void world_crash(struct world_host *h, bool machine);
const char *world_host_stopped(const struct world_host *h); // reason of node_stop, or NULL
void world_host_forget_stop(struct world_host *h);
uint64_t world_host_memory(const struct world_host *h); // bytes that the running node holds

// ---- network
// ---------------------------------------------------------------------------------------------------
void world_cut(struct world *w, struct world_host *a, struct world_host *b,
               bool cut);                                            // both ways; bytes wait, dials time out
void world_cut_all(struct world *w, struct world_host *a, bool cut); // every link of a host
void world_heal(struct world *w);                                    // every cut and slow disk

#endif
