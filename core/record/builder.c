// SPDX-License-Identifier: Apache-2.0
// Builds record batches, control batches and transaction markers.
#include "core/record/builder.h"

#include "core/base/assert.h"
#include "core/base/bytes.h"
#include "core/base/mem.h"

#define BUILDER_BYTES_FIRST 512 // room that a new batch starts with: header and a small record or two

void builder_init(struct builder *b, const struct builder_options *opts)
{
    *b = (struct builder){.data = mem_alloc(BUILDER_BYTES_FIRST), .cap = BUILDER_BYTES_FIRST};
    builder_reset(b, opts);
}

void builder_reset(struct builder *b, const struct builder_options *opts)
{
    b->opts = *opts;
    b->len = BATCH_HEADER_BYTES;
    b->count = 0;
    b->last_delta = -1;
    b->base_timestamp = -1;
    b->max_timestamp = -1;
}

void builder_fini(struct builder *b)
{
    mem_free(b->data);
    mem_free(b->packed);
    b->data = b->packed = NULL;
}

static void room(uint8_t **data, size_t *cap, size_t len, size_t more)
{
    if (more > *cap - len) {
        size_t bigger = *cap * 2 > len + more ? *cap * 2 : len + more;
        *data = mem_realloc(*data, bigger);
        *cap = bigger;
    }
}

size_t builder_record_bound(struct slice key, struct slice value, const struct record_header *headers,
                            int32_t headers_count)
{
    size_t n = 40 + key.len + value.len;
    for (int32_t i = 0; i < headers_count; i++) {
        n += 2 * VARINT_BYTES_MAX + headers[i].key.len + headers[i].value.len;
    }
    return n;
}

static size_t put_bytes(uint8_t *p, struct slice s)
{
    if (s.data == NULL) {
        return varint_write(p, -1);
    }
    size_t n = varint_write(p, (int32_t)s.len);
    memcpy(p + n, s.data, s.len);
    return n + s.len;
}

static size_t bytes_size(struct slice s)
{
    return s.data == NULL ? 1 : varint_size((int32_t)s.len) + s.len;
}

void builder_append_at(struct builder *b, int32_t offset_delta, time_ms timestamp, struct slice key,
                       struct slice value, const struct record_header *headers, int32_t headers_count)
{
    MUST(offset_delta > b->last_delta);
    MUST(key.len <= INT32_MAX / 4 && value.len <= INT32_MAX / 4);
    if (b->opts.append_time) {
        timestamp = b->opts.append_timestamp;
    }
    if (b->count == 0) {
        b->base_timestamp = timestamp;
    }
    int64_t delta = timestamp - b->base_timestamp;
    size_t body = 1 + varlong_size(delta) + varint_size(offset_delta) + bytes_size(key) + bytes_size(value) +
                  varint_size(headers_count);
    for (int32_t i = 0; i < headers_count; i++) {
        body += bytes_size(headers[i].key) + bytes_size(headers[i].value);
    }
    room(&b->data, &b->cap, b->len, body + VARINT_BYTES_MAX);
    uint8_t *p = b->data + b->len;
    p += varint_write(p, (int32_t)body);
    *p++ = 0;
    p += varlong_write(p, delta);
    p += varint_write(p, offset_delta);
    p += put_bytes(p, key);
    p += put_bytes(p, value);
    p += varint_write(p, headers_count);
    for (int32_t i = 0; i < headers_count; i++) {
        p += put_bytes(p, headers[i].key);
        p += put_bytes(p, headers[i].value);
    }
    b->len = (size_t)(p - b->data);
    b->count++;
    b->last_delta = offset_delta;
    b->max_timestamp = timestamp > b->max_timestamp ? timestamp : b->max_timestamp;
}

void builder_append(struct builder *b, time_ms timestamp, struct slice key, struct slice value,
                    const struct record_header *headers, int32_t headers_count)
{
    builder_append_at(b, b->last_delta + 1, timestamp, key, value, headers, headers_count);
}

// ---- the end of a batch

struct builder_sink {
    struct codec_sink sink; // first, so that it can be cast back
    struct builder *b;      // whose `packed` grows
};

static int sink_write(struct codec_sink *sink, const uint8_t *data, size_t len)
{
    struct builder *b = ((struct builder_sink *)sink)->b;
    room(&b->packed, &b->packed_cap, b->packed_len, len);
    memcpy(b->packed + b->packed_len, data, len);
    b->packed_len += len;
    return 0;
}

