// SPDX-License-Identifier: Apache-2.0
// Operations of a segment's sparse index.
#include "storage/sparse_index.h"
#include "core/base/bytes.h"
#include "core/base/mem.h"

_Static_assert(OFFSET_INDEX_ENTRY_BYTES == 4 + 4, "entry of .index");
_Static_assert(TIME_INDEX_ENTRY_BYTES == 8 + 4, "entry of .timeindex");

void sparse_index_init(struct sparse_index *ix)
{
    *ix = (struct sparse_index){.max_timestamp = -1, .max_timestamp_offset = -1};
}

void sparse_index_fini(struct sparse_index *ix)
{
    mem_free(ix->offsets);
    mem_free(ix->times);
    sparse_index_init(ix);
}

void sparse_index_clear(struct sparse_index *ix)
{
    ix->offsets_count = ix->times_count = 0;
    ix->bytes_since = 0;
    ix->max_timestamp = ix->max_timestamp_offset = -1;
}

static void push_offset(struct sparse_index *ix, uint32_t offset, uint32_t pos)
{
    if (ix->offsets_count == ix->offsets_cap) {
        ix->offsets_cap = ix->offsets_cap ? ix->offsets_cap * 2 : 8;
        ix->offsets = mem_realloc(ix->offsets, ix->offsets_cap * sizeof(*ix->offsets));
    }
    ix->offsets[ix->offsets_count++] = (struct offset_entry){offset, pos};
}

static void push_time(struct sparse_index *ix, time_ms timestamp, uint32_t offset)
{
    if (ix->times_count && ix->times[ix->times_count - 1].timestamp >= timestamp)
        return;
    if (timestamp < 0)
        return; // no timestamp at all
    if (ix->times_count == ix->times_cap) {
        ix->times_cap = ix->times_cap ? ix->times_cap * 2 : 8;
        ix->times = mem_realloc(ix->times, ix->times_cap * sizeof(*ix->times));
    }
    ix->times[ix->times_count++] = (struct time_entry){timestamp, offset};
}

void sparse_index_note(struct sparse_index *ix, log_offset base, int64_t interval, uint64_t pos, size_t size,
                       log_offset last_offset, time_ms max_timestamp)
{
    if (max_timestamp > ix->max_timestamp) {
        ix->max_timestamp = max_timestamp;
        ix->max_timestamp_offset = last_offset;
    }
    if (ix->bytes_since > interval) {
        push_offset(ix, (uint32_t)(last_offset - base), (uint32_t)pos);
        push_time(ix, ix->max_timestamp, (uint32_t)(ix->max_timestamp_offset - base));
        ix->bytes_since = 0;
    }
    ix->bytes_since += (int64_t)size;
}

void sparse_index_close(struct sparse_index *ix, log_offset base)
{
    if (ix->max_timestamp_offset >= 0)
        push_time(ix, ix->max_timestamp, (uint32_t)(ix->max_timestamp_offset - base));
}

void sparse_index_truncate(struct sparse_index *ix, uint32_t offset)
{
    while (ix->offsets_count && ix->offsets[ix->offsets_count - 1].offset >= offset)
        ix->offsets_count--;
    while (ix->times_count && ix->times[ix->times_count - 1].offset >= offset)
        ix->times_count--;
}

bool sparse_index_full(const struct sparse_index *ix, int64_t bytes_max)
{
    return ix->offsets_count >= (uint64_t)bytes_max / OFFSET_INDEX_ENTRY_BYTES ||
           ix->times_count + 1 >= (uint64_t)bytes_max / TIME_INDEX_ENTRY_BYTES; // one is kept for the roll
}

