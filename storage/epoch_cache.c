// SPDX-License-Identifier: Apache-2.0
// Operations of the leader epoch cache.
#include "storage/epoch_cache.h"
#include "core/base/mem.h"
#include "storage/text_scan.h"

#define EPOCH_ENTRIES_MAX (1u << 24) // a file that announces more is damaged

void epoch_cache_init(struct epoch_cache *c)
{
    *c = (struct epoch_cache){NULL, 0, 0, false};
}

void epoch_cache_fini(struct epoch_cache *c)
{
    mem_free(c->list);
    epoch_cache_init(c);
}

void epoch_cache_clear(struct epoch_cache *c)
{
    c->dirty = c->dirty || c->count > 0;
    c->count = 0;
}

static void push(struct epoch_cache *c, leader_epoch epoch, log_offset start)
{
    if (c->count == c->cap) {
        c->cap = c->cap ? c->cap * 2 : 2;
        c->list = mem_realloc(c->list, c->cap * sizeof(*c->list));
    }
    c->list[c->count++] = (struct epoch_entry){epoch, start};
}

bool epoch_cache_assign(struct epoch_cache *c, leader_epoch epoch, log_offset start)
{
    if (epoch < 0 || start < 0)
        return false;
    if (c->count && c->list[c->count - 1].epoch == epoch && c->list[c->count - 1].start <= start)
        return false;
    while (c->count && (c->list[c->count - 1].epoch >= epoch || c->list[c->count - 1].start >= start))
        c->count--;
    push(c, epoch, start);
    c->dirty = true;
    return true;
}

static void remove_at(struct epoch_cache *c, unsigned i)
{
    memmove(c->list + i, c->list + i + 1, (c->count - i - 1) * sizeof(*c->list));
    c->count--;
    c->dirty = true;
}

bool epoch_cache_observe(struct epoch_cache *c, leader_epoch epoch, log_offset offset)
{
    if (epoch < 0)
        return false;
    unsigned i = c->count; // entries that begin at or below `offset`
    while (i && c->list[i - 1].start > offset)
        i--;
    bool changed = false;
    for (; i && c->list[i - 1].epoch > epoch; i--, changed = true)
        remove_at(c, i - 1);
    if (i && c->list[i - 1].epoch == epoch)
        return changed;
    while (i < c->count && c->list[i].epoch <= epoch)
        remove_at(c, i); // begins above, but is not newer
    if (i && c->list[i - 1].start == offset) {
        c->list[i - 1].epoch = epoch; // the epoch before has no record
        c->dirty = true;
        return true;
    }
    push(c, epoch, offset);
    memmove(c->list + i + 1, c->list + i, (c->count - 1 - i) * sizeof(*c->list));
    c->list[i] = (struct epoch_entry){epoch, offset};
    c->dirty = true;
    return true;
}

void epoch_cache_truncate_end(struct epoch_cache *c, log_offset end)
{
    while (c->count && c->list[c->count - 1].start >= end) {
        c->count--;
        c->dirty = true;
    }
}

void epoch_cache_truncate_start(struct epoch_cache *c, log_offset start)
{
    unsigned gone = 0; // entries that are followed by one that begins at or below `start`
    while (gone + 1 < c->count && c->list[gone + 1].start <= start)
        gone++;
    if (c->count == 0 || (gone == 0 && c->list[0].start >= start))
        return;
    memmove(c->list, c->list + gone, (c->count - gone) * sizeof(*c->list));
    c->count -= gone;
    if (c->list[0].start < start)
        c->list[0].start = start;
    c->dirty = true;
}

leader_epoch epoch_cache_last(const struct epoch_cache *c)
{
    return c->count ? c->list[c->count - 1].epoch : -1;
}

leader_epoch epoch_cache_at(const struct epoch_cache *c, log_offset offset)
{
    unsigned lo = 0, hi = c->count; // first entry that begins above `offset`
    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;
        if (c->list[mid].start <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? c->list[lo - 1].epoch : -1;
}

// Index of the first entry with an epoch above `epoch`.
static unsigned first_above(const struct epoch_cache *c, leader_epoch epoch)
{
    unsigned lo = 0, hi = c->count;
    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;
        if (c->list[mid].epoch <= epoch)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool epoch_cache_end_of(const struct epoch_cache *c, leader_epoch epoch, log_offset log_end,
                        leader_epoch *found, log_offset *end)
{
    unsigned above = first_above(c, epoch);
    *found = -1;
    *end = -1;
    if (epoch < 0 || above == 0)
        return false;
    *found = c->list[above - 1].epoch;
    *end = above < c->count ? c->list[above].start : log_end;
    return true;
}

log_offset epoch_cache_start_after(const struct epoch_cache *c, leader_epoch epoch)
{
    unsigned above = first_above(c, epoch);
    return above < c->count ? c->list[above].start : -1;
}

int epoch_cache_parse(struct epoch_cache *c, struct slice text, struct errmsg *msg)
{
    struct slice line;
    int64_t version, count;
    c->count = 0;
    c->dirty = false;
    if (!text_line(&text, &line) || !text_number(line, &version) || version != 0)
        return err_set(msg, ERR_CORRUPT, "line 1 is not the version 0");
    if (!text_line(&text, &line) || !text_number(line, &count) || count < 0 || count > EPOCH_ENTRIES_MAX)
        return err_set(msg, ERR_CORRUPT, "line 2 is no count of entries");
    int64_t seen = 0;
    while (text_line(&text, &line)) {
        int64_t epoch, start;
        struct slice more;
        seen++;
        bool good =
            text_word_number(&line, &epoch) && text_word_number(&line, &start) && !text_word(&line, &more) &&
            epoch >= 0 && epoch <= INT32_MAX && start >= 0 &&
            (c->count == 0 || (c->list[c->count - 1].epoch < epoch && c->list[c->count - 1].start < start));
        if (!good) {
            c->count = 0;
            return err_set(msg, ERR_CORRUPT, "line %lld is not a rising \"epoch start\"",
                           (long long)seen + 2);
        }
        push(c, (leader_epoch)epoch, start);
    }
    if (seen != count) {
        c->count = 0;
        return err_set(msg, ERR_CORRUPT, "%lld entries where %lld were announced", (long long)seen,
                       (long long)count);
    }
    return 0;
}

void epoch_cache_format(const struct epoch_cache *c, struct strbuf *out)
{
    strbuf_init(out);
    strbuf_printf(out, "0\n%u\n", c->count);
    for (unsigned i = 0; i < c->count; i++)
        strbuf_printf(out, "%d %lld\n", (int)c->list[i].epoch, (long long)c->list[i].start);
}
