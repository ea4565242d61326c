// SPDX-License-Identifier: Apache-2.0
// Writing and reading of snapshot files.
#include "raft/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include "core/base/arena.h"
#include "core/base/mem.h"
#include "core/base/path.h"
#include "core/metadata/image.h"
#include "core/metadata/replay.h"
#include "core/metadata/snapshot.h"
#include "core/protocol/gen/snapshot_footer_record.h"
#include "core/protocol/gen/snapshot_header_record.h"
#include "core/protocol/metadata_record.h"
#include "core/record/batch.h"
#include "core/record/builder.h"
#include "raft/cursor.h"
#include "raft/entry_batch.h"
#include "raft/limits.h"

#define TAG_RAFT 10000 // of the header record
#define BATCH_BYTES_MAX_READ (QUORUM_BATCH_BYTES_MAX + 65536)

void checkpoint_name(log_offset end_offset, leader_epoch epoch, const char *suffix,
                     char out[CHECKPOINT_NAME_BYTES])
{
    (void)snprintf(out, CHECKPOINT_NAME_BYTES, "%020lld-%010d.checkpoint%s", (long long)end_offset,
                   (int)epoch, suffix);
}

bool checkpoint_parse_name(const char *name, log_offset *end_offset, leader_epoch *epoch)
{
    char again[CHECKPOINT_NAME_BYTES];
    char *end;
    if (strlen(name) != 20 + 1 + 10 + strlen(".checkpoint") || name[20] != '-')
        return false;
    long long offset = strtoll(name, &end, 10);
    long long e = strtoll(name + 21, NULL, 10);
    if (end != name + 20 || offset < 0 || e < 0 || e > INT32_MAX)
        return false;
    checkpoint_name(offset, (leader_epoch)e, "", again);
    *end_offset = offset;
    *epoch = (leader_epoch)e;
    return strcmp(again, name) == 0;
}

// ---- writing
// ---------------------------------------------------------------------------------------------------
struct writer {
    struct vfs_file *file;
    uint64_t pos;    // bytes written
    log_offset next; // offset of the next record in the file
    const struct checkpoint_info *info;
    struct builder builder;
    bool open; // the builder holds records
};

static void begin_batch(struct writer *w, bool control)
{
    struct builder_options opts = BUILDER_OPTIONS_DEFAULT;
    opts.base_offset = w->next;
    opts.epoch = w->info->epoch;
    opts.control = control;
    builder_reset(&w->builder, &opts);
    w->open = true;
}

static int end_batch(struct writer *w, struct errmsg *msg)
{
    if (!w->open)
        return 0;
    struct slice bytes;
    w->open = false;
    int err = builder_finish(&w->builder, &bytes, msg);
    if (err)
        return err;
    struct iovec iov = {(void *)(uintptr_t)bytes.data, bytes.len};
    w->next = batch_next_offset(bytes.data);
    err = w->file->fs->ops->pwritev(w->file, &iov, 1, w->pos);
    w->pos += bytes.len;
    return err;
}

static void raft_tag(const struct checkpoint_info *info, struct strbuf *out)
{
    put_u64(out, info->index);
    put_u64(out, info->term);
    put_u64(out, info->conf_index);
    put_u8(out, info->dynamic ? 1 : 0);
    if (info->voters)
        voter_set_encode(info->voters, out);
    else
        put_u32(out, 0);
}

static int write_header(struct writer *w, struct errmsg *msg)
{
    struct strbuf tag_bytes, value;
    strbuf_init(&tag_bytes);
    strbuf_init(&value);
    raft_tag(w->info, &tag_bytes);
    struct kp_unknown_tag tag = {NULL, TAG_RAFT, strbuf_slice(&tag_bytes)};
    struct kp_snapshot_header_record h;
    kp_snapshot_header_record_init(&h);
    h.last_contained_log_timestamp = w->info->timestamp;
    h.unknown_tags.first = &tag;
    size_t size = kp_snapshot_header_record_size(&h, 0);
    uint8_t *bytes = mem_alloc(size);
    MUST(kp_message_encode_into(&kp_snapshot_header_record_type, &h, bytes, 0) == 0);
    begin_batch(w, true);
    builder_append_control(&w->builder, w->info->timestamp, CONTROL_SNAPSHOT_HEADER, slice_of(bytes, size));
    if (w->info->dynamic) {
        entry_kraft_version_value(1, &value);
        builder_append_control(&w->builder, w->info->timestamp, CONTROL_KRAFT_VERSION, strbuf_slice(&value));
        strbuf_clear(&value);
        if (w->info->voters) {
            voter_set_encode_record(w->info->voters, false, &value);
            builder_append_control(&w->builder, w->info->timestamp, CONTROL_KRAFT_VOTERS,
                                   strbuf_slice(&value));
        }
    }
    mem_free(bytes);
    strbuf_fini(&tag_bytes);
    strbuf_fini(&value);
    return end_batch(w, msg);
}

