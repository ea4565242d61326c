// SPDX-License-Identifier: Apache-2.0
// What lies in a log directory, and the retiring and removing of partition directories.
#include <stdio.h>
#include "core/base/mem.h"
#include "storage/log_impl.h"
#include "storage/partition_metadata.h"
#include "storage/text_scan.h"

#define NAME_BYTES_MAX 255 // of a file name, on every file system that is in use

static const char *const kind_suffix[] = {
    [LOG_DIR_PARTITION] = "",
    [LOG_DIR_DELETED] = "-delete",
    [LOG_DIR_STRAY] = "-stray",
    [LOG_DIR_FUTURE] = "-future",
};

// "TOPIC-N" of `len` bytes.
static bool parse_plain(const char *name, size_t len, char topic[250], partition_id *partition)
{
    size_t dash = len;
    while (dash > 0 && name[dash - 1] != '-')
        dash--;
    if (dash < 2 || dash - 1 > 249 || dash == len) // no dash, no topic or no number
        return false;
    struct slice digits = slice_of(name + dash, len - dash);
    int64_t n;
    if ((digits.data[0] == '0' && digits.len > 1) || !text_number(digits, &n) || n < 0 || n > INT32_MAX)
        return false;
    memcpy(topic, name, dash - 1);
    topic[dash - 1] = 0;
    *partition = (partition_id)n;
    return true;
}

bool log_dir_parse_name(const char *name, char topic[250], partition_id *partition, enum log_dir_kind *kind)
{
    size_t len = strlen(name);
    for (int k = LOG_DIR_DELETED; k <= LOG_DIR_FUTURE; k++) {
        size_t n = strlen(kind_suffix[k]);
        if (len <= n || strcmp(name + len - n, kind_suffix[k]) != 0)
            continue;
        size_t dot = len - n;
        while (dot > 0 && name[dot - 1] != '.')
            dot--;
        *kind = (enum log_dir_kind)k;
        return dot > 1 && parse_plain(name, dot - 1, topic, partition);
    }
    *kind = LOG_DIR_PARTITION;
    return parse_plain(name, len, topic, partition);
}

// ---- listing ----------------------------------------------------------------------------------------------
struct listing {
    struct log_dir *d;
    int (*each)(void *data, const struct log_dir_entry *e);
    void *data;
    struct errmsg *msg;
};

static int list_one(void *data, const char *name, bool is_dir)
{
    struct listing *l = data;
    struct log_dir *d = l->d;
    struct log_dir_entry e = {.partition = -1};
    if (!is_dir || strlen(name) >= sizeof(e.name))
        return 0;
    (void)snprintf(e.name, sizeof(e.name), "%s", name);
    if (!log_dir_parse_name(name, e.topic, &e.partition, &e.kind))
        e.kind = LOG_DIR_FOREIGN;
    if (e.kind == LOG_DIR_PARTITION) {
        char path[LAYOUT_PATH_BYTES];
        struct errmsg why;
        log_dir__path(d, name, path);
        int rc = partition_metadata_read(d->fs, path, &e.topic_id, &why);
        if (rc && rc != ERR_NOTFOUND && rc != ERR_CORRUPT)
            return err_set(l->msg, rc, "%s", why.text);
        e.metadata_missing = rc != 0;
        struct log_dir_saved saved;
        log_dir__saved(d, e.topic, e.partition, &saved);
        e.clean = d->was_clean && !d->checkpoint_bad;
        e.high_watermark = saved.watermark > 0 ? saved.watermark : 0;
    }
    return l->each(l->data, &e);
}

static int list_manifest(struct listing *l)
{
    size_t at = 0;
    const struct hmap_slot *slot;
    while ((slot = hmap_next(&l->d->saved, &at)) != NULL) {
        const struct log_dir_saved *s = slot->value;
        struct log_dir_entry e = {
            .kind = LOG_DIR_PARTITION, .partition = s->partition, .clean = true, .from_manifest = true};
        if (!s->manifest)
            continue;
        (void)snprintf(e.name, sizeof(e.name), "%s", s->name);
        (void)snprintf(e.topic, sizeof(e.topic), "%.*s", (int)s->topic_len, s->name);
        e.topic_id = s->topic_id;
        e.high_watermark = s->watermark;
        int rc = l->each(l->data, &e);
        if (rc)
            return rc;
    }
    return 0;
}

