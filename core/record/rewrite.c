// SPDX-License-Identifier: Apache-2.0
// Repacks a produced batch: another codec, or inner offsets without gaps. Streams both ways, so that memory
// is the window and the new batch.
#include "core/record/walk.h"

#include "core/base/bytes.h"
#include "core/record/source.h"

// Collects the new batch in a chunk that doubles up to the limit.
struct chunk_sink {
    struct codec_sink sink; // first, so that it can be cast back
    struct chunk *chunk;    // bytes so far
    size_t len, max;        // used, limit
};

static int chunk_sink_write(struct codec_sink *sink, const uint8_t *data, size_t len)
{
    struct chunk_sink *s = (struct chunk_sink *)sink;
    if (len > s->max - s->len) {
        return ERR_TOO_LARGE;
    }
    if (len > s->chunk->cap - s->len) {
        size_t bigger = (size_t)s->chunk->cap * 2;
        bigger = bigger > s->len + len ? bigger : s->len + len;
        struct chunk *c = chunk_alloc(bigger);
        memcpy(c->data, s->chunk->data, s->len);
        chunk_unref(s->chunk);
        s->chunk = c;
    }
    memcpy(s->chunk->data + s->len, data, len);
    s->len += len;
    return 0;
}

// Copies one record with another offset delta; its length changes with the delta's.
static int copy_record(struct source *s, struct codec_writer *w, int32_t index)
{
    struct record_head head;
    int rc = source_need(s, RECORD_HEAD_BYTES_MAX);
    rc = rc ? rc : record_head_parse(s->p, s->end, &head);
    if (rc) {
        return rc;
    }
    int32_t body = head.body - (head.offset_end - head.offset_at) + (int32_t)varint_size(index);
    uint8_t out[RECORD_HEAD_BYTES_MAX];
    size_t n = varint_write(out, body);
    size_t keep = head.offset_at - head.length_bytes; // attributes and timestamp delta
    memcpy(out + n, s->p + head.length_bytes, keep);
    n += keep;
    n += varint_write(out + n, index);
    rc = codec_writer_write(w, out, n);
    s->p += head.offset_end;
    uint64_t left = (uint64_t)head.body - (head.offset_end - head.length_bytes);
    while (!rc && left > 0) {
        rc = source_need(s, 1);
        size_t have = source_have(s);
        if (rc || have == 0) {
            return rc ? rc : ERR_CORRUPT;
        }
        size_t step = have < left ? have : (size_t)left;
        rc = codec_writer_write(w, s->p, step);
        s->p += step;
        left -= step;
    }
    return rc;
}

int rewrite_batch(const uint8_t *batch, enum codec to, int level, size_t batch_bytes_max,
                  uint64_t unpacked_max, struct codec_cache *cache, struct chunk **out, size_t *size)
{
    struct source s;
    int rc = source_open(&s, batch, cache, unpacked_max);
    if (rc) {
        return rc;
    }
    size_t first = batch_size(batch) + 256;
    struct chunk_sink sink = {
        .sink = {chunk_sink_write}, .chunk = chunk_alloc(first), .max = batch_bytes_max};
    rc = chunk_sink_write(&sink.sink, batch, BATCH_HEADER_BYTES);
    struct codec_writer *w = codec_writer_open(to, level, &sink.sink, cache);
    for (int32_t i = 0; !rc && i < batch_count(batch); i++) {
        rc = copy_record(&s, w, i);
    }
    rc = rc ? rc : codec_writer_finish(w);
    codec_writer_close(w);
    source_close(&s);
    if (rc) {
        chunk_unref(sink.chunk);
        return rc;
    }
    uint8_t *b = sink.chunk->data;
    batch_set_length(b, (int32_t)(sink.len - BATCH_OVERHEAD_BYTES));
    int16_t keep = batch_attributes(batch) & (BATCH_APPEND_TIME | BATCH_TRANSACTIONAL);
    batch_set_attributes(b, (int16_t)(keep | (int16_t)to));
    *out = sink.chunk;
    *size = sink.len;
    return 0;
}
