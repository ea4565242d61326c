// SPDX-License-Identifier: Apache-2.0
// Aborted transactions of one segment, and its .txnindex file.
//
// 34 bytes an entry, in the order of the abort markers:
//   0 2 version 0   2 8 producer id   10 8 first offset   18 8 last offset (the marker)   26 8 last stable
//   offset at that time
#ifndef KRAFT_STORAGE_TXN_INDEX_H
#define KRAFT_STORAGE_TXN_INDEX_H

#include "core/base/err.h"
#include "core/base/slice.h"
#include "core/base/types.h"
#include "storage/vfs.h"

#define TXN_INDEX_ENTRY_BYTES 34

struct txn_index_entry {
    int64_t producer_id;
    log_offset first_offset; // of the transaction
    log_offset last_offset;  // of its marker
    log_offset last_stable;  // last stable offset once it was written
};
struct txn_index {
    struct txn_index_entry *list; // by last_offset; NULL while empty
    unsigned count, cap;          // used, room
    bool dirty;                   // differs from the file
};

void txn_index_fini(struct txn_index *t); // empty and usable after
void txn_index_add(struct txn_index *t, const struct txn_index_entry *e);
void txn_index_truncate(struct txn_index *t, log_offset end); // removes markers at or above
void txn_index_encode(const struct txn_index *t, uint8_t **out, size_t *len);
int txn_index_decode(struct txn_index *t, struct slice bytes,
                     struct errmsg *msg); // ERR_CORRUPT leaves it empty

int txn_index_load(struct txn_index *t, struct vfs *fs, const char *dir, log_offset base,
                   struct errmsg *msg); // its file

#endif
