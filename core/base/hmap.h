// SPDX-License-Identifier: Apache-2.0
// A plain mutable hash map from u64, slice or uuid to a non-NULL pointer. Not thread-safe.
//
// Open addressing with linear probing. Slice keys are borrowed: their bytes must live as long as the entry
// (usually they lie in the value). Order of iteration depends only on the operations done, never on addresses
// (u64 keys that are addresses excepted).
#ifndef KRAFT_BASE_HMAP_H
#define KRAFT_BASE_HMAP_H

#include "core/base/slice.h"
#include "core/base/uuid.h"

enum hmap_kind { HMAP_U64, HMAP_SLICE, HMAP_UUID };

struct hmap_slot {
    uint64_t hash; // of the key
    union {
        uint64_t u64;
        struct slice slice;
        struct uuid uuid;
    } key;       // by the map's kind
    void *value; // NULL: free, or removed where `hash` is 1
};
struct hmap {
    enum hmap_kind kind; // what the keys are
    uint64_t seed; // of the hashes of slice keys; may be set right after hmap_init where peers choose keys
    struct hmap_slot *slots; // NULL before the first put
    size_t cap;              // slots, a power of two, or 0
    size_t count;            // entries
    size_t used;             // entries and removed ones
};

void hmap_init(struct hmap *m, enum hmap_kind kind); // allocates nothing
void hmap_fini(struct hmap *m);                      // frees the table, not the values
void hmap_clear(struct hmap *m);                     // removes all entries, keeps the table
static inline size_t hmap_count(const struct hmap *m)
{
    return m->count;
}

// get: the value or NULL. put: adds or replaces (the key too); gives the replaced value or NULL. remove:
// gives the removed value or NULL; allowed while iterating.
void *hmap_get_u64(const struct hmap *m, uint64_t key);
void *hmap_put_u64(struct hmap *m, uint64_t key, void *value);
void *hmap_remove_u64(struct hmap *m, uint64_t key);
void *hmap_get(const struct hmap *m, struct slice key);
void *hmap_put(struct hmap *m, struct slice key, void *value);
void *hmap_remove(struct hmap *m, struct slice key);
void *hmap_get_uuid(const struct hmap *m, struct uuid key);
void *hmap_put_uuid(struct hmap *m, struct uuid key, void *value);
void *hmap_remove_uuid(struct hmap *m, struct uuid key);

// size_t at = 0; while ((slot = hmap_next(m, &at)) != NULL) ... ; no put in between, remove is allowed.
const struct hmap_slot *hmap_next(const struct hmap *m, size_t *at);

#endif
