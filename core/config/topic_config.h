// SPDX-License-Identifier: Apache-2.0
// A topic's effective configuration as typed fields.
#ifndef KRAFT_CONFIG_TOPIC_CONFIG_H
#define KRAFT_CONFIG_TOPIC_CONFIG_H

#include "core/config/resolve.h"

// Words of compression.type as numbers: the codecs of a record batch, and one more.
enum topic_codec {
    TOPIC_CODEC_NONE = 0, // uncompressed
    TOPIC_CODEC_GZIP = 1,
    TOPIC_CODEC_SNAPPY = 2,
    TOPIC_CODEC_LZ4 = 3,
    TOPIC_CODEC_ZSTD = 4,
    TOPIC_CODEC_PRODUCER = 5, // whatever the producer used
};

struct topic_config {
    int32_t segment_bytes;         // segment.bytes (internal.segment.bytes where that is set)
    int64_t segment_ms;            // segment.ms
    int64_t segment_jitter_ms;     // segment.jitter.ms
    int32_t segment_index_bytes;   // segment.index.bytes
    int32_t index_interval_bytes;  // index.interval.bytes
    int64_t flush_messages;        // flush.messages; INT64_MAX never
    int64_t flush_ms;              // flush.ms; INT64_MAX never
    int64_t retention_bytes;       // retention.bytes; -1 no limit
    int64_t retention_ms;          // retention.ms; -1 no limit
    int32_t message_bytes_max;     // max.message.bytes
    int32_t unpacked_bytes_max;    // max.decompressed.message.bytes; 0 where nobody set it
    int64_t delete_retention_ms;   // delete.retention.ms
    int64_t min_compaction_lag_ms; // min.compaction.lag.ms
    int64_t max_compaction_lag_ms; // max.compaction.lag.ms
    double min_cleanable_ratio;    // min.cleanable.dirty.ratio
    int64_t file_delete_delay_ms;  // file.delete.delay.ms
    bool cleanup_delete;           // cleanup.policy has delete
    bool cleanup_compact;          // cleanup.policy has compact
    bool unclean_election;         // unclean.leader.election.enable
    int32_t min_insync_replicas;   // min.insync.replicas
    enum topic_codec codec;        // compression.type
    int32_t codec_level;           // level of that codec by its own key; INT32_MIN = the codec's default
    bool preallocate;              // preallocate
    bool append_time;              // message.timestamp.type is LogAppendTime
    int64_t timestamp_before_ms;   // message.timestamp.before.max.ms
    int64_t timestamp_after_ms;    // message.timestamp.after.max.ms
};

// Resolves all of it. A stored value that is not good (it was checked before it was stored, so this is an
// older release's) counts as not set.
void topic_config_resolve(const struct config_chain *chain, struct topic_config *out);

#endif