static int write_value(struct writer *w, struct slice value, struct errmsg *msg)
{
    int err = 0;
    if (w->open && builder_size(&w->builder) > RAFT_SNAPSHOT_BATCH_BYTES)
        err = end_batch(w, msg);
    if (err)
        return err;
    if (!w->open)
        begin_batch(w, false);
    builder_append(&w->builder, w->info->timestamp, SLICE_NULL, value, NULL, 0);
    return 0;
}

static int write_image(struct writer *w, const struct image *image, struct errmsg *msg)
{
    struct arena arena;
    struct metadata_record r;
    int err = 0;
    arena_init(&arena);
    struct image_snapshot *s = image_snapshot_create(image);
    while (!err && image_snapshot_next(s, &arena, &r)) {
        size_t size = metadata_record_size(&r);
        uint8_t *bytes = arena_alloc(&arena, size + 1);
        err = metadata_record_encode_into(&r, bytes);
        if (!err)
            err = write_value(w, slice_of(bytes, size), msg);
        arena_reset(&arena);
    }
    image_snapshot_free(s);
    arena_fini(&arena);
    return err;
}

static int write_footer(struct writer *w, struct errmsg *msg)
{
    struct kp_snapshot_footer_record f;
    uint8_t bytes[64];
    kp_snapshot_footer_record_init(&f);
    size_t size = kp_snapshot_footer_record_size(&f, 0);
    MUST(size <= sizeof bytes && kp_message_encode_into(&kp_snapshot_footer_record_type, &f, bytes, 0) == 0);
    int err = end_batch(w, msg);
    if (err)
        return err;
    begin_batch(w, true);
    builder_append_control(&w->builder, w->info->timestamp, CONTROL_SNAPSHOT_FOOTER, slice_of(bytes, size));
    return end_batch(w, msg);
}

static int write_all(struct writer *w, const struct image *image, const struct slice *values,
                     uint32_t values_count, struct errmsg *msg)
{
    int err = write_header(w, msg);
    if (!err && image)
        err = write_image(w, image, msg);
    for (uint32_t i = 0; !err && i < values_count; i++)
        err = write_value(w, values[i], msg);
    if (!err)
        err = write_footer(w, msg);
    if (!err)
        err = w->file->fs->ops->sync(w->file);
    return err;
}

int checkpoint_write(struct vfs *fs, const char *dir, const struct checkpoint_info *info,
                     const struct image *image, const struct slice *values, uint32_t values_count,
                     struct errmsg *msg)
{
    char name[CHECKPOINT_NAME_BYTES];
    checkpoint_name(info->end_offset, info->epoch, ".part", name);
    char *part = path_join(dir, name);
    checkpoint_name(info->end_offset, info->epoch, "", name);
    char *path = path_join(dir, name);
    struct writer w = {.info = info};
    struct builder_options opts = BUILDER_OPTIONS_DEFAULT;
    int err = fs->ops->open(fs, part, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &w.file, msg);
    if (!err) {
        builder_init(&w.builder, &opts);
        err = write_all(&w, image, values, values_count, msg);
        builder_fini(&w.builder);
        vfs_file_unref(w.file);
        if (!err)
            err = fs->ops->rename(fs, part, path);
        if (!err)
            err = fs->ops->sync_dir(fs, dir);
        if (err) {
            (void)err_set(msg, err, "%s: %s", path, err_text(err));
            (void)fs->ops->unlink(fs, part);
        }
    }
    mem_free(part);
    mem_free(path);
    return err;
}

