// SPDX-License-Identifier: Apache-2.0
// The metrics registry and its histograms.
#include "core/base/metrics.h"

#include "core/base/mem.h"

#define LINEAR 16     // values below stand alone
#define SUB_BITS 3    // eight buckets to a power of two
#define FIRST_POWER 4 // 2^4 is the first value that shares a bucket
#define LAST_POWER 39 // 2^40 and above: the last bucket

void metrics_init(struct metrics *m)
{
    mutex_init(&m->mutex);
    list_init(&m->sets);
}

static void set_free(struct metric_set *s)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->defs[i].kind == METRIC_HISTOGRAM)
            mem_free(atomic_load(&s->values[i].histogram));
    mem_free(s->labels);
    mem_free(s);
}

void metrics_fini(struct metrics *m)
{
    struct list_node *n;
    while ((n = list_pop(&m->sets)) != NULL)
        set_free(LIST_ENTRY(n, struct metric_set, link));
    mutex_fini(&m->mutex);
}

struct metric_set *metrics_register(struct metrics *m, const struct metric_def *defs, unsigned count,
                                    const char *labels)
{
    struct metric_set *s = mem_zalloc(sizeof *s + count * sizeof s->values[0]);
    s->defs = defs;
    s->count = count;
    s->labels = mem_strdup(labels ? labels : "");
    mutex_lock(&m->mutex);
    list_add_tail(&m->sets, &s->link);
    mutex_unlock(&m->mutex);
    return s;
}

void metrics_unregister(struct metrics *m, struct metric_set *s)
{
    mutex_lock(&m->mutex);
    list_remove(&s->link);
    mutex_unlock(&m->mutex);
    set_free(s);
}

static unsigned bucket_of(uint64_t v)
{
    if (v < LINEAR)
        return (unsigned)v;
    unsigned power = 63u - (unsigned)__builtin_clzll(v);
    if (power > LAST_POWER)
        return METRIC_HISTOGRAM_BUCKETS - 1;
    unsigned sub = (unsigned)(v >> (power - SUB_BITS)) & ((1u << SUB_BITS) - 1);
    return LINEAR + ((power - FIRST_POWER) << SUB_BITS) + sub;
}
_Static_assert(LINEAR + ((LAST_POWER - FIRST_POWER + 1) << SUB_BITS) + 1 == METRIC_HISTOGRAM_BUCKETS,
               "all buckets");

uint64_t metric_bucket_limit(unsigned bucket)
{
    if (bucket < LINEAR)
        return bucket;
    if (bucket >= METRIC_HISTOGRAM_BUCKETS - 1)
        return UINT64_MAX;
    unsigned power = FIRST_POWER + ((bucket - LINEAR) >> SUB_BITS),
             sub = (bucket - LINEAR) & ((1u << SUB_BITS) - 1);
    return (1ull << power) + ((uint64_t)(sub + 1) << (power - SUB_BITS)) - 1;
}

void metric_record(struct metric_set *s, unsigned index, uint64_t value)
{
    struct metric_histogram *h = atomic_load_explicit(&s->values[index].histogram, memory_order_acquire);
    if (!h) {
        struct metric_histogram *fresh = mem_zalloc(sizeof *fresh);
        if (atomic_compare_exchange_strong(&s->values[index].histogram, &h, fresh))
            h = fresh;
        else
            mem_free(fresh);
    }
    atomic_fetch_add_explicit(&h->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum, value, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->buckets[bucket_of(value)], 1, memory_order_relaxed);
    uint64_t max = atomic_load_explicit(&h->max, memory_order_relaxed);
    while (value > max && !atomic_compare_exchange_weak_explicit(&h->max, &max, value, memory_order_relaxed,
                                                                 memory_order_relaxed))
        ;
}

uint64_t metric_quantile(const struct metric_histogram *h, double q)
{
    uint64_t total = 0, seen = 0;
    for (unsigned i = 0; i < METRIC_HISTOGRAM_BUCKETS; i++)
        total += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
    if (!total)
        return 0;
    uint64_t max = atomic_load_explicit(&h->max, memory_order_relaxed);
    double want = q * (double)total;
    for (unsigned i = 0; i < METRIC_HISTOGRAM_BUCKETS; i++) {
        seen += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        if (seen && (double)seen >= want) {
            uint64_t limit = metric_bucket_limit(i);
            return limit < max ? limit : max;
        }
    }
    return max;
}

void metrics_each(struct metrics *m,
                  void (*each)(void *data, const struct metric_def *def, const char *labels, int64_t number,
                               const struct metric_histogram *h),
                  void *data)
{
    mutex_lock(&m->mutex);
    LIST_FOR_EACH(it, &m->sets)
    {
        struct metric_set *s = LIST_ENTRY(it, struct metric_set, link);
        for (unsigned i = 0; i < s->count; i++) {
            if (s->defs[i].kind == METRIC_HISTOGRAM)
                each(data, &s->defs[i], s->labels, 0, atomic_load(&s->values[i].histogram));
            else
                each(data, &s->defs[i], s->labels, metric_get(s, i), NULL);
        }
    }
    mutex_unlock(&m->mutex);
}