uint32_t sparse_index_position(const struct sparse_index *ix, uint32_t offset)
{
    unsigned lo = 0, hi = ix->offsets_count; // first entry above
    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;
        if (ix->offsets[mid].offset <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? ix->offsets[lo - 1].pos : 0;
}

uint32_t sparse_index_before(const struct sparse_index *ix, uint64_t pos)
{
    unsigned lo = 0, hi = ix->offsets_count;
    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;
        if (ix->offsets[mid].pos <= pos)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? ix->offsets[lo - 1].pos : 0;
}

uint32_t sparse_index_time(const struct sparse_index *ix, time_ms timestamp)
{
    unsigned lo = 0, hi = ix->times_count;
    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;
        if (ix->times[mid].timestamp < timestamp)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? ix->times[lo - 1].offset : 0;
}

// ---- files ------------------------------------------------------------------------------------------------
void sparse_index_encode_offsets(const struct sparse_index *ix, uint8_t **out, size_t *len)
{
    *len = (size_t)ix->offsets_count * OFFSET_INDEX_ENTRY_BYTES;
    *out = mem_alloc(*len ? *len : 1);
    for (unsigned i = 0; i < ix->offsets_count; i++) {
        bytes_store_be32(*out + (size_t)i * OFFSET_INDEX_ENTRY_BYTES, ix->offsets[i].offset);
        bytes_store_be32(*out + (size_t)i * OFFSET_INDEX_ENTRY_BYTES + 4, ix->offsets[i].pos);
    }
}

void sparse_index_encode_times(const struct sparse_index *ix, uint8_t **out, size_t *len)
{
    *len = (size_t)ix->times_count * TIME_INDEX_ENTRY_BYTES;
    *out = mem_alloc(*len ? *len : 1);
    for (unsigned i = 0; i < ix->times_count; i++) {
        bytes_store_be64(*out + (size_t)i * TIME_INDEX_ENTRY_BYTES, (uint64_t)ix->times[i].timestamp);
        bytes_store_be32(*out + (size_t)i * TIME_INDEX_ENTRY_BYTES + 8, ix->times[i].offset);
    }
}

// Are all bytes from here on zero? Then this is the unused part of a preallocated file.
static bool rest_is_zero(struct slice bytes, size_t from)
{
    for (size_t i = from; i < bytes.len; i++)
        if (bytes.data[i])
            return false;
    return true;
}

int sparse_index_decode_offsets(struct sparse_index *ix, struct slice bytes, uint64_t log_size,
                                struct errmsg *msg)
{
    ix->offsets_count = 0;
    if (bytes.len % OFFSET_INDEX_ENTRY_BYTES)
        return err_set(msg, ERR_CORRUPT, "offset index of %zu bytes: not whole entries", bytes.len);
    for (size_t at = 0; at < bytes.len; at += OFFSET_INDEX_ENTRY_BYTES) {
        uint32_t offset = bytes_load_be32(bytes.data + at), pos = bytes_load_be32(bytes.data + at + 4);
        struct offset_entry last = {0, 0};
        if (ix->offsets_count)
            last = ix->offsets[ix->offsets_count - 1];
        if (offset > INT32_MAX || pos >= log_size || pos <= last.pos ||
            (ix->offsets_count && offset <= last.offset)) {
            if (offset == 0 && pos == 0 && rest_is_zero(bytes, at))
                return 0;
            ix->offsets_count = 0;
            return err_set(msg, ERR_CORRUPT, "offset index: entry %zu does not rise",
                           at / OFFSET_INDEX_ENTRY_BYTES);
        }
        push_offset(ix, offset, pos);
    }
    return 0;
}

int sparse_index_decode_times(struct sparse_index *ix, struct slice bytes, struct errmsg *msg)
{
    ix->times_count = 0;
    if (bytes.len % TIME_INDEX_ENTRY_BYTES)
        return err_set(msg, ERR_CORRUPT, "time index of %zu bytes: not whole entries", bytes.len);
    for (size_t at = 0; at < bytes.len; at += TIME_INDEX_ENTRY_BYTES) {
        time_ms timestamp = (time_ms)bytes_load_be64(bytes.data + at);
        uint32_t offset = bytes_load_be32(bytes.data + at + 8);
        if (timestamp == 0 && offset == 0 && rest_is_zero(bytes, at))
            return 0;
        const struct time_entry *last = ix->times_count ? &ix->times[ix->times_count - 1] : NULL;
        if (offset > INT32_MAX || timestamp < 0 ||
            (last && (timestamp <= last->timestamp || offset <= last->offset))) {
            ix->times_count = 0;
            return err_set(msg, ERR_CORRUPT, "time index: entry %zu does not rise",
                           at / TIME_INDEX_ENTRY_BYTES);
        }
        push_time(ix, timestamp, offset);
    }
    return 0;
}