static void pack(struct builder *b)
{
    if (!b->packed) {
        b->packed_cap = b->len + 256;
        b->packed = mem_alloc(b->packed_cap);
    }
    b->packed_len = 0;
    struct builder_sink sink = {.sink = {sink_write}, .b = b};
    (void)sink_write(&sink.sink, b->data, BATCH_HEADER_BYTES); // room; filled in below
    struct codec_writer *w = codec_writer_open(b->opts.codec, b->opts.level, &sink.sink, NULL);
    MUST(w != NULL);
    (void)codec_writer_write(w, b->data + BATCH_HEADER_BYTES, b->len - BATCH_HEADER_BYTES);
    (void)codec_writer_finish(w);
    codec_writer_close(w);
}

static void put_header(const struct builder *b, uint8_t *h, size_t size)
{
    const struct builder_options *o = &b->opts;
    int attributes = (int)o->codec;
    attributes |= o->append_time ? BATCH_APPEND_TIME : 0;
    attributes |= o->transactional ? BATCH_TRANSACTIONAL : 0;
    attributes |= o->control ? BATCH_CONTROL : 0;
    batch_set_base_offset(h, o->base_offset);
    batch_set_length(h, (int32_t)(size - BATCH_OVERHEAD_BYTES));
    batch_set_leader_epoch(h, o->epoch);
    batch_set_magic(h, BATCH_MAGIC);
    batch_set_attributes(h, (int16_t)attributes);
    batch_set_last_offset_delta(h, b->last_delta < 0 ? 0 : b->last_delta);
    batch_set_base_timestamp(h, b->base_timestamp);
    batch_set_max_timestamp(h, b->max_timestamp);
    batch_set_producer_id(h, o->producer_id);
    batch_set_producer_epoch(h, o->producer_epoch);
    batch_set_base_sequence(h, o->base_sequence);
    batch_set_count(h, b->count);
    batch_seal(h);
}

int builder_finish(struct builder *b, struct slice *out, struct errmsg *msg)
{
    uint8_t *data = b->data;
    size_t len = b->len;
    if (b->opts.codec != CODEC_NONE) {
        pack(b);
        data = b->packed;
        len = b->packed_len;
    }
    if (len > BATCH_BYTES_MAX) {
        return err_set(msg, ERR_TOO_LARGE, "a batch of %zu bytes is larger than the format allows", len);
    }
    put_header(b, data, len);
    *out = slice_of(data, len);
    return 0;
}

struct chunk *builder_finish_chunk(struct builder *b, size_t *size)
{
    struct slice batch;
    if (builder_finish(b, &batch, NULL)) {
        return NULL;
    }
    struct chunk *c = chunk_alloc(batch.len);
    memcpy(c->data, batch.data, batch.len);
    *size = batch.len;
    return c;
}

// ---- control records

#define CONTROL_KEY_BYTES 4 // version int16 (0), type int16

static const uint8_t control_keys[CONTROL_TYPE_COUNT][CONTROL_KEY_BYTES] = {
    {0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 0, 2}, {0, 0, 0, 3}, {0, 0, 0, 4}, {0, 0, 0, 5}, {0, 0, 0, 6},
};

enum control_type control_type_of(struct slice key)
{
    if (key.data == NULL || key.len < CONTROL_KEY_BYTES || (int16_t)bytes_load_be16(key.data) < 0) {
        return CONTROL_UNKNOWN;
    }
    uint16_t type = bytes_load_be16(key.data + 2);
    return type < CONTROL_TYPE_COUNT ? (enum control_type)type : CONTROL_UNKNOWN;
}

struct slice control_key(enum control_type type)
{
    MUST(type >= 0 && type < CONTROL_TYPE_COUNT);
    return slice_of(control_keys[type], CONTROL_KEY_BYTES);
}

void builder_append_control(struct builder *b, time_ms timestamp, enum control_type type, struct slice value)
{
    MUST(b->opts.control);
    builder_append(b, timestamp, control_key(type), value, NULL, 0);
}

int builder_marker(struct builder *b, const struct builder_options *opts, bool commit,
                   int32_t coordinator_epoch, time_ms timestamp, struct slice *out)
{
    struct builder_options o = *opts;
    o.codec = CODEC_NONE;
    o.append_time = false;
    o.transactional = true;
    o.control = true;
    o.base_sequence = -1;
    builder_reset(b, &o);
    uint8_t value[6] = {0}; // version int16 (0), coordinator epoch int32
    bytes_store_be32(value + 2, (uint32_t)coordinator_epoch);
    builder_append_control(b, timestamp, commit ? CONTROL_COMMIT : CONTROL_ABORT,
                           slice_of(value, sizeof value));
    return builder_finish(b, out, NULL);
}
