// SPDX-License-Identifier: Apache-2.0
// Reading and writing of partition.metadata.
#include "storage/partition_metadata.h"
#include <stdio.h>
#include "core/base/mem.h"
#include "storage/layout.h"
#include "storage/small_file.h"
#include "storage/text_scan.h"

int partition_metadata_parse(struct slice text, struct uuid *topic_id, struct errmsg *msg)
{
    struct slice line, key, value;
    int64_t version;
    if (!text_line(&text, &line) || !text_word(&line, &key) || !slice_equal_str(key, "version:") ||
        !text_word_number(&line, &version))
        return err_set(msg, ERR_CORRUPT, "line 1 is not \"version: NUMBER\"");
    if (version != 0)
        return err_set(msg, ERR_CORRUPT, "version %lld is not known", (long long)version);
    if (!text_line(&text, &line) || !text_word(&line, &key) || !slice_equal_str(key, "topic_id:") ||
        !text_word(&line, &value) || !uuid_parse(value, topic_id))
        return err_set(msg, ERR_CORRUPT, "line 2 is not \"topic_id: ID\"");
    if (uuid_is_zero(*topic_id))
        return err_set(msg, ERR_CORRUPT, "the topic id is zero");
    return 0;
}

int partition_metadata_read(struct vfs *fs, const char *dir, struct uuid *topic_id, struct errmsg *msg)
{
    char path[LAYOUT_PATH_BYTES];
    if (!layout_join(path, dir, PARTITION_METADATA_NAME))
        return err_set(msg, ERR_TOO_LARGE, "the path %s is too long", dir);
    char *text;
    size_t len;
    int rc = small_file_read(fs, path, &text, &len, msg);
    if (rc)
        return rc;
    rc = partition_metadata_parse(slice_of(text, len), topic_id, msg);
    mem_free(text);
    if (rc)
        err_prefix(msg, "%s", path);
    return rc;
}

int partition_metadata_write(struct vfs *fs, const char *dir, struct uuid topic_id, bool durable,
                             struct errmsg *msg)
{
    char path[LAYOUT_PATH_BYTES], id[UUID_TEXT_BYTES], text[64];
    if (!layout_join(path, dir, PARTITION_METADATA_NAME))
        return err_set(msg, ERR_TOO_LARGE, "the path %s is too long", dir);
    uuid_format(topic_id, id);
    int n = snprintf(text, sizeof(text), "version: 0\ntopic_id: %s", id);
    struct slice bytes = slice_of(text, (size_t)n);
    return durable ? small_file_replace(fs, path, bytes, true, msg) : small_file_write(fs, path, bytes, msg);
}
