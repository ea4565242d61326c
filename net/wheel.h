// SPDX-License-Identifier: Apache-2.0
// The hierarchical timer wheel of a loop: four levels of 256 slots of 1, 256, 2^16 and 2^24 ms.
#ifndef KRAFT_NET_WHEEL_H
#define KRAFT_NET_WHEEL_H

#include "core/base/node.h"

#define WHEEL_LEVELS 4
#define WHEEL_SLOTS 256

struct wheel {
    uint64_t now_ms;                                     // all timers due up to here have fired
    struct node_timer *slots[WHEEL_LEVELS][WHEEL_SLOTS]; // newest first
    uint64_t used[WHEEL_LEVELS][WHEEL_SLOTS / 64];       // bit per slot that may hold timers
    struct node_timer *firing;                           // detached, being fired
    size_t count;                                        // timers that run
};

void wheel_init(struct wheel *w, uint64_t now_ms);
void wheel_start(struct wheel *w, struct node_timer *t,
                 uint64_t due_ms); // past times: fires at the next advance
void wheel_stop(struct wheel *w, struct node_timer *t);
void wheel_advance(struct wheel *w, uint64_t now_ms); // fires all that is due; earlier times first
// When to call wheel_advance again: not later than the next timer is due; UINT64_MAX: no timer runs.
uint64_t wheel_next_ms(const struct wheel *w);

#endif
