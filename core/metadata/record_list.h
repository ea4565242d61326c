// SPDX-License-Identifier: Apache-2.0
// Records that a decision asks for, in order, in an arena.
#ifndef KRAFT_METADATA_RECORD_LIST_H
#define KRAFT_METADATA_RECORD_LIST_H

#include "core/base/arena.h"
#include "core/protocol/metadata_record.h"

struct record_list {
    struct arena *arena;           // takes the records; the caller's
    struct metadata_record *items; // the records; moves as the list grows
    uint32_t count, cap;           // records, room
};

void record_list_init(struct record_list *l, struct arena *arena); // empty
// Adds a record with its defaults at `version` and returns it, to be filled at once (the next add may move
// it).
struct metadata_record *record_list_add(struct record_list *l, enum metadata_record_type type,
                                        int16_t version);
// Takes back all records from number `count` on.
static inline void record_list_cut(struct record_list *l, uint32_t count)
{
    if (count < l->count)
        l->count = count;
}

#endif
