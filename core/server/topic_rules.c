// SPDX-License-Identifier: Apache-2.0
// Makes a topic's rules from the image and the broker's configuration.
#include "core/server/topic_rules.h"

#include <stdio.h>
#include "core/base/mem.h"
#include "core/metadata/image.h"

// A topic key, and the broker key that it falls back to.
struct rule_key {
    const char *topic;  // key of a topic's configuration
    const char *broker; // key of a broker's
};

// Value of the key: the topic's own, then this broker's, then that of all brokers; null where none is set.
static struct slice find_value(const struct image *image, struct slice broker, struct slice topic,
                               const struct rule_key *k)
{
    struct slice v = image_config_value(image, CONFIG_RESOURCE_TOPIC, topic, slice_str(k->topic));
    if (slice_is_null(v)) {
        v = image_config_value(image, CONFIG_RESOURCE_BROKER, broker, slice_str(k->broker));
    }
    if (slice_is_null(v)) {
        v = image_config_value(image, CONFIG_RESOURCE_BROKER, SLICE_LIT(""), slice_str(k->broker));
    }
    return v;
}

static bool parse_number(struct slice s, int64_t *out)
{
    size_t i = s.len > 0 && s.data[0] == '-';
    uint64_t n = 0;
    if (i == s.len || s.len > 20) {
        return false;
    }
    for (size_t k = i; k < s.len; k++) {
        if (s.data[k] < '0' || s.data[k] > '9' || n > (UINT64_C(1) << 63) / 10) {
            return false;
        }
        n = n * 10 + (uint64_t)(s.data[k] - '0');
    }
    if (n > INT64_MAX) {
        return false;
    }
    *out = i ? -(int64_t)n : (int64_t)n;
    return true;
}

static bool has_word(struct slice list, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= list.len; i++) {
        if (memcmp(list.data + i, word, n) == 0) {
            return true;
        }
    }
    return false;
}

struct topic_rules *topic_rules_make(const struct image *image, node_id broker, struct slice topic)
{
    struct log_config log;
    log_config_defaults(&log);
    int64_t batch_bytes = 1048588;
    int64_t min_isr = 1;
    int64_t before_ms = INT64_MAX;
    int64_t after_ms = 3600000;
    char id[16];
    int id_len = snprintf(id, sizeof id, "%d", broker);
    struct slice self = slice_of(id, (size_t)id_len);
    const struct {
        struct rule_key key;
        int64_t *value;
    } numbers[] = {
        {{"segment.bytes", "log.segment.bytes"}, &log.segment_bytes},
        {{"segment.ms", "log.roll.ms"}, &log.segment_ms},
        {{"segment.jitter.ms", "log.roll.jitter.ms"}, &log.segment_jitter_ms},
        {{"segment.index.bytes", "log.index.size.max.bytes"}, &log.index_bytes_max},
        {{"index.interval.bytes", "log.index.interval.bytes"}, &log.index_interval_bytes},
        {{"retention.bytes", "log.retention.bytes"}, &log.retention_bytes},
        {{"retention.ms", "log.retention.ms"}, &log.retention_ms},
        {{"flush.messages", "log.flush.interval.messages"}, &log.flush_messages},
        {{"flush.ms", "log.flush.interval.ms"}, &log.flush_ms},
        {{"file.delete.delay.ms", "log.segment.delete.delay.ms"}, &log.file_delete_delay_ms},
        {{"max.message.bytes", "message.max.bytes"}, &batch_bytes},
        {{"min.insync.replicas", "min.insync.replicas"}, &min_isr},
        {{"message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms"}, &before_ms},
        {{"message.timestamp.after.max.ms", "log.message.timestamp.after.max.ms"}, &after_ms},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct slice v = find_value(image, self, topic, &numbers[i].key);
        if (!slice_is_null(v)) {
            (void)parse_number(v, numbers[i].value); // validated before it was written
        }
    }
    struct slice cleanup =
        find_value(image, self, topic, &(struct rule_key){"cleanup.policy", "log.cleanup.policy"});
    if (!slice_is_null(cleanup)) {
        log.cleanup_delete = has_word(cleanup, "delete");
        log.cleanup_compact = has_word(cleanup, "compact");
    }
    struct slice stamp = find_value(
        image, self, topic, &(struct rule_key){"message.timestamp.type", "log.message.timestamp.type"});
    struct slice codec =
        find_value(image, self, topic, &(struct rule_key){"compression.type", "compression.type"});
    struct topic_rules *r = mem_zalloc(sizeof *r);
    atomic_init(&r->refs, 1);
    r->log = log_config_new(&log);
    r->min_isr = min_isr < 1 ? 1 : min_isr > INT32_MAX ? INT32_MAX : (int32_t)min_isr;
    r->batches = (struct validate_rules){.producer_codec = true,
                                         .codec = CODEC_NONE,
                                         .level = CODEC_LEVEL_DEFAULT,
                                         .timestamp = TIMESTAMP_CREATE,
                                         .before_ms_max = before_ms,
                                         .after_ms_max = after_ms,
                                         .compacted = log.cleanup_compact,
                                         .batch_bytes_max =
                                             batch_bytes > INT32_MAX ? INT32_MAX : (uint32_t)batch_bytes};
    if (!slice_is_null(stamp) && slice_equal_str(stamp, "LogAppendTime")) {
        r->batches.timestamp = TIMESTAMP_APPEND;
    }
    if (!slice_is_null(codec) && codec_from_name(codec, &r->batches.codec)) {
        r->batches.producer_codec = false;
    }
    return r;
}

struct topic_rules *topic_rules_ref(struct topic_rules *r)
{
    (void)atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

void topic_rules_unref(struct topic_rules *r)
{
    if (r != NULL && atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1) {
        log_config_unref(r->log);
        mem_free(r);
    }
}
