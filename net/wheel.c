// SPDX-License-Identifier: Apache-2.0
// The hierarchical timer wheel.
//
// A timer stands in the lowest level whose span reaches from now to its due time, in the slot of its due
// time's digit. When the digit of a level wraps, the next slot of the level above is spread over the lower
// ones.
#include "net/wheel.h"

#include <string.h>

#include "core/base/assert.h"

#define BITS 8
#define MASK (WHEEL_SLOTS - 1)
#define SPAN_MAX                                                                                             \
    ((1ull << (BITS * WHEEL_LEVELS)) - 1) // longer timers stand in the last slot and are put in again

void wheel_init(struct wheel *w, uint64_t now_ms)
{
    memset(w, 0, sizeof *w);
    w->now_ms = now_ms;
}

static void link_front(struct node_timer **head, struct node_timer *t)
{
    t->next = *head;
    if (t->next)
        t->next->prev_link = &t->next;
    *head = t;
    t->prev_link = head;
}

static void unlink(struct node_timer *t)
{
    *t->prev_link = t->next;
    if (t->next)
        t->next->prev_link = t->prev_link;
    t->next = NULL;
    t->prev_link = NULL;
}

static void place(struct wheel *w, struct node_timer *t)
{
    uint64_t due = t->due_ms > w->now_ms ? t->due_ms : w->now_ms + 1;
    uint64_t span = due - w->now_ms;
    if (span > SPAN_MAX) {
        due = w->now_ms + SPAN_MAX;
        span = SPAN_MAX;
    }
    unsigned level = 0;
    while (span >> (BITS * (level + 1)))
        level++;
    unsigned slot = due >> (BITS * level) & MASK;
    link_front(&w->slots[level][slot], t);
    w->used[level][slot / 64] |= 1ull << (slot % 64);
}

void wheel_start(struct wheel *w, struct node_timer *t, uint64_t due_ms)
{
    if (t->prev_link)
        wheel_stop(w, t);
    t->due_ms = due_ms;
    place(w, t);
    w->count++;
}

void wheel_stop(struct wheel *w, struct node_timer *t)
{
    if (!t->prev_link)
        return;
    unlink(t);
    w->count--;
}

// Detaches a slot's timers, oldest first, to w->firing.
static void detach(struct wheel *w, unsigned level, unsigned slot)
{
    MUST(w->firing == NULL);
    struct node_timer *t = w->slots[level][slot];
    w->slots[level][slot] = NULL;
    w->used[level][slot / 64] &= ~(1ull << (slot % 64));
    while (t) {
        struct node_timer *next = t->next;
        link_front(&w->firing, t);
        t = next;
    }
}

static void cascade(struct wheel *w, unsigned level)
{
    detach(w, level, w->now_ms >> (BITS * level) & MASK);
    while (w->firing) {
        struct node_timer *t = w->firing;
        unlink(t);
        if (t->due_ms <= w->now_ms) { // due in this very step
            link_front(&w->slots[0][w->now_ms & MASK], t);
            w->used[0][(w->now_ms & MASK) / 64] |= 1ull << (w->now_ms & 63);
        } else {
            place(w, t);
        }
    }
}

void wheel_advance(struct wheel *w, uint64_t now_ms)
{
    while (w->now_ms < now_ms) {
        uint64_t next = wheel_next_ms(w);
        if (next > now_ms) {
            w->now_ms = now_ms;
            return;
        }
        w->now_ms = next;
        for (unsigned level = WHEEL_LEVELS - 1; level > 0; level--)
            if ((w->now_ms & ((1ull << (BITS * level)) - 1)) == 0)
                cascade(w, level);
        detach(w, 0, w->now_ms & MASK);
        while (w->firing) {
            struct node_timer *t = w->firing;
            unlink(t);
            w->count--;
            t->fire(t);
        }
    }
}

// Distance from `from` (exclusive) to the next used slot of a level, 1..256; 0: none.
static unsigned distance(const struct wheel *w, unsigned level, unsigned from)
{
    for (unsigned i = 0; i <= WHEEL_SLOTS / 64; i++) {
        unsigned at = (from + 1 + i * 64) & MASK, word = at / 64;
        if (i == 0) {
            uint64_t bits = w->used[level][word] >> (at % 64);
            if (bits)
                return 1 + (unsigned)__builtin_ctzll(bits);
            continue;
        }
        // Whole words from the next word boundary on.
        unsigned boundary = ((from + 1) / 64 + i) * 64;
        uint64_t bits = w->used[level][boundary / 64 % (WHEEL_SLOTS / 64)];
        if (bits) {
            unsigned d = boundary + (unsigned)__builtin_ctzll(bits) - from;
            if (d <= WHEEL_SLOTS)
                return d;
        }
    }
    return 0;
}

uint64_t wheel_next_ms(const struct wheel *w)
{
    if (!w->count)
        return UINT64_MAX;
    uint64_t best = UINT64_MAX;
    for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
        uint64_t digit = w->now_ms >> (BITS * level);
        unsigned d = distance(w, level, digit & MASK);
        if (!d)
            continue;
        uint64_t at = (digit + d) << (BITS * level);
        if (at < best)
            best = at;
    }
    return best == UINT64_MAX ? w->now_ms + 1 : best;
}