int log_dir_list(struct log_dir *d, int (*each)(void *, const struct log_dir_entry *), void *data,
                 struct errmsg *msg)
{
    struct listing l = {d, each, data, msg};
    if (d->has_manifest)
        return list_manifest(&l);
    if (msg)
        msg->text[0] = 0;
    int rc = d->fs->ops->list(d->fs, d->path, list_one, &l);
    if (rc && msg && !msg->text[0])
        (void)err_set(msg, rc, "cannot list %s: %s", d->path, err_text(rc));
    return rc;
}

// ---- retiring ---------------------------------------------------------------------------------------------
int log_dir_retire(struct log_dir *d, const char *name, const char *uuid_text, enum log_dir_kind kind,
                   struct errmsg *msg)
{
    char topic[250], suffix[LOG_DIR_NAME_BYTES], to[2 * LOG_DIR_NAME_BYTES];
    partition_id partition;
    enum log_dir_kind was;
    if (kind < LOG_DIR_DELETED || kind > LOG_DIR_FUTURE || !log_dir_parse_name(name, topic, &partition, &was))
        return err_set(msg, ERR_INVALID, "%s is no partition directory", name);
    int n = snprintf(suffix, sizeof(suffix), "-%d.%s%s", (int)partition, uuid_text, kind_suffix[kind]);
    if (n < 0 || n >= NAME_BYTES_MAX)
        return err_set(msg, ERR_INVALID, "%s is no unique part of a name", uuid_text);
    (void)snprintf(to, sizeof(to), "%.*s%s", NAME_BYTES_MAX - n, topic, suffix); // a long topic name is cut
    char from_path[LAYOUT_PATH_BYTES], to_path[LAYOUT_PATH_BYTES];
    log_dir__path(d, name, from_path);
    log_dir__path(d, to, to_path);
    int rc = d->fs->ops->rename(d->fs, from_path, to_path);
    if (rc == 0)
        rc = d->fs->ops->sync_dir(d->fs, d->path);
    if (rc == 0)
        return 0;
    (void)err_set(msg, rc, "cannot rename %s to %s: %s", from_path, to, err_text(rc));
    if (rc != ERR_NOTFOUND)
        log_dir_offline(d, "%s: cannot rename %s: %s", d->path, name, err_text(rc));
    return rc;
}

// ---- removing ---------------------------------------------------------------------------------------------
struct names {
    char **list; // mem_alloc each
    unsigned count, cap;
    bool doomed_only; // directories with the -delete suffix; else every file
};

static int collect(void *data, const char *name, bool is_dir)
{
    struct names *n = data;
    char topic[250];
    partition_id partition;
    enum log_dir_kind kind;
    if (n->doomed_only &&
        (!is_dir || !log_dir_parse_name(name, topic, &partition, &kind) || kind != LOG_DIR_DELETED))
        return 0;
    if (n->count == n->cap) {
        n->cap = n->cap ? n->cap * 2 : 16;
        n->list = mem_realloc(n->list, n->cap * sizeof(*n->list));
    }
    n->list[n->count++] = mem_strdup(name);
    return 0;
}

static void names_fini(struct names *n)
{
    for (unsigned i = 0; i < n->count; i++)
        mem_free(n->list[i]);
    mem_free(n->list);
}

static int remove_dir(struct log_dir *d, const char *name, struct errmsg *msg)
{
    char dir[LAYOUT_PATH_BYTES], path[LAYOUT_PATH_BYTES];
    struct names files = {NULL, 0, 0, false};
    log_dir__path(d, name, dir);
    int rc = d->fs->ops->list(d->fs, dir, collect, &files);
    for (unsigned i = 0; i < files.count && rc == 0; i++)
        if (layout_join(path, dir, files.list[i]))
            rc = d->fs->ops->unlink(d->fs, path);
    names_fini(&files);
    if (rc == 0)
        rc = d->fs->ops->rmdir(d->fs, dir);
    return rc ? err_set(msg, rc, "cannot remove %s: %s", dir, err_text(rc)) : 0;
}

int log_dir_remove_doomed(struct log_dir *d, unsigned *removed, struct errmsg *msg)
{
    struct names dirs = {NULL, 0, 0, true};
    unsigned done = 0;
    int first = d->fs->ops->list(d->fs, d->path, collect, &dirs);
    if (first)
        (void)err_set(msg, first, "cannot list %s: %s", d->path, err_text(first));
    for (unsigned i = 0; i < dirs.count; i++) { // one that fails does not keep the others
        struct errmsg why;
        int rc = remove_dir(d, dirs.list[i], &why);
        done += rc == 0;
        if (rc && first == 0)
            first = err_set(msg, rc, "%s", why.text);
    }
    names_fini(&dirs);
    if (removed)
        *removed = done;
    return first;
}
