// SPDX-License-Identifier: Apache-2.0
// The critical section of an append: checks, offsets, one write, log end, high watermark.
//
// A run of batches is cut into stretches that can be written at once. Happy path: check the batch's producer,
// stamp offset and epoch, go on; at the end one plog_append. A batch of a producer that has another batch in
// the stretch is checked against that one; where it does not follow it, the stretch is written first. A
// failed write fails the batches of its stretch and all after it: no offset was given out.
#include "core/server/data_plane.h"
#include "core/server/error_map.h"
#include "core/server/partition.h"
#include "core/server/partition_wake.h"

#define STRETCH_MAX 256 // batches of one write; more would only lengthen the critical section

struct stretch {
    struct partition *p;                       // whose lock is held
    struct append_entry *entries[STRETCH_MAX]; // batches to write
    struct slice bytes[STRETCH_MAX];           // their bytes
    unsigned count;                            // number of them
    log_offset next;                           // offset of the next batch
    time_ms now;                               // wall clock
    size_t written;                            // bytes written by all stretches
    int16_t failed;                            // KE_NONE, or why nothing more is written
    int err;                                   // the same as ERR_ code
};

static void fail(struct partition *p, struct append_entry *e, int16_t error)
{
    e->error = error;
    e->base_offset = e->last_offset = -1;
    e->log_start = error_map_tells_log_start(error) ? p->state.log_start : -1;
    e->leader = p->state.leader;
    e->epoch = p->state.epoch;
}

static void write_out(struct stretch *s)
{
    if (s->count == 0) {
        return;
    }
    struct partition *p = s->p;
    struct plog_append_result result = {0};
    int err = plog_append(p->log, s->bytes, s->count, 0, s->now, &result, NULL);
    if (err != 0) {
        s->err = err;
        s->failed = (int16_t)error_map(err);
        for (unsigned i = 0; i < s->count; i++) {
            fail(p, s->entries[i], s->failed);
        }
        s->next = plog_end_offset(p->log);
    } else {
        for (unsigned i = 0; i < s->count; i++) {
            s->written += s->entries[i]->size;
            s->entries[i]->flush_due = result.flush_due;
        }
    }
    s->count = 0;
}

static struct producer_batch producer_of(const uint8_t *batch)
{
    return (struct producer_batch){.producer_id = batch_producer_id(batch),
                                   .producer_epoch = batch_producer_epoch(batch),
                                   .base_sequence = batch_base_sequence(batch),
                                   .last_sequence = batch_last_sequence(batch),
                                   .base_offset = batch_base_offset(batch),
                                   .last_offset = batch_last_offset(batch),
                                   .max_timestamp = batch_max_timestamp(batch),
                                   .transactional = batch_is_transactional(batch),
                                   .control = batch_is_control(batch)};
}

// The youngest batch of this producer in the stretch, or NULL.
static const uint8_t *find_producer(const struct stretch *s, int64_t producer_id)
{
    for (unsigned i = s->count; i-- > 0;) {
        if (batch_producer_id(s->entries[i]->batch) == producer_id) {
            return s->entries[i]->batch;
        }
    }
    return NULL;
}

// True: append it. False: the entry has its outcome.
static bool check_producer(struct stretch *s, struct append_entry *e)
{
    if (!batch_has_producer(e->batch)) {
        return true;
    }
    const uint8_t *before = find_producer(s, batch_producer_id(e->batch));
    if (before != NULL) {
        int32_t expected = batch_last_sequence(before) == INT32_MAX ? 0 : batch_last_sequence(before) + 1;
        if (batch_producer_epoch(before) == batch_producer_epoch(e->batch) &&
            batch_base_sequence(e->batch) == expected) {
            return true;
        }
        write_out(s);
        if (s->failed != KE_NONE) {
            fail(s->p, e, s->failed);
            return false;
        }
    }
    struct producer_batch b = producer_of(e->batch);
    struct producer_duplicate dup;
    enum producer_verdict verdict = plog_check_producer(s->p->log, &b, &dup);
    if (verdict == PRODUCER_OK) {
        return true;
    }
    if (verdict == PRODUCER_DUPLICATE) {
        e->error = KE_NONE;
        e->duplicate = true;
        e->base_offset = dup.base_offset;
        e->last_offset = dup.last_offset;
        e->log_start = s->p->state.log_start;
        e->epoch = s->p->state.epoch;
        e->flush_due = plog_flush_due(s->p->log); // what it repeats may not be on disk yet
        return false;
    }
    fail(s->p, e, (int16_t)error_map_producer(verdict));
    return false;
}

static void add(struct stretch *s, struct append_entry *e)
{
    batch_set_base_offset(e->batch, s->next);
    batch_set_leader_epoch(e->batch, s->p->state.epoch);
    e->error = KE_NONE;
    e->base_offset = s->next;
    s->next += batch_last_offset_delta(e->batch) + 1;
    e->last_offset = s->next - 1;
    e->log_start = s->p->state.log_start;
    e->leader = s->p->state.leader;
    e->epoch = s->p->state.epoch;
    s->entries[s->count] = e;
    s->bytes[s->count] = slice_of(e->batch, e->size);
    s->count++;
}

int partition_append(struct partition *p, struct append_entry *first, time_ms now, struct wake_list *wl)
{
    struct stretch s;
    s.p = p;
    s.count = 0;
    s.now = now;
    s.written = 0;
    s.failed = KE_NONE;
    s.err = 0;
    mutex_lock(&p->lock);
    int16_t refused = partition_check_locked(p, -1, true);
    if (refused == KE_NONE) {
        s.next = p->state.log_end;
        if (!plog_is_loaded(p->log)) {
            s.failed = (int16_t)error_map(plog_load(p->log, NULL)); // sequences of producers are on disk
        }
    }
    for (struct append_entry *e = first; e != NULL; e = e->next) {
        e->duplicate = e->flush_due = e->acked = false;
        if (refused != KE_NONE) {
            fail(p, e, refused);
        } else if (e->acks == -1 && partition_state_under_min_isr(&p->state)) {
            fail(p, e, KE_NOT_ENOUGH_REPLICAS);
        } else if (s.failed != KE_NONE) {
            fail(p, e, s.failed);
        } else if (check_producer(&s, e)) {
            add(&s, e);
            if (s.count == STRETCH_MAX) {
                write_out(&s);
            }
        }
    }
    if (refused == KE_NONE) {
        write_out(&s);
        if (s.written > 0) {
            log_offset end = plog_end_offset(p->log);
            if (partition_state_appended(&p->state, end, now)) {
                partition_high_watermark_moved_locked(p, s.written, wl);
            } else {
                partition_wake_watches_locked(p, 0, true, wl); // followers wait for the log end
            }
        }
        bool enough = !partition_state_under_min_isr(&p->state);
        for (struct append_entry *e = first; e != NULL && enough; e = e->next) {
            e->acked = e->error == KE_NONE && e->last_offset < p->state.high_watermark;
        }
    }
    mutex_unlock(&p->lock);
    return s.err;
}
