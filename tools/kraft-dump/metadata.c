// SPDX-License-Identifier: Apache-2.0
// kraft-dump metadata: what the cluster's metadata was at an offset, by replay of a controller's or broker's
// directory.
//
// The newest snapshot at or before the offset is loaded, then the log behind it is replayed up to the offset.
// The state is printed as the records that a snapshot of it would have, in canonical order; so two states are
// compared line by line.
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/metadata/image.h"
#include "core/metadata/replay.h"
#include "core/metadata/snapshot.h"
#include "core/protocol/json.h"
#include "core/protocol/metadata_record.h"
#include "tools/kraft-dump/dump.h"

static const char help[] =
    "kraft-dump metadata shows the state of the cluster as its metadata log tells it.\n"
    "\n"
    "Usage: kraft-dump metadata [OPTION]... DIRECTORY\n"
    "\n"
    "DIRECTORY is a node's metadata log directory, or the __cluster_metadata-0 in it. The node may be "
    "running.\n"
    "\n"
    "  --at OFFSET           the state after the record at this offset (the end of the log)\n"
    "  --diff FROM           what changed since the state after the record at FROM: lines with - and +\n"
    "  --type NAME           only records of this type, e.g. TopicRecord\n"
    "  --output text|json    json: an object a line\n"
    "\n"
    "Not everything at the end of the log need be committed: what the controllers have not agreed on may "
    "still go.\n"
    "\n"
    "Examples:\n"
    "  kraft-dump metadata data/metadata\n"
    "  kraft-dump metadata --at 1200 --type PartitionRecord data/metadata\n"
    "  kraft-dump metadata --diff 1200 data/metadata\n"
    "\n"
    "Exit status: 0 all shown, 1 something is damaged or unknown, 2 bad command line, 3 a file cannot be "
    "read.\n";

struct log_name {
    char name[256];     // file name
    log_offset offset;  // base offset of a segment; end offset of a snapshot
    leader_epoch epoch; // of a snapshot
};
struct names {
    struct log_name *list; // sorted by offset; owned
    size_t count;          // of them
};
struct metadata {
    char *dir;              // folder of the log; owned
    struct names segments;  // .log
    struct names snapshots; // .checkpoint
    const char *type;       // --type
    bool json;              // --output json
    int status;             // DUMP_BAD after damage
};

static int by_offset(const void *a, const void *b)
{
    const struct log_name *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void add_name(struct names *n, const char *name, log_offset offset, leader_epoch epoch)
{
    n->list = mem_realloc(n->list, (n->count + 1) * sizeof(*n->list));
    struct log_name *l = &n->list[n->count++];
    snprintf(l->name, sizeof(l->name), "%s", name);
    l->offset = offset;
    l->epoch = epoch;
}

static int list_files(struct metadata *m)
{
    DIR *dir = opendir(m->dir);
    if (!dir) {
        fprintf(stderr, "kraft-dump: %s: %s\n", m->dir, strerror(errno));
        return DUMP_IO;
    }
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        int64_t offset;
        int32_t epoch;
        int end = 0;
        if (sscanf(e->d_name, "%20" SCNd64 "-%10" SCNd32 ".checkpoint%n", &offset, &epoch, &end) == 2 &&
            end > 0 && !e->d_name[end])
            add_name(&m->snapshots, e->d_name, offset, epoch);
        else if (sscanf(e->d_name, "%20" SCNd64 ".log%n", &offset, &end) == 1 && end > 0 && !e->d_name[end])
            add_name(&m->segments, e->d_name, offset, -1);
    }
    closedir(dir);
    if (m->segments.count)
        qsort(m->segments.list, m->segments.count, sizeof(*m->segments.list), by_offset);
    if (m->snapshots.count)
        qsort(m->snapshots.list, m->snapshots.count, sizeof(*m->snapshots.list), by_offset);
    if (m->segments.count + m->snapshots.count > 0)
        return DUMP_OK;
    fprintf(stderr, "kraft-dump: %s: there is no metadata log\n", m->dir);
    return DUMP_IO;
}

// ---- replay

struct replaying {
    struct metadata *m;              // the command
    struct image_builder *builder;   // state so far
    struct codec_cache *cache;       // for unpacking
    struct arena arena;              // one record
    log_offset next;                 // offsets below it are in the state
    log_offset end;                  // replay stops before this offset
    const struct log_name *snapshot; // being loaded, or NULL: the log
};