// ---- reading
// ---------------------------------------------------------------------------------------------------
struct reader {
    struct checkpoint_info *info;
    checkpoint_each each;
    void *data;
    bool header, footer;     // seen
    log_offset next;         // expected base offset
    struct voter_set *plain; // voters of the KRAFT_VOTERS record
};

static int corrupt(struct errmsg *msg, const char *what)
{
    return err_set(msg, ERR_CORRUPT, "%s", what);
}

static int read_header_record(struct reader *r, struct slice value, struct errmsg *msg)
{
    struct arena arena;
    struct kp_reader kr;
    struct kp_snapshot_header_record h;
    arena_init(&arena);
    arena.limit = 1u << 20;
    kp_reader_init(&kr, value, &arena, msg);
    int err = kp_snapshot_header_record_decode(&h, &kr, 0);
    if (!err) {
        r->info->timestamp = h.last_contained_log_timestamp;
        for (const struct kp_unknown_tag *t = h.unknown_tags.first; t; t = t->next) {
            if (t->tag != TAG_RAFT)
                continue;
            struct cursor c = cursor_of(t->bytes);
            r->info->index = cursor_u64(&c);
            r->info->term = cursor_u64(&c);
            r->info->conf_index = cursor_u64(&c);
            r->info->dynamic = cursor_u8(&c) != 0;
            r->info->voters = c.bad ? NULL : voter_set_decode(slice_of(c.p, cursor_left(&c)));
            if (!r->info->voters)
                err = corrupt(msg, "the header's configuration is malformed");
        }
        r->header = true;
    }
    arena_fini(&arena);
    return err;
}

static int read_control(struct reader *r, const struct record *rec, struct errmsg *msg)
{
    bool configuration;
    switch (control_type_of(rec->key)) {
    case CONTROL_SNAPSHOT_HEADER:
        return r->header ? corrupt(msg, "a second header") : read_header_record(r, rec->value, msg);
    case CONTROL_SNAPSHOT_FOOTER:
        r->footer = true;
        return 0;
    case CONTROL_KRAFT_VERSION:
        r->info->dynamic = rec->value.len >= 4 && bytes_load_be16(rec->value.data + 2) >= 1;
        return 0;
    case CONTROL_KRAFT_VOTERS:
        voter_set_unref(r->plain);
        r->plain = voter_set_decode_record(rec->value, &configuration);
        return r->plain ? 0 : corrupt(msg, "the KRAFT_VOTERS record is malformed");
    default:
        return corrupt(msg, "a control record that does not belong in a snapshot");
    }
}

static int read_batch(struct reader *r, const uint8_t *b, struct errmsg *msg)
{
    struct record_iter it;
    struct record rec;
    int err = 0;
    if (r->footer)
        return corrupt(msg, "bytes after the footer");
    if (batch_base_offset(b) != r->next)
        return corrupt(msg, "the offsets have a gap");
    r->next = batch_next_offset(b);
    record_iter_init(&it, b, NULL, NULL);
    while (!err && (err = record_iter_next(&it, &rec, msg)) == 0) {
        if (batch_is_control(b))
            err = read_control(r, &rec, msg);
        else if (!r->header)
            err = corrupt(msg, "no header at the beginning");
        else if (r->each)
            err = r->each(r->data, rec.value, msg);
    }
    record_iter_fini(&it);
    return err == ERR_NOTFOUND ? 0 : err;
}

