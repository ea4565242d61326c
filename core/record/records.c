// SPDX-License-Identifier: Apache-2.0
// Iterates the records of a batch, in place or through a window that grows to the largest record.
#include "core/record/batch.h"

#include "core/record/source.h"

void record_iter_init(struct record_iter *it, const uint8_t *batch, struct codec_cache *cache,
                      const struct record_limits *limits)
{
    uint64_t unpacked =
        limits && limits->unpacked_bytes_max ? limits->unpacked_bytes_max : RECORD_UNPACKED_BYTES_MAX;
    it->batch = batch;
    it->left = batch_count(batch);
    it->record_bytes_max = limits && limits->record_bytes_max ? limits->record_bytes_max : RECORD_BYTES_MAX;
    it->err = source_open(&it->source, batch, cache, unpacked);
}

void record_iter_fini(struct record_iter *it)
{
    source_close(&it->source);
}

static int fail(struct record_iter *it, int rc, struct errmsg *msg)
{
    it->err = rc;
    const char *why = rc == ERR_TOO_LARGE     ? "unpacks to more than is allowed"
                      : rc == ERR_UNSUPPORTED ? "has an unknown codec"
                                              : "is damaged or cut off";
    return err_set(msg, rc, "record %d of the batch at offset %lld %s", batch_count(it->batch) - it->left,
                   (long long)batch_base_offset(it->batch), why);
}

static void fill(const struct record_iter *it, const struct record_head *head, const uint8_t *start,
                 struct record *out)
{
    const uint8_t *b = it->batch;
    out->attributes = (int8_t)start[head->attributes_at];
    out->offset_delta = head->offset_delta;
    out->offset = batch_base_offset(b) + head->offset_delta;
    out->timestamp = batch_is_append_time(b)
                         ? batch_max_timestamp(b)
                         : (time_ms)((uint64_t)batch_base_timestamp(b) + (uint64_t)head->timestamp_delta);
    int32_t base = batch_base_sequence(b);
    out->sequence = base < 0 ? -1 : (int32_t)(((int64_t)base + head->offset_delta) & INT32_MAX);
    out->key = head->key_bytes < 0 ? SLICE_NULL : slice_of(start + head->bytes, (size_t)head->key_bytes);
    out->size = (size_t)head->length_bytes + (size_t)head->body;
}

int record_iter_next(struct record_iter *it, struct record *out, struct errmsg *msg)
{
    struct source *s = &it->source;
    if (it->err) {
        return it->err == ERR_NOTFOUND ? it->err : fail(it, it->err, msg);
    }
    int rc;
    if (it->left <= 0) {
        rc = source_expect_end(s);
        if (rc) {
            return fail(it, rc, msg);
        }
        return it->err = ERR_NOTFOUND;
    }
    struct record_head head;
    rc = source_need(s, RECORD_HEAD_BYTES_MAX);
    if (!rc) {
        rc = record_head_parse(s->p, s->end, &head);
    }
    if (rc) {
        return fail(it, rc, msg);
    }
    size_t size = (size_t)head.length_bytes + (size_t)head.body;
    if (size > it->record_bytes_max) {
        return fail(it, s->reader ? ERR_TOO_LARGE : source_have(s) < size ? ERR_CORRUPT : ERR_TOO_LARGE, msg);
    }
    rc = source_fill(s, size, true);
    if (!rc) {
        rc = source_have(s) < size ? ERR_CORRUPT
                                   : record_tail_check(s->p + head.bytes, s->p + size, head.key_bytes,
                                                       &out->value, &out->headers, &out->headers_count);
    }
    if (rc) {
        return fail(it, rc, msg);
    }
    fill(it, &head, s->p, out);
    s->p += size;
    it->left--;
    return 0;
}
