// SPDX-License-Identifier: Apache-2.0
// Fills a topic's typed configuration from the chain.
#include "core/config/topic_config.h"

#include "core/config/check.h"

// Kafka's default of max.decompressed.message.bytes, the largest array of Java: it stands for no limit.
#define UNPACKED_BYTES_DEFAULT 2147483639

static int64_t number(const struct config_chain *chain, const char *name)
{
    return config_resolve_long(chain, CONFIG_KIND_TOPIC, name);
}

static void codec_of(const struct config_chain *chain, struct topic_config *out)
{
    static const struct {
        const char *word;       // of compression.type
        enum topic_codec codec; // what it means
        const char *level;      // its level's key; NULL: has none
        int32_t level_default;  // where this is the value, the codec's own default is meant
    } words[] = {
        {"uncompressed", TOPIC_CODEC_NONE, NULL, 0},
        {"gzip", TOPIC_CODEC_GZIP, "compression.gzip.level", -1},
        {"snappy", TOPIC_CODEC_SNAPPY, NULL, 0},
        {"lz4", TOPIC_CODEC_LZ4, "compression.lz4.level", INT32_MIN},
        {"zstd", TOPIC_CODEC_ZSTD, "compression.zstd.level", INT32_MIN},
    };
    struct slice word = config_resolve_text(chain, CONFIG_KIND_TOPIC, "compression.type");
    out->codec = TOPIC_CODEC_PRODUCER;
    out->codec_level = INT32_MIN;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (slice_equal_str(word, words[i].word)) {
            out->codec = words[i].codec;
            if (words[i].level) {
                int32_t level = (int32_t)number(chain, words[i].level);
                out->codec_level = level == words[i].level_default ? INT32_MIN : level;
            }
        }
    }
}

void topic_config_resolve(const struct config_chain *chain, struct topic_config *out)
{
    struct slice small = config_resolve_text(chain, CONFIG_KIND_TOPIC, "internal.segment.bytes");
    out->segment_bytes =
        (int32_t)number(chain, slice_is_null(small) ? "segment.bytes" : "internal.segment.bytes");
    out->segment_ms = number(chain, "segment.ms");
    out->segment_jitter_ms = number(chain, "segment.jitter.ms");
    out->segment_index_bytes = (int32_t)number(chain, "segment.index.bytes");
    out->index_interval_bytes = (int32_t)number(chain, "index.interval.bytes");
    out->flush_messages = number(chain, "flush.messages");
    out->flush_ms = number(chain, "flush.ms");
    out->retention_bytes = number(chain, "retention.bytes");
    out->retention_ms = number(chain, "retention.ms");
    out->message_bytes_max = (int32_t)number(chain, "max.message.bytes");
    int64_t unpacked = number(chain, "max.decompressed.message.bytes");
    out->unpacked_bytes_max = unpacked >= UNPACKED_BYTES_DEFAULT ? 0 : (int32_t)unpacked;
    out->delete_retention_ms = number(chain, "delete.retention.ms");
    out->min_compaction_lag_ms = number(chain, "min.compaction.lag.ms");
    out->max_compaction_lag_ms = number(chain, "max.compaction.lag.ms");
    out->min_cleanable_ratio = config_resolve_double(chain, CONFIG_KIND_TOPIC, "min.cleanable.dirty.ratio");
    out->file_delete_delay_ms = number(chain, "file.delete.delay.ms");
    struct slice policy = config_resolve_text(chain, CONFIG_KIND_TOPIC, "cleanup.policy");
    out->cleanup_delete = config_list_has(policy, "delete");
    out->cleanup_compact = config_list_has(policy, "compact");
    out->unclean_election = config_resolve_bool(chain, CONFIG_KIND_TOPIC, "unclean.leader.election.enable");
    out->min_insync_replicas = (int32_t)number(chain, "min.insync.replicas");
    out->preallocate = config_resolve_bool(chain, CONFIG_KIND_TOPIC, "preallocate");
    out->append_time = slice_equal_str(
        config_resolve_text(chain, CONFIG_KIND_TOPIC, "message.timestamp.type"), "LogAppendTime");
    out->timestamp_before_ms = number(chain, "message.timestamp.before.max.ms");
    out->timestamp_after_ms = number(chain, "message.timestamp.after.max.ms");
    codec_of(chain, out);
}