static int read_file(struct reader *r, struct vfs_file *f, struct errmsg *msg)
{
    uint64_t pos = 0, size = 0;
    uint8_t *buf = NULL;
    size_t cap = 0;
    int err = f->fs->ops->size(f, &size);
    r->info->size = size;
    while (!err && pos < size) {
        uint8_t head[BATCH_OVERHEAD_BYTES];
        size_t got = 0, whole = 0;
        err = f->fs->ops->pread(f, head, sizeof head, pos, &got);
        if (err)
            break;
        if (got < sizeof head || batch_length(head) < BATCH_HEADER_BYTES - BATCH_OVERHEAD_BYTES ||
            (uint64_t)batch_size(head) > size - pos || batch_size(head) > BATCH_BYTES_MAX_READ) {
            err = corrupt(msg, "it is cut short");
            break;
        }
        whole = batch_size(head);
        if (whole > cap) {
            mem_free(buf);
            cap = whole;
            buf = mem_alloc(cap);
        }
        err = f->fs->ops->pread(f, buf, whole, pos, &got);
        if (!err && got == whole)
            err = batch_parse(slice_of(buf, whole), &whole, msg);
        if (!err)
            err = batch_check_crc(buf, msg);
        if (!err)
            err = read_batch(r, buf, msg);
        pos += whole;
    }
    mem_free(buf);
    if (!err && (!r->header || !r->footer))
        err = corrupt(msg, "header or footer is missing");
    return err;
}

int checkpoint_read(struct vfs *fs, const char *path, struct checkpoint_info *out, checkpoint_each each,
                    void *data, struct errmsg *msg)
{
    struct vfs_file *f;
    memset(out, 0, sizeof *out);
    struct reader r = {.info = out, .each = each, .data = data};
    int err = fs->ops->open(fs, path, VFS_READ, &f, msg);
    if (err)
        return err;
    err = read_file(&r, f, msg);
    vfs_file_unref(f);
    if (!err && out->voters && out->voters->count == 0) { // a node that joins later
        voter_set_unref(out->voters);
        out->voters = NULL;
    }
    if (!err && out->voters && r.plain) { // what stock tools read may be newer only in endpoints
        struct voter_set *merged = voter_set_with_endpoints(out->voters, r.plain);
        voter_set_unref(out->voters);
        out->voters = merged;
    } else if (!err && !out->voters && r.plain &&
               r.plain->count) { // formatted by the reference: the bootstrap rules
        out->voters = voter_set_ref(r.plain);
        out->index = 2;
        out->term = 1;
        out->conf_index = 2;
    }
    voter_set_unref(r.plain);
    if (err) {
        voter_set_unref(out->voters);
        out->voters = NULL;
        err_prefix(msg, "%s", path);
    }
    return err;
}

struct replayer {
    struct image_builder *builder;
    struct arena arena;
    log_offset offset;  // of the last record in the snapshot
    leader_epoch epoch; // of it
};

static int replay_value(void *data, struct slice value, struct errmsg *msg)
{
    struct replayer *p = data;
    struct metadata_record r;
    int err = metadata_record_decode(&r, value, &p->arena, msg);
    if (!err)
        err = image_replay(p->builder, &r, p->offset, p->epoch, msg);
    arena_reset(&p->arena);
    return err;
}

int checkpoint_read_image(struct vfs *fs, const char *path, struct checkpoint_info *out, struct image **image,
                          struct errmsg *msg)
{
    log_offset end;
    leader_epoch epoch;
    struct image *empty = image_empty();
    if (!checkpoint_parse_name(path_base(path), &end,
                               &epoch)) { // ".part": the fetcher gives it under the final name's stem
        char stem[CHECKPOINT_NAME_BYTES];
        (void)snprintf(stem, sizeof stem, "%.42s", path_base(path));
        if (!checkpoint_parse_name(stem, &end, &epoch)) {
            image_unref(empty);
            return err_set(msg, ERR_INVALID, "%s: not the name of a snapshot", path);
        }
    }
    if (end == 0) {
        int err = checkpoint_read(fs, path, out, NULL, NULL, msg);
        *image = empty;
        if (err)
            image_unref(empty);
        out->end_offset = 0;
        out->epoch = epoch;
        return err;
    }
    struct replayer p = {.builder = image_builder_create(empty), .offset = end - 1, .epoch = epoch};
    image_unref(empty);
    arena_init(&p.arena);
    int err = checkpoint_read(fs, path, out, replay_value, &p, msg);
    out->end_offset = end;
    out->epoch = epoch;
    if (err) {
        image_builder_drop(p.builder);
    } else {
        image_replay_offset(p.builder, end - 1, epoch);
        *image = image_builder_finish(p.builder);
    }
    arena_fini(&p.arena);
    return err;
}
