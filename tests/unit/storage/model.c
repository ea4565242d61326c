// SPDX-License-Identifier: Apache-2.0
// The model of a log, its operations and its checks.
#include "tests/unit/storage/model.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include "core/base/mem.h"
#include "core/record/batch.h"

uint64_t model_random(struct model *m, uint64_t below)
{
    uint64_t z = (m->rng += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

void model_init(struct model *m, uint64_t seed)
{
    memset(m, 0, sizeof(*m));
    m->rng = seed;
    m->epoch = 1;
    m->in = mem_calloc(MODEL_BATCHES_MAX, sizeof(*m->in));
    m->maybe = mem_calloc(MODEL_BATCHES_MAX, sizeof(*m->maybe));
    store_init(&m->store, seed);
    m->store.config.segment_bytes = 3000;
    m->store.config.index_interval_bytes = 300;
    m->store.config.retention_bytes = 12000;
    m->store.config.retention_ms = -1;
    m->log = store_create(&m->store, "model");
}

void model_fini(struct model *m)
{
    plog_drop(m->log);
    store_fini(&m->store);
    mem_free(m->in);
    mem_free(m->maybe);
}

static struct model_batch describe(const uint8_t *b)
{
    struct model_batch m = {.base = batch_base_offset(b),
                            .last = batch_last_offset(b),
                            .epoch = batch_leader_epoch(b),
                            .crc = batch_crc(b),
                            .producer = batch_producer_id(b),
                            .kind = batch_is_transactional(b) ? MODEL_TXN : MODEL_PLAIN};
    if (batch_is_control(b)) {
        struct record_iter it;
        struct record r;
        record_iter_init(&it, b, NULL, NULL);
        assert_int_equal(record_iter_next(&it, &r, NULL), 0);
        m.kind = control_type_of(r.key) == CONTROL_COMMIT ? MODEL_COMMIT : MODEL_ABORT;
        record_iter_fini(&it);
    }
    return m;
}

static bool same(const struct model_batch *a, const struct model_batch *b)
{
    return a->base == b->base && a->last == b->last && a->epoch == b->epoch && a->crc == b->crc;
}

static void add_maybe(struct model *m, const struct model_batch *b)
{
    assert_true(m->maybe_count < MODEL_BATCHES_MAX);
    m->maybe[m->maybe_count++] = *b;
}

// What the log's own state says of the producers goes on from there.
static void reset_producers(struct model *m)
{
    struct producer_states *all = plog_producers(m->log);
    const struct producer_entry *p = all ? producer_states_find(all, 7) : NULL;
    m->sequence = p && p->batches_count ? p->batches[p->batches_count - 1].last_sequence + 1 : 0;
    for (int i = 0; i < 3; i++) {
        p = all ? producer_states_find(all, 20 + i) : NULL;
        m->txn_open[i] = p && p->txn_first_offset >= 0;
        m->txn_sequence[i] = p && p->batches_count ? p->batches[p->batches_count - 1].last_sequence + 1 : 0;
    }
}

// ---- operations -------------------------------------------------------------------------------------------
int model_append(struct model *m, struct errmsg *msg)
{
    struct slice run[4];
    unsigned n = 1 + (unsigned)model_random(m, 4);
    log_offset next = plog_end_offset(m->log);
    int32_t sequence = m->sequence, txn_sequence[3];
    bool open[3];
    memcpy(open, m->txn_open, sizeof(open));
    memcpy(txn_sequence, m->txn_sequence, sizeof(txn_sequence));
    for (unsigned i = 0; i < n; i++) {
        int count = 1 + (int)model_random(m, 5), who = (int)model_random(m, 9);
        if (who < 3) { // one of the transactional producers goes on or ends
            bool end = open[who] && model_random(m, 3) == 0;
            run[i] = batch_make(&(struct batch_spec){.base = next,
                                                     .count = count,
                                                     .epoch = m->epoch,
                                                     .producer = 21 + who,
                                                     .sequence = txn_sequence[who],
                                                     .transactional = true,
                                                     .marker = end,
                                                     .commit = end && model_random(m, 2)});
            next += end ? 1 : count;
            txn_sequence[who] += end ? 0 : count;
            open[who] = !end;
            continue;
        }
        bool idempotent = model_random(m, 2) == 0;
        run[i] = batch_make(&(struct batch_spec){.base = next,
                                                 .count = count,
                                                 .epoch = m->epoch,
                                                 .value_bytes = 1 + (int)model_random(m, 120),
                                                 .producer = idempotent ? 8 : 0,
                                                 .sequence = sequence,
                                                 .fill = (uint8_t)model_random(m, 256)});
        next += count;
        sequence += idempotent ? count : 0;
    }
    struct plog_append_result r;
    int rc = plog_append(m->log, run, n, 0, m->store.now, &r, msg);
    if (rc == 0 && m->flush_each)
        assert_true(r.flush_due);
    if (rc == 0 && r.flush_due)
        rc = plog_flush_all(m->log, msg);
    for (unsigned i = 0; i < n; i++) {
        struct model_batch b = describe(run[i].data);
        if (rc == 0)
            m->in[m->in_count++] = b;
        else
            add_maybe(m, &b);
        batch_free(run[i]);
    }
    if (rc == 0) {
        m->sequence = sequence;
        memcpy(m->txn_open, open, sizeof(open));
        memcpy(m->txn_sequence, txn_sequence, sizeof(txn_sequence));
        m->acked++;
        if (m->flush_each)
            m->durable = plog_end_offset(m->log);
    }
    return rc;
}

int model_flush(struct model *m, struct errmsg *msg)
{
    log_offset end = plog_end_offset(m->log);
    int rc = plog_flush_all(m->log, msg);
    if (rc == 0) {
        m->durable = end;
        assert_int_equal(plog_recovery_point(m->log), end);
    }
    return rc;
}

int model_truncate(struct model *m, log_offset offset, struct errmsg *msg)
{
    int rc = plog_truncate_to(m->log, offset, msg);
    if (offset < m->durable) // done or not, it may be gone now
        m->durable = offset;
    unsigned keep = m->in_count;
    while (keep && m->in[keep - 1].last >= offset)
        keep--;
    for (unsigned i = keep; i < m->in_count; i++) {
        add_maybe(m, &m->in[i]);
        if (m->in[i].base < m->durable) // a batch is cut off whole
            m->durable = m->in[i].base;
    }
    m->in_count = keep;
    m->epoch++;
    m->start = plog_start_offset(m->log);
    if (m->start == plog_end_offset(m->log) && producer_states_count(plog_producers(m->log)) == 0)
        m->history = m->start;
    reset_producers(m);
    return rc;
}

int model_advance_start(struct model *m, log_offset offset, struct errmsg *msg)
{
    int rc = plog_advance_start(m->log, offset, msg);
    m->start = plog_start_offset(m->log);
    return rc;
}

int model_retain(struct model *m, struct errmsg *msg)
{
    struct plog_doomed doomed;
    int rc = plog_retain(m->log, m->store.now, plog_end_offset(m->log), &doomed, msg);
    if (model_random(m, 2))
        plog_doomed_remove(&doomed);
    else
        plog_doomed_fini(&doomed);
    m->start = plog_start_offset(m->log);
    return rc;
}

// ---- checks -----------------------------------------------------------------------------------------------
static unsigned first_at(const struct model *m, log_offset offset)
{
    unsigned i = 0;
    while (i < m->in_count && m->in[i].last < offset)
        i++;
    return i;
}

static struct model_batch *read_log(struct model *m, unsigned *count)
{
    size_t len;
    uint8_t *all = store_read_all(m->log, plog_start_offset(m->log), &len);
    struct model_batch *out = mem_calloc(MODEL_BATCHES_MAX, sizeof(*out));
    struct batch_iter it = batch_iter_of(slice_of(all, len));
    *count = 0;
    while (batch_iter_next(&it)) {
        assert_int_equal(batch_check_crc(it.batch, NULL), 0);
        out[(*count)++] = describe(it.batch);
    }
    assert_int_equal(it.err, 0);
    assert_int_equal(it.rest.len, 0);
    mem_free(all);
    return out;
}

// Open and aborted transactions, counted from the batches themselves, against what the log says.
static void check_transactions(struct model *m)
{
    log_offset open[3] = {-1, -1, -1}, first_base, end = plog_end_offset(m->log), stable = end;
    struct plog_aborted *aborted;
    unsigned count, seen = 0;
    if (plog_segment_bases(m->log, &first_base, 1) == 0)
        return;
    first_base = first_base > m->history ? first_base : m->history; // what began below may be forgotten
    first_base = first_base > m->sure ? first_base : m->sure;
    assert_int_equal(plog_aborted_in(m->log, m->start, end, &aborted, &count, NULL), 0);
    for (unsigned i = 0; i < m->in_count; i++) {
        const struct model_batch *b = &m->in[i];
        if (b->producer < 20 || b->base < m->history)
            continue;
        log_offset *first = &open[b->producer - 20];
        if (b->kind == MODEL_TXN) {
            *first = *first < 0 ? b->base : *first;
            continue;
        }
        if (b->kind == MODEL_ABORT && *first >= 0 && b->base >= m->start) { // in the order of the markers
            bool known = *first >= first_base;
            bool next = seen < count && aborted[seen].producer_id == b->producer;
            assert_true(!known || (next && aborted[seen].first_offset == *first));
            seen += next && (known || aborted[seen].first_offset < b->base);
        }
        *first = -1;
    }
    assert_int_equal(seen, count);
    mem_free(aborted);
    bool sure = true;
    for (int i = 0; i < 3; i++) {
        if (open[i] >= 0 && open[i] < stable)
            stable = open[i];
        sure = sure && (open[i] < 0 || open[i] >= first_base);
    }
    if (stable < m->start)
        stable = m->start;
    if (sure)
        assert_int_equal(plog_last_stable(m->log, end), stable);
}

void model_check(struct model *m)
{
    unsigned count, at = first_at(m, plog_start_offset(m->log));
    struct model_batch *found = read_log(m, &count);
    assert_int_equal(plog_start_offset(m->log), m->start);
    assert_int_equal(count, m->in_count - at);
    for (unsigned i = 0; i < count; i++)
        assert_true(same(&found[i], &m->in[at + i]));
    if (m->in_count && m->in[m->in_count - 1].last >= m->start)
        assert_int_equal(plog_end_offset(m->log), m->in[m->in_count - 1].last + 1);
    check_transactions(m);
    // Epochs: each batch belongs to the epoch that the log says.
    for (unsigned i = 0; i < count; i++)
        if (found[i].base >= m->start)
            if (plog_epoch_of(m->log, found[i].base) != found[i].epoch)
                fail_msg("batch %lld has epoch %d, the log says %d (start %lld)", (long long)found[i].base,
                         (int)found[i].epoch, (int)plog_epoch_of(m->log, found[i].base), (long long)m->start);
    mem_free(found);
}

static bool is_maybe(const struct model *m, const struct model_batch *b)
{
    for (unsigned i = 0; i < m->maybe_count; i++)
        if (same(&m->maybe[i], b))
            return true;
    return false;
}

// Both, side by side from where they part, for the one who looks for the fault.
static void print_parting(const struct model *m, const struct model_batch *found, unsigned count, unsigned at,
                          unsigned kept)
{
    for (unsigned i = kept > 2 ? kept - 2 : 0; i < kept + 6; i++) {
        if (i < count)
            print_message("found %lld..%lld epoch %d   ", (long long)found[i].base, (long long)found[i].last,
                          (int)found[i].epoch);
        if (at + i < m->in_count)
            print_message("model %lld..%lld epoch %d", (long long)m->in[at + i].base,
                          (long long)m->in[at + i].last, (int)m->in[at + i].epoch);
        print_message("\n");
    }
}

// After a stop that was not clean: a beginning of what the model has, then perhaps what it says may be there.
static void take_over(struct model *m, log_offset must_have)
{
    unsigned count, kept = 0;
    struct model_batch *found = read_log(m, &count);
    log_offset start = plog_start_offset(m->log), end = plog_end_offset(m->log);
    if (end < must_have)
        fail_msg("the log ends at %lld, but %lld was on disk (cut in segment %lld at %llu, %u batches after, "
                 "%u segments dropped)",
                 (long long)end, (long long)must_have, (long long)m->report.cut_segment,
                 (unsigned long long)m->report.cut_pos, m->report.batches_after, m->report.segments_dropped);
    assert_true(start <= m->start || start <= end);
    unsigned at = first_at(m, start);
    while (kept < count && at + kept < m->in_count && same(&found[kept], &m->in[at + kept]))
        kept++;
    for (unsigned i = kept; i < count; i++) {
        if (is_maybe(m, &found[i]))
            continue;
        print_parting(m, found, count, at, kept);
        fail_msg("batch %lld..%lld of epoch %d is not known", (long long)found[i].base,
                 (long long)found[i].last, (int)found[i].epoch);
    }
    if (kept < count && found[kept].base < must_have)
        fail_msg("batch %lld is an old one, but %lld was on disk", (long long)found[kept].base,
                 (long long)must_have);
    memcpy(m->in + at, found, count * sizeof(*found)); // what is below the start can come back as well
    m->in_count = at + count;
    for (unsigned i = 0; i < count; i++)
        if (found[i].epoch >= m->epoch)
            m->epoch = found[i].epoch;
    m->epoch++;
    m->start = m->sure = start;
    m->durable = plog_recovery_point(m->log) < end ? plog_recovery_point(m->log) : end;
    if (start == end && producer_states_count(plog_producers(m->log)) == 0)
        m->history = start;
    reset_producers(m);
    mem_free(found);
}

void model_restart_clean(struct model *m)
{
    struct errmsg msg = {""};
    bool existing = vfs_faulty_exists(m->store.disk, "/data/model-0");
    if (plog_close(m->log, &msg))
        fail_msg("plog_close: %s", msg.text);
    store_close_dir(&m->store);
    store_open_dir(&m->store);
    struct plog_recovery report;
    if (!existing) {
        m->log = store_create(&m->store, "model");
        m->start = 0;
        return;
    }
    m->log = store_reopen(&m->store, "model", true, &report);
    assert_false(report.scanned);
    m->durable = plog_end_offset(m->log);
    m->maybe_count = 0;
    model_check(m);
}

static void restart(struct model *m, log_offset must_have)
{
    store_open_dir(&m->store);
    if (vfs_faulty_exists(m->store.disk, "/data/model-0")) {
        m->log = store_reopen(&m->store, "model", false, &m->report);
    } else {
        m->log = store_create(&m->store, "model");
    }
    take_over(m, must_have);
}

void model_restart_killed(struct model *m)
{
    log_offset end = m->in_count ? m->in[m->in_count - 1].last + 1 : m->start;
    plog_drop(m->log);
    store_drop_dir(&m->store);
    vfs_faulty_heal(m->store.disk);
    vfs_faulty_kill(m->store.disk);
    restart(m, end);
}

void model_restart_crashed(struct model *m, uint64_t seed)
{
    plog_drop(m->log);
    store_drop_dir(&m->store);
    vfs_faulty_heal(m->store.disk);
    vfs_faulty_crash(m->store.disk, seed);
    restart(m, m->durable);
    m->maybe_count = 0; // what came back is on disk now, the rest is gone
}
