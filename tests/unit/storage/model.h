// SPDX-License-Identifier: Apache-2.0
// What a log should hold, kept beside a real one on the faulty disk, and the check that they agree.
//
// Besides the batches that are in the log the model remembers those that may be: a truncated batch can come
// back when the machine stops before the cut was durable, and so can one whose append failed. Each truncation
// is followed by a higher epoch, as in a cluster, so that old batches never follow new ones.
#ifndef KRAFT_TESTS_STORAGE_MODEL_H
#define KRAFT_TESTS_STORAGE_MODEL_H

#include "tests/unit/storage/fixture.h"

#define MODEL_BATCHES_MAX 20000

struct model_batch {
    log_offset base, last;
    leader_epoch epoch;
    uint32_t crc;
    int64_t producer;                                                // -1 none
    enum { MODEL_PLAIN, MODEL_TXN, MODEL_ABORT, MODEL_COMMIT } kind; // what it is to a transaction
};
struct model {
    struct store store;
    struct partition_log *log;
    uint64_t rng;
    struct model_batch *in; // in the log, rising; also those below its start
    unsigned in_count;
    struct model_batch *maybe; // may come back after a crash
    unsigned maybe_count;
    log_offset durable;      // all below must survive the machine's stop
    log_offset start;        // log start offset
    leader_epoch epoch;      // of what is appended next
    int32_t sequence;        // of producer 7
    bool txn_open[3];        // of producers 20 to 22
    int32_t txn_sequence[3]; // of them
    log_offset history;      // transactions that began below are forgotten: the log was emptied there
    log_offset sure;         // what began below may have been another batch: below the start, before a crash
    bool flush_each;         // flush.messages=1: acknowledged is durable
    struct plog_recovery report; // of the last restart that was not clean
    unsigned acked;              // appends that succeeded
};

void model_init(struct model *m, uint64_t seed);
void model_fini(struct model *m);
uint64_t model_random(struct model *m, uint64_t below); // 0 .. below - 1
int model_append(struct model *m, struct errmsg *msg);  // a run of 1 to 4 batches
int model_flush(struct model *m, struct errmsg *msg);
int model_truncate(struct model *m, log_offset offset, struct errmsg *msg);
int model_advance_start(struct model *m, log_offset offset, struct errmsg *msg);
int model_retain(struct model *m, struct errmsg *msg);
// Stops as told and opens again; what is found must agree with the model, which then takes it over.
void model_restart_clean(struct model *m);
void model_restart_killed(struct model *m);
void model_restart_crashed(struct model *m, uint64_t seed);
void model_check(struct model *m); // every batch of the log, exactly

#endif
