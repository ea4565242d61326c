// SPDX-License-Identifier: Apache-2.0
// Offset checkpoint files: "0", the count, then one "TOPIC PARTITION OFFSET" a line (Kafka's
// OffsetCheckpointFile).
//
// recovery-point-offset-checkpoint, replication-offset-checkpoint (high watermarks),
// log-start-offset-checkpoint and cleaner-offset-checkpoint of a log directory. Pure.
#ifndef KRAFT_STORAGE_CHECKPOINT_H
#define KRAFT_STORAGE_CHECKPOINT_H

#include "core/base/err.h"
#include "core/base/slice.h"
#include "core/base/strbuf.h"
#include "core/base/types.h"

#define CHECKPOINT_RECOVERY_POINT "recovery-point-offset-checkpoint"
#define CHECKPOINT_HIGH_WATERMARK "replication-offset-checkpoint"
#define CHECKPOINT_LOG_START "log-start-offset-checkpoint"
#define CHECKPOINT_CLEANER "cleaner-offset-checkpoint"

struct checkpoint_entry {
    struct slice topic; // borrowed from the text
    partition_id partition;
    log_offset offset;
};

// Calls `each` for every entry; a non-zero answer ends it and is returned. ERR_CORRUPT: wrong version, count,
// or a line that cannot be read (the line's number is in the message); entries before it were given.
int checkpoint_parse(struct slice text, int (*each)(void *data, const struct checkpoint_entry *e), void *data,
                     struct errmsg *msg);

struct checkpoint_writer {
    struct strbuf lines; // entries so far
    unsigned count;      // of them
};
void checkpoint_begin(struct checkpoint_writer *w);
void checkpoint_add(struct checkpoint_writer *w, const char *topic, partition_id partition,
                    log_offset offset);
// The whole text in `out`, which is initialised here; the writer is finished.
void checkpoint_end(struct checkpoint_writer *w, struct strbuf *out);

#endif
