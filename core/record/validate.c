// SPDX-License-Identifier: Apache-2.0
// Produce validation: header, checksum, one walk over the records, then stamps or a rewrite.
//
// Order of the checks and the error of each are Apache Kafka's (ProduceRequest.validateRecords,
// UnifiedLog.analyzeAndValidateRecords, LogValidator), so that clients see the same codes.
#include "core/record/validate.h"

#include <stdio.h>

#include "core/base/bytes.h"
#include "core/record/source.h"
#include "core/record/walk.h"

#define UNPACKED_FACTOR 128
#define UNPACKED_BYTES_MIN (128ULL << 20)

uint64_t validate_unpacked_max(uint32_t batch_bytes_max)
{
    uint64_t limit = (uint64_t)batch_bytes_max * UNPACKED_FACTOR;
    return limit < UNPACKED_BYTES_MIN ? UNPACKED_BYTES_MIN : limit;
}

static void refuse(struct validate_result *out, enum validate_verdict verdict, const char *why)
{
    out->verdict = verdict;
    (void)err_set(&out->msg, 0, "%s", why);
}

// ---- the header

static bool check_header(const uint8_t *data, size_t len, const struct validate_rules *rules,
                         struct validate_result *out)
{
    size_t size;
    if (len < BATCH_OVERHEAD_BYTES) {
        refuse(out, VALIDATE_BAD_RECORD,
               "a produce request must have exactly one record batch for a partition");
        return false;
    }
    int rc = batch_parse(slice_of(data, len), &size, &out->msg);
    if (rc == ERR_UNSUPPORTED) {
        bool old = data[16] < BATCH_MAGIC;
        refuse(out, old ? VALIDATE_BAD_RECORD : VALIDATE_CORRUPT,
               "a produce request may only hold record batches of magic 2");
        return false;
    }
    if (rc == ERR_AGAIN) {
        out->verdict = VALIDATE_BAD_RECORD;
        return false;
    }
    if (size == 0) {
        out->verdict = VALIDATE_CORRUPT;
        return false;
    }
    out->size = size;
    if (size > rules->batch_bytes_max) {
        out->verdict = VALIDATE_TOO_LARGE;
        (void)err_set(&out->msg, 0, "the record batch has %zu bytes, max.message.bytes allows %u", size,
                      rules->batch_bytes_max);
        return false;
    }
    if (batch_check_crc(data, &out->msg)) {
        out->verdict = VALIDATE_CORRUPT;
        return false;
    }
    return true;
}

// What the header says, once its checksum is known to be good.
static bool check_claims(const uint8_t *data, size_t len, const struct validate_rules *rules,
                         struct validate_result *out)
{
    enum codec codec = batch_codec(data);
    if (len != batch_size(data)) {
        refuse(out, VALIDATE_BAD_RECORD,
               "a produce request must have exactly one record batch for a partition");
    } else if ((unsigned)codec >= CODEC_COUNT) {
        refuse(out, VALIDATE_UNSUPPORTED_CODEC, "unknown compression type");
    } else if (codec == CODEC_ZSTD && !rules->zstd_allowed) {
        refuse(out, VALIDATE_UNSUPPORTED_CODEC, "zstd needs version 7 or later of the produce request");
    } else if (batch_base_offset(data) != 0) {
        refuse(out, VALIDATE_BAD_RECORD, "the base offset of a produced batch must be 0");
    } else if (batch_count(data) <= 0) {
        refuse(out, VALIDATE_BAD_RECORD, "the batch says that it has no records");
    } else if ((int64_t)batch_last_offset_delta(data) + 1 != batch_count(data)) {
        refuse(out, VALIDATE_BAD_RECORD, "last offset and count of records of the batch do not agree");
    } else if (batch_is_control(data)) {
        refuse(out, VALIDATE_BAD_RECORD, "clients may not write control records");
    } else {
        out->count = batch_count(data);
        return true;
    }
    return false;
}

// ---- the records

struct walk {
    const struct validate_rules *rules; // what the topic asks
    struct validate_result *out;        // what was found
    time_ms earliest, latest;           // timestamps allowed
    time_ms base, fixed;                // base timestamp; timestamp of all with append time
    bool append_time;                   // the batch's own type bit
    bool gaps;                          // inner offsets are not 0..n-1
};

static void blame(struct walk *w, int32_t index, enum validate_reason reason, time_ms timestamp)
{
    struct validate_result *out = w->out;
    if (out->errors_count < VALIDATE_RECORD_ERRORS_MAX) {
        out->errors[out->errors_count] = (struct validate_record_error){index, reason, timestamp};
    }
    out->errors_count++;
}

