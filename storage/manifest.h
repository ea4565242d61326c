// SPDX-License-Identifier: Apache-2.0
// The manifest of a log directory: what every partition's files hold, so that a clean start need not look at
// them.
//
// Written at a clean stop, after the checkpoints and before .kafka_cleanshutdown; deleted at the start. It
// counts only together with that mark and while the checkpoint files beside it are byte for byte those of its
// stop: Apache Kafka may have used the directory in between, and it writes them anew. Text, one partition a
// line:
//   line 1  kraft-manifest 1
//   line 2  RECOVERY-CRC WATERMARK-CRC START-CRC   CRC-32C of the three checkpoint files, in hexadecimal
//   line 3  COUNT
//   lines   TOPIC PARTITION TOPIC-ID START END WATERMARK RECOVERY SIZE EPOCH
//   last    end CRC                                CRC-32C of all before it
#ifndef KRAFT_STORAGE_MANIFEST_H
#define KRAFT_STORAGE_MANIFEST_H

#include "core/base/err.h"
#include "core/base/strbuf.h"
#include "core/base/types.h"
#include "core/base/uuid.h"

#define MANIFEST_NAME ".kraft-manifest"

struct manifest_entry {
    struct slice topic; // borrowed
    partition_id partition;
    struct uuid topic_id; // zero: not known
    log_offset start, end, watermark, recovery;
    uint64_t size;
    leader_epoch last_epoch; // -1 none
};
struct manifest_sums {
    uint32_t recovery, watermark, start; // CRC-32C of the checkpoint files
};

struct manifest_writer {
    struct strbuf lines;
    unsigned count;
};
void manifest_begin(struct manifest_writer *w);
void manifest_add(struct manifest_writer *w, const struct manifest_entry *e);
void manifest_end(struct manifest_writer *w, const struct manifest_sums *sums,
                  struct strbuf *out); // `out` is initialised here
// Calls `each` for every entry of a manifest that is whole and was made with these sums. ERR_CORRUPT:
// damaged; ERR_STATE: of other checkpoint files. `each` is called only after the whole text was checked.
int manifest_parse(struct slice text, const struct manifest_sums *sums,
                   int (*each)(void *data, const struct manifest_entry *e), void *data, struct errmsg *msg);

#endif