static void complain(struct replaying *r, const char *file, const char *what)
{
    r->m->status = DUMP_BAD;
    fprintf(stderr, "kraft-dump: %s/%s: %s\n", r->m->dir, file, what);
}

static void replay_record(struct replaying *r, const char *file, const struct record *record,
                          leader_epoch epoch)
{
    struct metadata_record m;
    struct errmsg err = {{0}};
    log_offset offset = r->snapshot ? r->snapshot->offset - 1 : record->offset;
    int rc = metadata_record_decode(&m, record->value, &r->arena, &err);
    if (rc == 0)
        rc = image_replay(r->builder, &m, offset, r->snapshot ? r->snapshot->epoch : epoch, &err);
    if (rc) {
        err_prefix(&err, "offset %lld", (long long)record->offset);
        complain(r, file, err.text);
    }
    arena_reset(&r->arena);
}

static void replay_batch(struct replaying *r, const char *file, const uint8_t *b)
{
    struct record_iter it;
    struct record record;
    struct errmsg err = {{0}};
    int rc;
    if (batch_is_control(b)) {
        if (!r->snapshot)
            image_replay_offset(r->builder, batch_last_offset(b), batch_leader_epoch(b));
        return;
    }
    record_iter_init(&it, b, r->cache, NULL);
    while ((rc = record_iter_next(&it, &record, &err)) == 0)
        if (r->snapshot || (record.offset >= r->next && record.offset < r->end))
            replay_record(r, file, &record, batch_leader_epoch(b));
    record_iter_fini(&it);
    if (rc != ERR_NOTFOUND)
        complain(r, file, err.text);
}

static int replay_file(struct replaying *r, const char *name)
{
    struct dump_file f;
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", r->m->dir, name);
    int status = dump_file_open(&f, path);
    if (status)
        return status;
    struct batch_iter it = batch_iter_of(f.bytes);
    while (batch_iter_next(&it)) {
        struct errmsg err = {{0}};
        if (!r->snapshot && (batch_last_offset(it.batch) < r->next || batch_base_offset(it.batch) >= r->end))
            continue;
        if (batch_check_crc(it.batch, &err)) {
            complain(r, name, err.text);
            break;
        }
        replay_batch(r, name, it.batch);
        if (!r->snapshot)
            r->next = batch_next_offset(it.batch);
    }
    if (it.rest.len > 0 && it.err != ERR_AGAIN) // a partial batch at the end is a write under way
        complain(r, name, "no batch starts where one should");
    dump_file_close(&f);
    return DUMP_OK;
}

// State after the record before `end`. The caller owns the reference; NULL: a file cannot be read.
static const struct image *image_at(struct metadata *m, log_offset end)
{
    struct image *empty = image_empty();
    struct replaying r = {
        .m = m, .builder = image_builder_create(empty), .cache = codec_cache_create(), .end = end};
    int status = DUMP_OK;
    image_unref(empty);
    arena_init(&r.arena);
    for (size_t i = 0; i < m->snapshots.count;
         i++) // the one at offset 0 is what format left; the log repeats it
        if (m->snapshots.list[i].offset > 0 && m->snapshots.list[i].offset <= end)
            r.snapshot = &m->snapshots.list[i];
    if (r.snapshot) {
        status = replay_file(&r, r.snapshot->name);
        r.next = r.snapshot->offset;
        r.snapshot = NULL;
    }
    for (size_t i = 0; status == DUMP_OK && i < m->segments.count; i++) {
        bool past = m->segments.list[i].offset >= end;
        bool before = i + 1 < m->segments.count && m->segments.list[i + 1].offset <= r.next;
        if (!past && !before)
            status = replay_file(&r, m->segments.list[i].name);
    }
    arena_fini(&r.arena);
    codec_cache_destroy(r.cache);
    if (status) {
        m->status = status;
        image_builder_drop(r.builder);
        return NULL;
    }
    return image_builder_finish(r.builder);
}

// ---- printing

struct text_lines {
    char **list;  // owned, as are the lines
    size_t count; // of them
};

