// SPDX-License-Identifier: Apache-2.0
// Facts of the files on disk: names, checkpoints, marks, indexes, manifest.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/base/mem.h"
#include "storage/checkpoint.h"
#include "storage/clean_mark.h"
#include "storage/layout.h"
#include "storage/log_dir.h"
#include "storage/manifest.h"
#include "storage/mark.h"
#include "storage/partition_metadata.h"
#include "storage/sparse_index.h"
#include "storage/txn_index.h"
#include "storage/vfs_faulty.h"

// ---- names ------------------------------------------------------------------------------------------------
static void segment_files_have_20_digits_and_a_suffix(void **state)
{
    char path[LAYOUT_PATH_BYTES];
    assert_true(layout_path(path, "/d/t-0", 123, LAYOUT_TIMEINDEX, LAYOUT_DELETE));
    assert_string_equal(path, "/d/t-0/00000000000000000123.timeindex.deleted");
    struct layout_name n = layout_parse("00000000000000000123.snapshot");
    assert_int_equal(n.kind, LAYOUT_SNAPSHOT);
    assert_int_equal(n.state, LAYOUT_PLAIN);
    assert_int_equal(n.offset, 123);
    n = layout_parse("00000000000000000007.log.swap");
    assert_int_equal(n.kind, LAYOUT_LOG);
    assert_int_equal(n.state, LAYOUT_SWAP);
    static const char *const others[] = {"7.log",
                                         "0000000000000000000x.log",
                                         "00000000000000000007.logs",
                                         "leader-epoch-checkpoint",
                                         "00000000000000000007.cutoff",
                                         "99999999999999999999.log",
                                         "00000000000000000007"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(layout_parse(others[i]).kind, LAYOUT_OTHER);
    // A snapshot of the metadata log is none of ours.
    assert_int_equal(layout_parse("00000000000000000444-0000000004.checkpoint").kind, LAYOUT_OTHER);
}

static void partition_directories_are_told_by_their_last_dash(void **state)
{
    char topic[250];
    partition_id p;
    enum log_dir_kind kind;
    assert_true(log_dir_parse_name("my-topic-with-dashes-12", topic, &p, &kind));
    assert_string_equal(topic, "my-topic-with-dashes");
    assert_int_equal(p, 12);
    assert_int_equal(kind, LOG_DIR_PARTITION);
    assert_true(log_dir_parse_name("deleted-2.3a8f74bef7ef4c798ffb65c713972f58-delete", topic, &p, &kind));
    assert_string_equal(topic, "deleted");
    assert_int_equal(p, 2);
    assert_int_equal(kind, LOG_DIR_DELETED);
    assert_true(log_dir_parse_name("a.b-0.3a8f74bef7ef4c798ffb65c713972f58-stray", topic, &p, &kind));
    assert_string_equal(topic, "a.b");
    assert_int_equal(kind, LOG_DIR_STRAY);
    assert_true(log_dir_parse_name("t-3.3a8f74bef7ef4c798ffb65c713972f58-future", topic, &p, &kind));
    assert_int_equal(kind, LOG_DIR_FUTURE);
    static const char *const bad[] = {"lost+found", "topic",   "topic-",    "-3",
                                      "topic-03",   "topic-x", "topic--1x", "topic-99999999999",
                                      "t-delete"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(log_dir_parse_name(bad[i], topic, &p, &kind));
}

// ---- checkpoints ------------------------------------------------------------------------------------------
static int count_entry(void *data, const struct checkpoint_entry *e)
{
    int *n = data;
    ++*n;
    if (*n == 2) {
        assert_true(slice_equal_str(e->topic, "idle.with_odd-chars"));
        assert_int_equal(e->partition, 7);
        assert_int_equal(e->offset, 9223372036854775807);
    }
    return 0;
}

static void an_offset_checkpoint_is_kafkas_text(void **state)
{
    struct checkpoint_writer w;
    struct strbuf text;
    checkpoint_begin(&w);
    checkpoint_add(&w, "t", 0, 5);
    checkpoint_add(&w, "idle.with_odd-chars", 7, INT64_MAX);
    checkpoint_end(&w, &text);
    assert_string_equal(strbuf_text(&text), "0\n2\nt 0 5\nidle.with_odd-chars 7 9223372036854775807\n");
    int n = 0;
    assert_int_equal(checkpoint_parse(strbuf_slice(&text), count_entry, &n, NULL), 0);
    assert_int_equal(n, 2);
    strbuf_fini(&text);
    n = 0;
    assert_int_equal(checkpoint_parse(SLICE_LIT("0\n0\n"), count_entry, &n, NULL),
                     0); // as Kafka leaves it without any
    assert_int_equal(n, 0);
}

static int ignore_entry(void *data, const struct checkpoint_entry *e)
{
    return 0;
}

static void a_damaged_checkpoint_is_noticed(void **state)
{
    static const char *const bad[] = {"",
                                      "x",
                                      "1\n0\n",
                                      "0\n",
                                      "0\n1\n",
                                      "0\n1\nt 0\n",
                                      "0\n1\nt x 5\n",
                                      "0\n1\nt 0 5 6\n",
                                      "0\n2\nt 0 5\n",
                                      "0\n1\nt 0 5\nu 0 5\n",
                                      "0\n1\nt -1 5\n",
                                      "0\n1\nt 0 -5\n",
                                      "0\n1\nt 0 99999999999999999999\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(checkpoint_parse(slice_str(bad[i]), ignore_entry, NULL, NULL), ERR_CORRUPT);
}

// ---- partition.metadata, clean mark -----------------------------------------------------------------------
static void partition_metadata_is_two_lines(void **state)
{
    struct uuid id, want;
    assert_true(uuid_parse(SLICE_LIT("QzkjHwn_RGaAnHcB2f0uaA"), &want));
    assert_int_equal(
        partition_metadata_parse(SLICE_LIT("version: 0\ntopic_id: QzkjHwn_RGaAnHcB2f0uaA"), &id, NULL), 0);
    assert_true(uuid_equal(id, want));
    static const char *const bad[] = {"",
                                      "version: 0",
                                      "version: 1\ntopic_id: QzkjHwn_RGaAnHcB2f0uaA",
                                      "version: 0\ntopic_id: short",
                                      "topic_id: QzkjHwn_RGaAnHcB2f0uaA",
                                      "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(partition_metadata_parse(slice_str(bad[i]), &id, NULL), ERR_CORRUPT);
    struct vfs_faulty *v = vfs_faulty_new(1);
    struct vfs *fs = vfs_faulty_fs(v);
    assert_int_equal(fs->ops->mkdir(fs, "/t-0"), 0);
    assert_int_equal(partition_metadata_write(fs, "/t-0", want, true, NULL), 0);
    assert_int_equal(partition_metadata_read(fs, "/t-0", &id, NULL), 0);
    struct vfs_stat st;
    assert_int_equal(fs->ops->stat(fs, "/t-0/partition.metadata", &st), 0);
    assert_int_equal(st.size, 43); // no line end behind the id
    vfs_faulty_free(v);
}

static void the_clean_mark_carries_the_broker_epoch(void **state)
{
    char text[64];
    size_t n = clean_mark_format(384, text, sizeof(text));
    assert_string_equal(text, "{\"version\":0,\"brokerEpoch\":384}");
    broker_epoch e;
    assert_int_equal(clean_mark_parse(slice_of(text, n), &e, NULL), 0);
    assert_int_equal(e, 384);
    assert_int_equal(clean_mark_parse(SLICE_LIT("{ \"brokerEpoch\" : -1 , \"version\" : 0 }\n"), &e, NULL),
                     0);
    assert_int_equal(e, -1);
    assert_int_equal(clean_mark_parse(SLICE_LIT(""), &e, NULL), 0); // before Kafka 3.7
    static const char *const bad[] = {"{",
                                      "{}",
                                      "{\"version\":1,\"brokerEpoch\":3}",
                                      "{\"version\":0,\"brokerEpoch\":3",
                                      "[0]",
                                      "{\"version\":x}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(clean_mark_parse(slice_str(bad[i]), &e, NULL), ERR_CORRUPT);
}

// ---- indexes ----------------------------------------------------------------------------------------------
static void an_index_entry_stands_at_each_interval_and_points_to_a_batch_start(void **state)
{
    struct sparse_index ix;
    sparse_index_init(&ix);
    uint64_t pos = 0;
    for (int i = 0; i < 100; i++, pos += 100)
        sparse_index_note(&ix, 1000, 250, pos, 100, 1000 + i * 2 + 1, 5000 + i);
    assert_int_equal(ix.offsets_count,
                     33); // the first entry when more than 250 bytes lie behind: before the fourth batch
    assert_int_equal(ix.offsets[0].pos, 300);
    assert_int_equal(ix.offsets[0].offset, 7); // the batch's last offset
    assert_int_equal(sparse_index_position(&ix, 6), 0);
    assert_int_equal(sparse_index_position(&ix, 7), 300);
    assert_int_equal(sparse_index_position(&ix, 12), 300);
    assert_int_equal(sparse_index_before(&ix, 299), 0);
    assert_int_equal(sparse_index_before(&ix, 650), 600);
    assert_int_equal(ix.times[0].timestamp, 5003);
    sparse_index_close(&ix, 1000);
    assert_int_equal(ix.times[ix.times_count - 1].timestamp, 5099);
    assert_int_equal(sparse_index_time(&ix, 5003), 0);
    assert_int_equal(sparse_index_time(&ix, 5004), 7);
    sparse_index_fini(&ix);
}

static void time_entries_rise_whatever_the_records_say(void **state)
{
    struct sparse_index ix;
    sparse_index_init(&ix);
    time_ms times[] = {50, 40, 60, 10, 60, 70};
    for (int i = 0; i < 6; i++)
        sparse_index_note(&ix, 0, 1, (uint64_t)i * 10, 10, i, times[i]);
    for (unsigned i = 1; i < ix.times_count; i++)
        assert_true(ix.times[i].timestamp > ix.times[i - 1].timestamp &&
                    ix.times[i].offset > ix.times[i - 1].offset);
    sparse_index_fini(&ix);
}

static void index_files_are_read_back_and_preallocated_zeros_are_no_entries(void **state)
{
    struct sparse_index ix, in;
    sparse_index_init(&ix);
    sparse_index_init(&in);
    for (int i = 0; i < 50; i++)
        sparse_index_note(&ix, 0, 10, (uint64_t)i * 20, 20, i, 100 + i);
    uint8_t *offsets, *times, big[4096] = {0};
    size_t offsets_len, times_len;
    sparse_index_encode_offsets(&ix, &offsets, &offsets_len);
    sparse_index_encode_times(&ix, &times, &times_len);
    memcpy(big, offsets, offsets_len);
    assert_int_equal(sparse_index_decode_offsets(&in, slice_of(big, sizeof(big)), 1000, NULL), 0);
    assert_int_equal(in.offsets_count, ix.offsets_count);
    memset(big, 0, sizeof(big));
    memcpy(big, times, times_len);
    assert_int_equal(sparse_index_decode_times(&in, slice_of(big, 4092), NULL), 0);
    assert_int_equal(in.times_count, ix.times_count);
    assert_int_equal(sparse_index_decode_offsets(&in, slice_of(offsets, offsets_len - 1), 1000, NULL),
                     ERR_CORRUPT);
    assert_int_equal(sparse_index_decode_offsets(&in, slice_of(offsets, offsets_len), 500, NULL),
                     ERR_CORRUPT); // points past the log
    offsets[3] = 0xff;             // the first offset is above the second
    assert_int_equal(sparse_index_decode_offsets(&in, slice_of(offsets, offsets_len), 1000, NULL),
                     ERR_CORRUPT);
    mem_free(offsets);
    mem_free(times);
    sparse_index_fini(&ix);
    sparse_index_fini(&in);
}

static void a_transaction_index_entry_has_34_bytes(void **state)
{
    struct txn_index t = {NULL, 0, 0, false}, u = {NULL, 0, 0, false};
    txn_index_add(&t, &(struct txn_index_entry){7, 1, 11, 12});
    txn_index_add(&t, &(struct txn_index_entry){6, 12, 22, 13});
    uint8_t *bytes;
    size_t len;
    txn_index_encode(&t, &bytes, &len);
    assert_int_equal(len, 68);
    assert_int_equal(bytes[9], 7);
    assert_int_equal(bytes[33], 12);
    assert_int_equal(txn_index_decode(&u, slice_of(bytes, len), NULL), 0);
    assert_int_equal(u.count, 2);
    assert_int_equal(u.list[1].first_offset, 12);
    assert_int_equal(txn_index_decode(&u, slice_of(bytes, len - 1), NULL), ERR_CORRUPT);
    bytes[1] = 1; // version
    assert_int_equal(txn_index_decode(&u, slice_of(bytes, len), NULL), ERR_CORRUPT);
    mem_free(bytes);
    txn_index_truncate(&t, 22);
    assert_int_equal(t.count, 1);
    txn_index_fini(&t);
    txn_index_fini(&u);
}

// ---- manifest, mark ---------------------------------------------------------------------------------------
static int count_manifest(void *data, const struct manifest_entry *e)
{
    ++*(int *)data;
    assert_int_equal(e->end, 100);
    assert_int_equal(e->last_epoch, 4);
    return 0;
}

static void a_manifest_counts_only_whole_and_with_its_checkpoints(void **state)
{
    struct manifest_writer w;
    struct manifest_sums sums = {1, 2, 0xfedcba98}, other = {1, 2, 4};
    struct strbuf text;
    manifest_begin(&w);
    for (int i = 0; i < 3; i++)
        manifest_add(&w, &(struct manifest_entry){.topic = SLICE_LIT("t"),
                                                  .partition = i,
                                                  .topic_id = {{[3] = 9}},
                                                  .end = 100,
                                                  .last_epoch = 4});
    manifest_end(&w, &sums, &text);
    int n = 0;
    assert_int_equal(manifest_parse(strbuf_slice(&text), &sums, count_manifest, &n, NULL), 0);
    assert_int_equal(n, 3);
    assert_int_equal(manifest_parse(strbuf_slice(&text), &other, count_manifest, &n, NULL), ERR_STATE);
    for (size_t i = 0; i < text.len; i++) {
        text.data[i] ^= 1;
        n = 0;
        assert_int_not_equal(manifest_parse(strbuf_slice(&text), &sums, count_manifest, &n, NULL), 0);
        assert_int_equal(n, 0);
        text.data[i] ^= 1;
        assert_int_not_equal(manifest_parse(slice_of(text.data, i), &sums, count_manifest, &n, NULL), 0);
    }
    strbuf_fini(&text);
}

static void a_torn_mark_leaves_the_one_before(void **state)
{
    struct vfs_faulty *v = vfs_faulty_new(1);
    struct mark m;
    bool found;
    assert_int_equal(mark_open(&m, vfs_faulty_fs(v), "/mark", &found, NULL), 0);
    assert_false(found);
    assert_int_equal(m.end, 0);
    for (log_offset end = 10; end <= 50; end += 10)
        assert_int_equal(mark_write(&m, end, NULL), 0);
    assert_int_equal(mark_sync(&m, NULL), 0);
    assert_int_equal(mark_write(&m, 30, NULL), 0); // lowered, as before a truncation
    assert_int_equal(mark_sync(&m, NULL), 0);
    mark_close(&m);
    assert_int_equal(mark_open(&m, vfs_faulty_fs(v), "/mark", &found, NULL), 0);
    assert_true(found);
    assert_int_equal(m.end, 30);
    mark_close(&m);
    uint64_t newest = (m.sequence & 1) * 32;
    assert_int_equal(vfs_faulty_corrupt(v, "/mark", newest + 10, 0x40), 0);
    assert_int_equal(mark_open(&m, vfs_faulty_fs(v), "/mark", &found, NULL), 0);
    assert_true(found);
    assert_int_equal(m.end, 50);
    mark_close(&m);
    vfs_faulty_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segment_files_have_20_digits_and_a_suffix),
        cmocka_unit_test(partition_directories_are_told_by_their_last_dash),
        cmocka_unit_test(an_offset_checkpoint_is_kafkas_text),
        cmocka_unit_test(a_damaged_checkpoint_is_noticed),
        cmocka_unit_test(partition_metadata_is_two_lines),
        cmocka_unit_test(the_clean_mark_carries_the_broker_epoch),
        cmocka_unit_test(an_index_entry_stands_at_each_interval_and_points_to_a_batch_start),
        cmocka_unit_test(time_entries_rise_whatever_the_records_say),
        cmocka_unit_test(index_files_are_read_back_and_preallocated_zeros_are_no_entries),
        cmocka_unit_test(a_transaction_index_entry_has_34_bytes),
        cmocka_unit_test(a_manifest_counts_only_whole_and_with_its_checkpoints),
        cmocka_unit_test(a_torn_mark_leaves_the_one_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
