// SPDX-License-Identifier: Apache-2.0
// What read_committed needs to know of transactions.
#include "core/base/mem.h"
#include "storage/log_impl.h"

log_offset plog_first_unstable(struct partition_log *log, log_offset high_watermark)
{
    struct errmsg msg;
    if (plog__need(log, &msg) || !log->loaded->producers)
        return -1;
    log_offset first = producer_states_first_unstable(log->loaded->producers, high_watermark);
    log_offset start = plog__load(&log->start);
    return first >= 0 && first < start ? start : first;
}

log_offset plog_last_stable(struct partition_log *log, log_offset high_watermark)
{
    log_offset first = plog_first_unstable(log, high_watermark);
    return first >= 0 && first < high_watermark ? first : high_watermark;
}

struct aborted_search {
    log_offset from, to;      // range of the fetch
    struct plog_aborted *out; // found so far
    unsigned count, cap;
};

// Adds what overlaps; false when nothing later can.
static bool search_index(struct aborted_search *a, const struct txn_index *t)
{
    for (unsigned i = 0; i < t->count; i++) {
        const struct txn_index_entry *e = &t->list[i];
        if (e->last_offset >= a->from && e->first_offset < a->to) {
            if (a->count == a->cap) {
                a->cap = a->cap ? a->cap * 2 : 4;
                a->out = mem_realloc(a->out, a->cap * sizeof(*a->out));
            }
            a->out[a->count++] = (struct plog_aborted){e->producer_id, e->first_offset};
        }
        if (e->last_stable >= a->to) // all transactions that began below are decided by now
            return false;
    }
    return true;
}

int plog_aborted_in(struct partition_log *log, log_offset from, log_offset to, struct plog_aborted **out,
                    unsigned *count, struct errmsg *msg)
{
    *out = NULL;
    *count = 0;
    int rc = plog__need(log, msg);
    if (rc)
        return rc;
    struct log_loaded *l = log->loaded;
    char dir[LAYOUT_PATH_BYTES];
    plog__dir(log, dir);
    struct aborted_search a = {.from = from, .to = to};
    bool more = true;
    for (unsigned i = l->count ? plog__segment_index(log, from) : 0; i + 1 < l->count && more && rc == 0;
         i++) {
        if (!l->segments[i]->has_aborted)
            continue;
        struct txn_index t = {NULL, 0, 0, false};
        rc = txn_index_load(&t, log_dir_fs(log->dir), dir, l->segments[i]->base, msg);
        if (rc == 0)
            more = search_index(&a, &t);
        txn_index_fini(&t);
    }
    if (rc == 0 && more && l->count)
        (void)search_index(&a, &l->aborted);
    if (rc) {
        mem_free(a.out);
        return rc;
    }
    *out = a.out;
    *count = a.count;
    return 0;
}
