// SPDX-License-Identifier: Apache-2.0
// Records in an arena.
#include "core/metadata/record_list.h"

void record_list_init(struct record_list *l, struct arena *arena)
{
    *l = (struct record_list){.arena = arena};
}

struct metadata_record *record_list_add(struct record_list *l, enum metadata_record_type type,
                                        int16_t version)
{
    if (l->count == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 8;
        struct metadata_record *items = arena_alloc(l->arena, cap * sizeof *items);
        if (l->count)
            memcpy(items, l->items, l->count * sizeof *items);
        l->items = items;
        l->cap = cap;
    }
    struct metadata_record *r = &l->items[l->count++];
    metadata_record_init(r, type, version);
    return r;
}