static void judge(struct walk *w, int32_t index, const struct record_head *head)
{
    time_ms timestamp =
        w->append_time ? w->fixed : (time_ms)((uint64_t)w->base + (uint64_t)head->timestamp_delta);
    if (head->offset_delta != index) {
        w->gaps = true;
    }
    if (w->rules->compacted && head->key_bytes < 0) {
        blame(w, index, VALIDATE_REASON_NULL_KEY, timestamp);
    } else if (w->rules->timestamp == TIMESTAMP_CREATE && timestamp != -1) {
        if (timestamp < w->earliest || timestamp > w->latest) {
            blame(w, index, VALIDATE_REASON_TIMESTAMP, timestamp);
        }
    } else if (w->append_time) {
        blame(w, index, VALIDATE_REASON_APPEND_TIME, timestamp);
    }
    if (timestamp > w->out->max_timestamp) {
        w->out->max_timestamp = timestamp;
        w->out->max_timestamp_delta = index;
    }
}

static int stream_varint(struct source *s, int64_t *left, int32_t *value)
{
    int rc = source_need(s, VARINT_BYTES_MAX);
    if (rc) {
        return rc;
    }
    size_t n = varint_read(s->p, source_have(s), value);
    s->p += n;
    *left -= (int64_t)n;
    return n == 0 || *left < 0 ? ERR_CORRUPT : 0;
}

static int stream_bytes(struct source *s, int64_t *left, bool nullable)
{
    int32_t len;
    int rc = stream_varint(s, left, &len);
    if (rc || len == -1) {
        return rc ? rc : nullable ? 0 : ERR_CORRUPT;
    }
    if (len < 0 || len > *left) {
        return ERR_CORRUPT;
    }
    *left -= len;
    return source_skip(s, (uint64_t)len);
}

// Checks a record that is larger than the window, without ever having it in memory.
static int check_large(struct source *s, const struct record_head *head)
{
    int64_t left = head->body - (head->bytes - head->length_bytes);
    if (head->key_bytes > left || left < 0) {
        return ERR_CORRUPT;
    }
    s->p += head->bytes;
    if (head->key_bytes > 0) {
        left -= head->key_bytes;
        int rc = source_skip(s, (uint64_t)head->key_bytes);
        if (rc) {
            return rc;
        }
    }
    int rc = stream_bytes(s, &left, true);
    int32_t headers = 0;
    if (!rc) {
        rc = stream_varint(s, &left, &headers);
    }
    if (!rc && (headers < 0 || headers > left / 2)) {
        rc = ERR_CORRUPT;
    }
    for (int32_t i = 0; !rc && i < headers; i++) {
        rc = stream_bytes(s, &left, false);
        rc = rc ? rc : stream_bytes(s, &left, true);
    }
    return rc ? rc : left == 0 ? 0 : ERR_CORRUPT;
}

static int walk_records(struct walk *w, struct source *s)
{
    for (int32_t i = 0; i < w->out->count; i++) {
        struct record_head head;
        int rc = source_need(s, RECORD_HEAD_BYTES_MAX);
        rc = rc ? rc : record_head_parse(s->p, s->end, &head);
        if (rc) {
            return rc;
        }
        judge(w, i, &head);
        size_t size = (size_t)head.length_bytes + (size_t)head.body;
        rc = source_need(s, size < CODEC_WINDOW_BYTES ? size : CODEC_WINDOW_BYTES);
        if (rc) {
            return rc;
        }
        if (source_have(s) >= size) {
            rc = record_tail_check(s->p + head.bytes, s->p + size, head.key_bytes, NULL, NULL, NULL);
            s->p += size;
        } else {
            rc = s->reader ? check_large(s, &head) : ERR_CORRUPT;
        }
        if (rc) {
            return rc;
        }
    }
    return source_expect_end(s);
}

static bool check_records(const uint8_t *data, struct walk *w, struct codec_cache *cache,
                          uint64_t unpacked_max)
{
    struct source s;
    int rc = source_open(&s, data, cache, unpacked_max);
    if (!rc) {
        rc = walk_records(w, &s);
        source_close(&s);
    }
    if (rc == ERR_TOO_LARGE) {
        refuse(w->out, VALIDATE_TOO_LARGE, "the batch unpacks to more than the server takes");
    } else if (rc) {
        refuse(w->out, VALIDATE_BAD_RECORD,
               "records of the batch are damaged, or their number is not what its header says");
    } else if (w->out->errors_count > 0) {
        bool time = false;
        int32_t listed = w->out->errors_count < VALIDATE_RECORD_ERRORS_MAX ? w->out->errors_count
                                                                           : VALIDATE_RECORD_ERRORS_MAX;
        for (int32_t i = 0; i < listed; i++) {
            time = time || w->out->errors[i].reason != VALIDATE_REASON_NULL_KEY;
        }
        if (time) {
            refuse(w->out, VALIDATE_BAD_TIMESTAMP,
                   "One or more records have been rejected due to invalid timestamp");
        } else {
            w->out->verdict = VALIDATE_BAD_RECORD;
            (void)err_set(&w->out->msg, 0,
                          "One or more records have been rejected due to %d record errors in total",
                          w->out->errors_count);
        }
    }
    return w->out->verdict == VALIDATE_OK;
}

