// SPDX-License-Identifier: Apache-2.0
// Makes a topic's rules from the image and the broker's configuration.
#include "core/server/topic_rules.h"

#include <stdio.h>
#include "core/base/mem.h"
#include "core/config/topic_config.h"
#include "core/metadata/image.h"
#include "core/server/broker.h"

_Static_assert(TOPIC_CODEC_NONE == (int)CODEC_NONE && TOPIC_CODEC_GZIP == (int)CODEC_GZIP &&
                   TOPIC_CODEC_SNAPPY == (int)CODEC_SNAPPY && TOPIC_CODEC_LZ4 == (int)CODEC_LZ4 &&
                   TOPIC_CODEC_ZSTD == (int)CODEC_ZSTD,
               "both lists have the numbers of the batch attributes");

// Dynamic configuration of one resource of an image.
struct image_layer {
    const struct image *image; // where
    int8_t type;               // enum config_resource_type
    struct slice name;         // resource
};

static struct slice get_from_image(const void *data, struct slice key)
{
    const struct image_layer *l = data;
    return image_config_value(l->image, l->type, l->name, key);
}

static void resolve(const struct image *image, const struct broker_settings *s, struct slice topic,
                    struct topic_config *out)
{
    char id[16];
    int id_len = snprintf(id, sizeof id, "%d", s->id);
    struct image_layer mine = {image, CONFIG_RESOURCE_TOPIC, topic};
    struct image_layer broker = {image, CONFIG_RESOURCE_BROKER, slice_of(id, (size_t)id_len)};
    struct image_layer cluster = {image, CONFIG_RESOURCE_BROKER, SLICE_LIT("")};
    struct config_chain chain = {.resource = {get_from_image, &mine},
                                 .broker = {get_from_image, &broker},
                                 .cluster = {get_from_image, &cluster},
                                 .file = s->config};
    topic_config_resolve(&chain, out);
}

struct topic_rules *topic_rules_make(const struct image *image, const struct broker_settings *s,
                                     struct slice topic)
{
    struct topic_config c;
    resolve(image, s, topic, &c);
    struct log_config log;
    log_config_defaults(&log);
    log.segment_bytes = c.segment_bytes;
    log.segment_ms = c.segment_ms;
    log.segment_jitter_ms = c.segment_jitter_ms;
    log.index_bytes_max = c.segment_index_bytes;
    log.index_interval_bytes = c.index_interval_bytes;
    log.retention_bytes = c.retention_bytes;
    log.retention_ms = c.retention_ms;
    log.flush_messages = c.flush_messages;
    log.flush_ms = c.flush_ms;
    log.file_delete_delay_ms = c.file_delete_delay_ms;
    log.producer_expiration_ms = s->producer_id_expiration_ms;
    log.preallocate = c.preallocate;
    log.cleanup_delete = c.cleanup_delete;
    log.cleanup_compact = c.cleanup_compact;
    struct topic_rules *r = mem_zalloc(sizeof *r);
    atomic_init(&r->refs, 1);
    r->log = log_config_new(&log);
    r->min_isr = c.min_insync_replicas;
    r->batches =
        (struct validate_rules){.producer_codec = c.codec == TOPIC_CODEC_PRODUCER,
                                .codec = c.codec == TOPIC_CODEC_PRODUCER ? CODEC_NONE : (enum codec)c.codec,
                                .level = c.codec_level,
                                .timestamp = c.append_time ? TIMESTAMP_APPEND : TIMESTAMP_CREATE,
                                .before_ms_max = c.timestamp_before_ms,
                                .after_ms_max = c.timestamp_after_ms,
                                .compacted = c.cleanup_compact,
                                .batch_bytes_max = (uint32_t)c.message_bytes_max,
                                .unpacked_bytes_max = (uint64_t)c.unpacked_bytes_max};
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
