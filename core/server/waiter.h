// SPDX-License-Identifier: Apache-2.0
// Something of one loop that waits for a partition: how any thread wakes it, once.
#ifndef KRAFT_SERVER_WAITER_H
#define KRAFT_SERVER_WAITER_H

#include <stdatomic.h>
#include "core/base/list.h"

struct data_plane;

struct waiter {
    struct data_plane *home; // plane of the loop that it lives on
    void (*wake)(
        struct waiter *w); // on that loop, once for each waiter_push that answered; `pushed` is clear again
    struct waiter *next;   // in the plane's list of woken ones
    atomic_bool pushed;    // it is in that list
};

// Loops that have to be told, collected under a partition's lock and told after it.
#define WAKE_PLANES_MAX 16
struct wake_list {
    struct data_plane *planes[WAKE_PLANES_MAX]; // each once
    unsigned count;                             // number of them
};

// Puts the waiter into its home's list of woken ones. Any thread, also under a partition's lock (which keeps
// the waiter alive).
void waiter_push(struct waiter *w, struct wake_list *wl);
// Tells the loops. Any thread, without locks.
void wake_list_send(struct wake_list *wl);

#endif
