// SPDX-License-Identifier: Apache-2.0
// partition.metadata: "version: 0" and "topic_id: BASE64", which tells a recreated topic from the deleted
// one.
#ifndef KRAFT_STORAGE_PARTITION_METADATA_H
#define KRAFT_STORAGE_PARTITION_METADATA_H

#include "core/base/err.h"
#include "core/base/uuid.h"
#include "storage/vfs.h"

#define PARTITION_METADATA_NAME "partition.metadata"

int partition_metadata_parse(struct slice text, struct uuid *topic_id, struct errmsg *msg); // ERR_CORRUPT
int partition_metadata_read(struct vfs *fs, const char *dir, struct uuid *topic_id,
                            struct errmsg *msg); // ERR_NOTFOUND too
int partition_metadata_write(struct vfs *fs, const char *dir, struct uuid topic_id, bool durable,
                             struct errmsg *msg);

#endif
