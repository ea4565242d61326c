// SPDX-License-Identifier: Apache-2.0
// Fuzz target: every small file that storage reads from a disk. What is accepted is written again and read
// back.
//
// The first byte chooses the file.
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "storage/checkpoint.h"
#include "storage/clean_mark.h"
#include "storage/epoch_cache.h"
#include "storage/layout.h"
#include "storage/log_dir.h"
#include "storage/manifest.h"
#include "storage/partition_metadata.h"
#include "storage/producer_state.h"
#include "storage/sparse_index.h"
#include "storage/txn_index.h"
#include "tests/fuzz/fuzz.h"

static int add_again(void *data, const struct checkpoint_entry *e)
{
    char *topic = slice_dup_str(e->topic);
    checkpoint_add(data, topic, e->partition, e->offset);
    mem_free(topic);
    return 0;
}

static int ignore_entry(void *data, const struct checkpoint_entry *e)
{
    return 0;
}

static void checkpoint(struct slice in)
{
    struct checkpoint_writer w;
    struct strbuf text;
    checkpoint_begin(&w);
    int rc = checkpoint_parse(in, add_again, &w, NULL);
    checkpoint_end(&w, &text);
    if (rc == 0 && memchr(in.data, 0, in.len) == NULL)
        MUST(checkpoint_parse(strbuf_slice(&text), ignore_entry, NULL, NULL) == 0);
    strbuf_fini(&text);
}

static void epochs(struct slice in)
{
    struct epoch_cache c, d;
    struct strbuf text;
    epoch_cache_init(&c);
    epoch_cache_init(&d);
    if (epoch_cache_parse(&c, in, NULL) == 0) {
        epoch_cache_format(&c, &text);
        MUST(epoch_cache_parse(&d, strbuf_slice(&text), NULL) == 0);
        MUST(c.count == d.count);
        strbuf_fini(&text);
        leader_epoch found;
        log_offset end;
        (void)epoch_cache_end_of(&c, 5, 100, &found, &end);
        (void)epoch_cache_observe(&c, 7, 50);
        epoch_cache_truncate_start(&c, 20);
        epoch_cache_truncate_end(&c, 60);
        for (unsigned i = 1; i < c.count; i++)
            MUST(c.list[i - 1].epoch < c.list[i].epoch && c.list[i - 1].start < c.list[i].start);
    } else {
        MUST(c.count == 0);
    }
    epoch_cache_fini(&c);
    epoch_cache_fini(&d);
}

static void producers(struct slice in)
{
    struct producer_states *p = producer_states_new(), *q = producer_states_new();
    if (producer_states_decode(p, in, NULL) == 0) {
        uint8_t *bytes;
        size_t len;
        producer_states_encode(p, &bytes, &len);
        MUST(producer_states_decode(q, slice_of(bytes, len), NULL) == 0);
        MUST(producer_states_count(p) == producer_states_count(q));
        mem_free(bytes);
        struct producer_batch b = {
            .producer_id = 7, .base_offset = 10, .last_offset = 12, .transactional = true};
        struct producer_duplicate dup;
        (void)producer_states_check(p, &b, &dup);
        producer_states_append(p, &b);
        (void)producer_states_first_unstable(p, 5);
        (void)producer_states_expire(p, INT64_MAX / 2, 1);
    }
    producer_states_free(p);
    producer_states_free(q);
}

static void indexes(struct slice in)
{
    struct sparse_index ix;
    sparse_index_init(&ix);
    if (sparse_index_decode_offsets(&ix, in, 1 << 20, NULL) == 0)
        for (uint32_t o = 0; o < 100; o++)
            MUST(sparse_index_position(&ix, o) < 1 << 20);
    if (sparse_index_decode_times(&ix, in, NULL) == 0)
        (void)sparse_index_time(&ix, 1000);
    sparse_index_fini(&ix);
    struct txn_index t = {NULL, 0, 0, false};
    (void)txn_index_decode(&t, in, NULL);
    txn_index_fini(&t);
}

static int ignore_manifest(void *data, const struct manifest_entry *e)
{
    MUST(e->end >= e->start);
    return 0;
}

static void names(struct slice in)
{
    char topic[250], buf[LAYOUT_PATH_BYTES];
    partition_id partition;
    enum log_dir_kind kind;
    char *name = slice_dup_str(in);
    if (log_dir_parse_name(name, topic, &partition, &kind))
        MUST(partition >= 0 && strlen(topic) > 0);
    struct layout_name n = layout_parse(name);
    if (n.kind != LAYOUT_OTHER && layout_path(buf, "", n.offset, n.kind, n.state))
        MUST(strcmp(buf + 1, name) == 0);
    mem_free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct slice in = slice_of(data + 1, size - 1);
    struct uuid id;
    broker_epoch epoch;
    switch (data[0] % 8) {
    case 0:
        checkpoint(in);
        break;
    case 1:
        epochs(in);
        break;
    case 2:
        producers(in);
        break;
    case 3:
        indexes(in);
        break;
    case 4:
        (void)manifest_parse(in, &(struct manifest_sums){1, 2, 3}, ignore_manifest, NULL, NULL);
        break;
    case 5:
        (void)partition_metadata_parse(in, &id, NULL);
        break;
    case 6:
        (void)clean_mark_parse(in, &epoch, NULL);
        break;
    default:
        names(in);
        break;
    }
    return 0;
}
