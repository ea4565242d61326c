// SPDX-License-Identifier: Apache-2.0
// The registry of counters, gauges and histograms of one node: declared in const tables, counted without
// locks.
//
// A room declares its metrics as a table of metric_def and an enum of the same order, registers the table
// once for each thing that it counts (with the labels that tell it apart), and then adds by index.
#ifndef KRAFT_BASE_METRICS_H
#define KRAFT_BASE_METRICS_H

#include <stdatomic.h>
#include "core/base/list.h"
#include "core/base/mutex.h"
#include "core/base/slice.h"

enum metric_kind {
    METRIC_COUNTER,   // only grows
    METRIC_GAUGE,     // goes up and down
    METRIC_HISTOGRAM, // distribution of non-negative numbers, log-linear
};
struct metric_def {
    const char *name;      // Prometheus name without prefix: "produce_request_bytes_total"
    enum metric_kind kind; // what it is
    const char *help;      // one sentence
};

// Log-linear: values 0..15 exactly, then 8 buckets to each power of two: at most 12.5 % wide, to 2^40.
#define METRIC_HISTOGRAM_BUCKETS (16 + 36 * 8 + 1)
struct metric_histogram {
    _Atomic uint64_t count;                             // numbers seen
    _Atomic uint64_t sum;                               // their sum
    _Atomic uint64_t max;                               // the greatest
    _Atomic uint32_t buckets[METRIC_HISTOGRAM_BUCKETS]; // numbers in each
};

union metric_value {
    _Atomic int64_t number;                     // counter or gauge
    struct metric_histogram *_Atomic histogram; // NULL before the first number
};
struct metric_set {
    struct list_node link;         // in the registry
    const struct metric_def *defs; // the table
    unsigned count;                // entries of it
    char *labels;                  // Prometheus labels without braces: `listener="PLAINTEXT"`; "" = none
    union metric_value values[];   // one for each entry
};

struct metrics {
    struct mutex mutex; // guards the list
    struct list sets;   // metric_set
};

void metrics_init(struct metrics *m);
void metrics_fini(struct metrics *m); // frees all sets
// Adds a set. `defs` is const and lives for ever; `labels` is copied and may be NULL. Any thread.
struct metric_set *metrics_register(struct metrics *m, const struct metric_def *defs, unsigned count,
                                    const char *labels);
void metrics_unregister(struct metrics *m, struct metric_set *s); // frees it. Any thread

// Any thread, lock-free.
static inline void metric_add(struct metric_set *s, unsigned index, int64_t n)
{
    atomic_fetch_add_explicit(&s->values[index].number, n, memory_order_relaxed);
}
static inline void metric_inc(struct metric_set *s, unsigned index)
{
    metric_add(s, index, 1);
}
static inline void metric_set_value(struct metric_set *s, unsigned index, int64_t v)
{
    atomic_store_explicit(&s->values[index].number, v, memory_order_relaxed);
}
static inline int64_t metric_get(const struct metric_set *s, unsigned index)
{
    return atomic_load_explicit(&s->values[index].number, memory_order_relaxed);
}
void metric_record(struct metric_set *s, unsigned index,
                   uint64_t value); // into a histogram; memory at the first number

uint64_t metric_bucket_limit(unsigned bucket); // greatest number that falls into a bucket
uint64_t metric_quantile(const struct metric_histogram *h,
                         double q); // upper limit of the q-quantile (0..1); 0 if empty

// Calls `each` for every metric, set by set, under the registry's lock. `h` is NULL but for histograms that
// have numbers.
void metrics_each(struct metrics *m,
                  void (*each)(void *data, const struct metric_def *def, const char *labels, int64_t number,
                               const struct metric_histogram *h),
                  void *data);

#endif
