// SPDX-License-Identifier: Apache-2.0
// Brings the bytes of a batch's records to hand, and takes single records apart.
#include "core/record/source.h"

#include "core/base/assert.h"
#include "core/base/bytes.h"
#include "core/base/mem.h"

int source_open(struct source *s, const uint8_t *batch, struct codec_cache *cache, uint64_t unpacked_max)
{
    const uint8_t *records = batch + BATCH_HEADER_BYTES;
    size_t len = batch_size(batch) - BATCH_HEADER_BYTES;
    enum codec codec = batch_codec(batch);
    *s = (struct source){.cache = cache, .unpacked_left = unpacked_max};
    if (codec == CODEC_NONE) {
        s->p = records;
        s->end = records + len;
        return 0;
    }
    s->reader = codec_reader_open(codec, slice_of(records, len), cache);
    if (!s->reader) {
        return ERR_UNSUPPORTED;
    }
    s->window = codec__window_take(cache);
    s->window_bytes = CODEC_WINDOW_BYTES;
    s->window_lent = true;
    s->p = s->end = s->window;
    return 0;
}

void source_close(struct source *s)
{
    codec_reader_close(s->reader);
    s->reader = NULL;
    if (s->window && s->window_lent) {
        codec__window_give(s->cache, s->window);
    } else {
        mem_free(s->window);
    }
    s->window = NULL;
}

// Doubles the window, keeping what is at hand.
static void window_grow(struct source *s)
{
    size_t have = source_have(s), bigger = s->window_bytes * 2;
    uint8_t *window = mem_alloc(bigger);
    memcpy(window, s->p, have);
    if (s->window_lent) {
        codec__window_give(s->cache, s->window);
        s->window_lent = false;
    } else {
        mem_free(s->window);
    }
    s->window = window;
    s->window_bytes = bigger;
    s->p = window;
    s->end = window + have;
}

int source_fill(struct source *s, size_t want, bool grow)
{
    while (s->reader && !s->ended && source_have(s) < want) {
        size_t have = source_have(s);
        if (s->p != s->window) {
            memmove(s->window, s->p, have);
            s->p = s->window;
            s->end = s->window + have;
        }
        if (have == s->window_bytes) {
            if (!grow) {
                return 0;
            }
            window_grow(s); // by what really came, never by what a length field claims
        }
        size_t got;
        int rc = codec_reader_read(s->reader, s->window + have, s->window_bytes - have, &got);
        if (rc) {
            return rc;
        }
        if (got > s->unpacked_left) {
            return ERR_TOO_LARGE;
        }
        s->unpacked_left -= got;
        s->end += got;
        s->ended = got == 0;
    }
    return 0;
}

int source_skip(struct source *s, uint64_t len)
{
    for (;;) {
        size_t have = source_have(s);
        size_t step = have < len ? have : (size_t)len;
        s->p += step;
        len -= step;
        if (len == 0) {
            return 0;
        }
        int rc = source_fill(s, 1, false);
        if (rc) {
            return rc;
        }
        if (source_have(s) == 0) {
            return ERR_CORRUPT;
        }
    }
}

int source_expect_end(struct source *s)
{
    int rc = source_need(s, 1);
    return rc ? rc : source_have(s) > 0 ? ERR_CORRUPT : 0;
}

// A zigzag number of 32 bits; most take one byte.
static inline bool take_varint(const uint8_t **p, const uint8_t *end, int32_t *out)
{
    if (*p < end && **p < 0x80) {
        *out = zigzag_decode32(*(*p)++);
        return true;
    }
    size_t n = varint_read(*p, (size_t)(end - *p), out);
    *p += n;
    return n > 0;
}

int record_head_parse(const uint8_t *p, const uint8_t *end, struct record_head *out)
{
    const uint8_t *q = p;
    if (!take_varint(&q, end, &out->body) || out->body < RECORD_BODY_BYTES_MIN) {
        return ERR_CORRUPT;
    }
    out->length_bytes = out->attributes_at = (uint8_t)(q - p);
    if ((size_t)out->body < (size_t)(end - q)) {
        end = q + out->body;
    }
    if (q == end) {
        return ERR_CORRUPT;
    }
    q++; // attributes
    size_t n = varlong_read(q, (size_t)(end - q), &out->timestamp_delta);
    if (n == 0) {
        return ERR_CORRUPT;
    }
    q += n;
    out->offset_at = (uint8_t)(q - p);
    if (!take_varint(&q, end, &out->offset_delta)) {
        return ERR_CORRUPT;
    }
    out->offset_end = (uint8_t)(q - p);
    if (!take_varint(&q, end, &out->key_bytes) || out->key_bytes < -1) {
        return ERR_CORRUPT;
    }
    out->bytes = (uint8_t)(q - p);
    return 0;
}

// Steps over a length field and as many bytes; -1 steps over nothing and is allowed only with `nullable`.
static inline bool take_bytes(const uint8_t **p, const uint8_t *end, bool nullable, struct slice *out)
{
    int32_t len;
    if (!take_varint(p, end, &len) || len < (nullable ? -1 : 0) || len > end - *p) {
        return false;
    }
    *out = len < 0 ? SLICE_NULL : slice_of(*p, (size_t)len);
    *p += len < 0 ? 0 : len;
    return true;
}

int record_tail_check(const uint8_t *key, const uint8_t *end, int32_t key_bytes, struct slice *value,
                      struct slice *headers, int32_t *headers_count)
{
    const uint8_t *p = key;
    struct slice part;
    int32_t count;
    if (key_bytes > end - p) {
        return ERR_CORRUPT;
    }
    p += key_bytes > 0 ? key_bytes : 0;
    if (!take_bytes(&p, end, true, &part)) {
        return ERR_CORRUPT;
    }
    if (value) {
        *value = part;
    }
    if (!take_varint(&p, end, &count) || count < 0 || count > (end - p) / 2) {
        return ERR_CORRUPT;
    }
    if (headers_count) {
        *headers_count = count;
        *headers = slice_of(p, (size_t)(end - p));
    }
    for (int32_t i = 0; i < count; i++) {
        if (!take_bytes(&p, end, false, &part) || !take_bytes(&p, end, true, &part)) {
            return ERR_CORRUPT;
        }
    }
    return p == end ? 0 : ERR_CORRUPT;
}

bool record_header_next(struct slice *headers, struct record_header *out)
{
    const uint8_t *p = headers->data, *end = p + headers->len;
    if (headers->len == 0 || !take_bytes(&p, end, false, &out->key) ||
        !take_bytes(&p, end, true, &out->value)) {
        return false;
    }
    *headers = slice_of(p, (size_t)(end - p));
    return true;
}
