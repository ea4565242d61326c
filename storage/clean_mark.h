// SPDX-License-Identifier: Apache-2.0
// .kafka_cleanshutdown: written last of all at a clean stop, with the broker epoch, and deleted as soon as it
// was read.
#ifndef KRAFT_STORAGE_CLEAN_MARK_H
#define KRAFT_STORAGE_CLEAN_MARK_H

#include "core/base/err.h"
#include "core/base/slice.h"
#include "core/base/types.h"

#define CLEAN_MARK_NAME ".kafka_cleanshutdown"

// {"version":0,"brokerEpoch":N}. An empty file (Kafka before 3.7) is clean with epoch -1. ERR_CORRUPT:
// anything else.
int clean_mark_parse(struct slice text, broker_epoch *epoch, struct errmsg *msg);
size_t clean_mark_format(broker_epoch epoch, char *buf, size_t size); // gives the length

#endif
