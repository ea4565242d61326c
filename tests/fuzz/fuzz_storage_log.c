// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a segment file of any content is recovered, read, searched, appended to and closed.
//
// The first byte chooses: bit 0 puts every checksum right and makes offsets rise, so that whole batches are
// reached; bit 1 opens it as after a clean stop.
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "core/record/builder.h"
#include "storage/log.h"
#include "storage/log_dir.h"
#include "storage/vfs_faulty.h"
#include "tests/fuzz/fuzz.h"

static void put_file(struct vfs *fs, const char *path, const void *data, size_t len)
{
    struct vfs_file *f;
    struct iovec iov = {(void *)(uintptr_t)data, len};
    MUST(fs->ops->open(fs, path, VFS_WRITE | VFS_CREATE, &f, NULL) == 0);
    MUST(fs->ops->pwritev(f, &iov, 1, 0) == 0);
    vfs_file_unref(f);
}

static void make_right(uint8_t *data, size_t len)
{
    log_offset next = 0;
    size_t size;
    while (batch_parse(slice_of(data, len), &size, NULL) == 0) {
        batch_set_base_offset(data, next);
        batch_set_leader_epoch(data, 1);
        batch_seal(data);
        next = batch_next_offset(data);
        data += size;
        len -= size;
    }
}

// Everything that can be read moves on; where the log was recovered (`checked`) it is whole and right, too.
// After a clean stop nothing was looked at: a reader gets what the file holds, and finds damage by the
// checksum.
static void read_all(struct partition_log *log, bool checked)
{
    log_offset at = plog_start_offset(log), end = plog_end_offset(log);
    while (at < end) {
        struct plog_read_args args = {.offset = at, .bound = end, .max_bytes = 4096, .min_one = true};
        struct plog_range r;
        if (plog_read(log, &args, &r, NULL) || !r.file)
            break;
        uint8_t *buf = mem_alloc(r.len);
        MUST(plog_range_copy(&r, buf) == 0);
        struct batch_iter it = batch_iter_of(slice_of(buf, r.len));
        while (batch_iter_next(&it))
            MUST(!checked || batch_last_offset(it.batch) >= at);
        MUST(!checked || (it.err == 0 && it.rest.len == 0));
        MUST(r.next_offset > at);
        at = r.next_offset;
        plog_range_release(&r);
        mem_free(buf);
    }
}

static void use(struct partition_log *log, bool checked)
{
    struct plog_timestamp t;
    struct plog_aborted *aborted;
    unsigned count;
    read_all(log, checked);
    (void)plog_find_timestamp(log, 1000, INT64_MAX, &t, NULL);
    (void)plog_find_max_timestamp(log, INT64_MAX, &t, NULL);
    if (plog_aborted_in(log, 0, INT64_MAX, &aborted, &count, NULL) == 0)
        mem_free(aborted);
    (void)plog_last_stable(log, plog_end_offset(log));
    struct builder_options o = BUILDER_OPTIONS_DEFAULT;
    o.base_offset = plog_end_offset(log);
    o.epoch = INT32_MAX;
    struct builder b;
    struct slice batch;
    struct plog_append_result r;
    builder_init(&b, &o);
    builder_append(&b, 5, SLICE_LIT("k"), SLICE_LIT("v"), NULL, 0);
    MUST(builder_finish(&b, &batch, NULL) == 0);
    if (o.base_offset < INT64_MAX - 10)
        MUST(plog_append(log, &batch, 1, 0, 1, &r, NULL) == 0);
    builder_fini(&b);
    if (plog_end_offset(log) > 1)
        (void)plog_truncate_to(log, plog_end_offset(log) / 2, NULL);
    read_all(log, checked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct vfs_faulty *disk = vfs_faulty_new(1);
    struct vfs *fs = vfs_faulty_fs(disk);
    uint8_t *bytes = mem_dup(data + 1, size - 1);
    if (data[0] & 1)
        make_right(bytes, size - 1);
    MUST(fs->ops->mkdir(fs, "/d") == 0);
    MUST(fs->ops->mkdir(fs, "/d/t-0") == 0);
    put_file(fs, "/d/t-0/00000000000000000000.log", bytes, size - 1);
    mem_free(bytes);
    struct file_cache *files = file_cache_new(4);
    struct log_dir_options opts = {.fs = fs, .path = "/d", .files = files};
    struct log_dir *dir;
    MUST(log_dir_open(&opts, &dir, NULL) == 0);
    struct log_config c = {.refs = 1};
    log_config_defaults(&c);
    c.index_interval_bytes = 100;
    struct log_config *config = log_config_new(&c);
    struct plog_open_args args = {
        .topic = "t", .config = config, .existing = true, .clean = (data[0] & 2) != 0};
    struct partition_log *log;
    if (plog_open(dir, &args, &log, NULL) == 0) {
        use(log, !args.clean);
        (void)plog_close(log, NULL);
    }
    (void)log_dir_close(dir, 1, NULL);
    log_config_unref(config);
    file_cache_free(files);
    vfs_faulty_free(disk);
    return 0;
}