// ---- stamps

// Sets type bit and max timestamp where they are not so already; a new checksum only then.
static void stamp(uint8_t *b, bool append_time, time_ms max_timestamp, bool force)
{
    int16_t attributes = batch_attributes(b);
    int16_t wanted =
        (int16_t)(append_time ? attributes | BATCH_APPEND_TIME : attributes & ~BATCH_APPEND_TIME);
    if (force || wanted != attributes || batch_max_timestamp(b) != max_timestamp) {
        batch_set_attributes(b, wanted);
        batch_set_max_timestamp(b, max_timestamp);
        batch_seal(b);
    }
}

void validate_produce(uint8_t *data, size_t len, const struct validate_rules *rules,
                      struct codec_cache *cache, struct validate_result *out)
{
    out->verdict = VALIDATE_OK;
    out->msg.text[0] = '\0';
    out->count = 0;
    out->max_timestamp = -1;
    out->max_timestamp_delta = -1;
    out->rewritten = NULL;
    out->size = 0;
    out->errors_count = 0;
    if (!check_header(data, len, rules, out) || !check_claims(data, len, rules, out)) {
        return;
    }
    struct walk w = {.rules = rules, .out = out, .append_time = batch_is_append_time(data)};
    w.base = batch_base_timestamp(data);
    w.fixed = batch_max_timestamp(data);
    if (__builtin_sub_overflow(rules->now, rules->before_ms_max, &w.earliest)) {
        w.earliest = INT64_MIN;
    }
    if (__builtin_add_overflow(rules->now, rules->after_ms_max, &w.latest)) {
        w.latest = INT64_MAX;
    }
    uint64_t unpacked_max =
        rules->unpacked_bytes_max ? rules->unpacked_bytes_max : validate_unpacked_max(rules->batch_bytes_max);
    if (!check_records(data, &w, cache, unpacked_max)) {
        return;
    }
    bool append_time = rules->timestamp == TIMESTAMP_APPEND;
    if (append_time) {
        out->max_timestamp = rules->now;
        out->max_timestamp_delta = 0;
    }
    enum codec to = rules->producer_codec ? batch_codec(data) : rules->codec;
    if (to == batch_codec(data) && !w.gaps) {
        stamp(data, append_time, out->max_timestamp, false);
        return;
    }
    int rc = rewrite_batch(data, to, rules->level, rules->batch_bytes_max, unpacked_max, cache,
                           &out->rewritten, &out->size);
    if (rc == ERR_TOO_LARGE) {
        refuse(out, VALIDATE_TOO_LARGE,
               "the batch is larger than max.message.bytes once it has the topic's compression.type");
    } else if (rc) {
        refuse(out, VALIDATE_BAD_RECORD, "records of the batch are damaged");
    } else {
        stamp(out->rewritten->data, append_time, out->max_timestamp, true);
    }
}

void validate_error_text(const struct validate_record_error *e, const struct validate_rules *rules, char *buf,
                         size_t size)
{
    time_ms earliest, latest;
    switch (e->reason) {
    case VALIDATE_REASON_NULL_KEY:
        (void)snprintf(buf, size, "Compacted topic cannot accept message without key.");
        break;
    case VALIDATE_REASON_TIMESTAMP:
        if (__builtin_sub_overflow(rules->now, rules->before_ms_max, &earliest)) {
            earliest = INT64_MIN;
        }
        if (__builtin_add_overflow(rules->now, rules->after_ms_max, &latest)) {
            latest = INT64_MAX;
        }
        (void)snprintf(
            buf, size,
            "Timestamp %lld of message with offset %d is out of range. The timestamp should be within "
            "[%lld, %lld]",
            (long long)e->timestamp, e->index, (long long)earliest, (long long)latest);
        break;
    default:
        (void)snprintf(
            buf, size,
            "Invalid timestamp type in message with offset %d. Producer should not set timestamp type "
            "to LogAppendTime.",
            e->index);
        break;
    }
}