static char *line_of(const struct metadata *m, const struct metadata_record *record)
{
    const struct kp_message_type *t = kp_message_of_metadata((uint32_t)record->type);
    json_t *data = kp_message_to_json(t, &record->body, record->version);
    char *text;
    if (m->json) {
        json_t *json =
            json_pack("{s:s, s:i, s:o}", "type", t->name, "version", record->version, "data", data);
        text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        return text;
    }
    char *fields = json_dumps(data, JSON_COMPACT);
    json_decref(data);
    size_t room = strlen(t->name) + strlen(fields) + 2;
    text = malloc(room);
    if (text)
        snprintf(text, room, "%s %s", t->name, fields);
    free(fields);
    return text;
}

static struct text_lines lines_of(const struct metadata *m, const struct image *image)
{
    struct text_lines lines = {0};
    struct arena arena;
    struct metadata_record record;
    struct image_snapshot *s = image_snapshot_create(image);
    arena_init(&arena);
    while (image_snapshot_next(s, &arena, &record)) {
        if (!m->type || strcmp(m->type, metadata_record_type_name((uint32_t)record.type)) == 0) {
            lines.list = mem_realloc(lines.list, (lines.count + 1) * sizeof(*lines.list));
            lines.list[lines.count++] = line_of(m, &record);
        }
        arena_reset(&arena);
    }
    arena_fini(&arena);
    image_snapshot_free(s);
    return lines;
}

static void free_lines(struct text_lines *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->list[i]);
    mem_free(l->list);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void print_difference(struct text_lines *before, struct text_lines *after)
{
    size_t i = 0, k = 0;
    if (before->count)
        qsort(before->list, before->count, sizeof(char *), by_text);
    if (after->count)
        qsort(after->list, after->count, sizeof(char *), by_text);
    while (i < before->count || k < after->count) {
        int order = i == before->count ? 1 : k == after->count ? -1 : strcmp(before->list[i], after->list[k]);
        if (order < 0)
            printf("-%s\n", before->list[i]);
        else if (order > 0)
            printf("+%s\n", after->list[k]);
        i += order <= 0;
        k += order >= 0;
    }
}

static void show(struct metadata *m, log_offset at, log_offset since)
{
    const struct image *after = image_at(m, at == INT64_MAX ? at : at + 1);
    const struct image *before = since >= 0 && after ? image_at(m, since + 1) : NULL;
    if (after && (since < 0 || before)) {
        struct text_lines lines = lines_of(m, after);
        fprintf(stderr, "offset %lld, epoch %d\n", (long long)image_offset(after), image_epoch(after));
        if (before) {
            struct text_lines old = lines_of(m, before);
            print_difference(&old, &lines);
            free_lines(&old);
        } else {
            for (size_t i = 0; i < lines.count; i++)
                puts(lines.list[i]);
        }
        free_lines(&lines);
    }
    image_unref(after);
    image_unref(before);
}

// The folder itself, or __cluster_metadata-0 in it.
static char *find_dir(const char *given)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/__cluster_metadata-0", given);
    DIR *dir = opendir(path);
    if (dir)
        closedir(dir);
    return mem_strdup(dir ? path : given);
}

static bool parse_offset(const char *text, log_offset *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return *text && !*end && !errno && *out >= 0;
}

int dump_metadata(int argc, char **argv)
{
    struct metadata m = {0};
    const char *given = NULL;
    log_offset at = INT64_MAX, since = -1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool good = true;
        if (strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            return DUMP_OK;
        }
        if (strncmp(argv[i], "--", 2) != 0) {
            good = given == NULL;
            given = argv[i];
        } else if (strcmp(argv[i], "--at") == 0) {
            good = parse_offset(value, &at);
        } else if (strcmp(argv[i], "--diff") == 0) {
            good = parse_offset(value, &since);
        } else if (strcmp(argv[i], "--type") == 0) {
            m.type = value;
        } else if (strcmp(argv[i], "--output") == 0) {
            m.json = strcmp(value, "json") == 0;
            good = m.json || strcmp(value, "text") == 0;
        } else {
            good = false;
        }
        if (!good)
            return dump_usage_error("metadata", "%s is not understood", argv[i]);
        if (strncmp(argv[i], "--", 2) == 0)
            i++;
    }
    if (!given)
        return dump_usage_error("metadata", "no directory was given");
    m.dir = find_dir(given);
    int status = list_files(&m);
    if (status == DUMP_OK) {
        show(&m, at, since);
        status = m.status;
    }
    mem_free(m.segments.list);
    mem_free(m.snapshots.list);
    mem_free(m.dir);
    return status;
}
