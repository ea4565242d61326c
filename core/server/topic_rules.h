// SPDX-License-Identifier: Apache-2.0
// A topic's effective configuration as the data path uses it: an immutable counted value.
#ifndef KRAFT_SERVER_TOPIC_RULES_H
#define KRAFT_SERVER_TOPIC_RULES_H

#include <stdatomic.h>
#include "core/base/slice.h"
#include "core/record/validate.h"
#include "storage/log.h"

struct broker_settings;
struct image;

struct topic_rules {
    atomic_uint refs;       // owners
    struct log_config *log; // what the log needs; one reference
    struct validate_rules
        batches;     // what is asked of a produced batch; `now` and `zstd_allowed` are set per request
    int32_t min_isr; // min.insync.replicas
};

// Effective configuration of a topic in this image over the broker's own configuration. One reference, the
// caller's.
struct topic_rules *topic_rules_make(const struct image *image, const struct broker_settings *s,
                                     struct slice topic);
struct topic_rules *topic_rules_ref(struct topic_rules *r);
void topic_rules_unref(struct topic_rules *r); // NULL allowed; any thread

#endif
