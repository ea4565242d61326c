// SPDX-License-Identifier: Apache-2.0
// Reading and writing of meta.properties, and the rules that keep a node off the wrong disks.
#include "storage/meta_properties.h"

#include <stdio.h>

#include "core/base/mem.h"
#include "core/base/properties.h"
#include "storage/layout.h"
#include "storage/small_file.h"

// A decimal number that fits a node id.
static bool read_id(struct slice text, node_id *out)
{
    int64_t n = 0;
    if (text.len == 0 || text.len > 10) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        n = n * 10 + (text.data[i] - '0');
    }
    *out = (node_id)n;
    return n <= INT32_MAX;
}

static int take_fields(const struct properties *p, struct meta_properties *out, struct errmsg *msg)
{
    struct slice version = properties_get(p, "version"), cluster = properties_get(p, "cluster.id");
    struct slice id = properties_get(p, "node.id"), directory = properties_get(p, "directory.id");
    if (slice_is_null(version)) {
        return err_set(msg, ERR_CORRUPT, "has no \"version\"");
    }
    if (slice_equal_str(version, "0")) {
        return err_set(msg, ERR_UNSUPPORTED,
                       "has version 0: it is from a cluster with ZooKeeper; migrate it with Kafka 3.9 first");
    }
    if (!slice_equal_str(version, "1")) {
        return err_set(msg, ERR_UNSUPPORTED, "has version " SLICE_FMT ", which this release does not know",
                       SLICE_ARG(version));
    }
    if (slice_is_null(cluster) || cluster.len == 0 || cluster.len >= sizeof out->cluster_id) {
        return err_set(msg, ERR_CORRUPT, "has no cluster.id");
    }
    if (slice_is_null(id) || !read_id(id, &out->id)) {
        return err_set(msg, ERR_CORRUPT, "has no node.id");
    }
    if (!slice_is_null(directory) && !uuid_parse(directory, &out->directory_id)) {
        return err_set(msg, ERR_CORRUPT,
                       "has directory.id \"" SLICE_FMT "\", which is no id of 22 characters",
                       SLICE_ARG(directory));
    }
    memcpy(out->cluster_id, cluster.data, cluster.len);
    return 0;
}

int meta_properties_parse(struct slice text, struct meta_properties *out, struct errmsg *msg)
{
    struct properties p;
    memset(out, 0, sizeof *out);
    properties_init(&p);
    int rc = properties_parse(&p, text, msg) ? ERR_CORRUPT : take_fields(&p, out, msg);
    properties_fini(&p);
    return rc;
}

void meta_properties_print(const struct meta_properties *m, struct strbuf *out)
{
    char text[UUID_TEXT_BYTES], number[12];
    (void)snprintf(number, sizeof number, "%d", m->id);
    properties_write_line(out, SLICE_LIT("version"), SLICE_LIT("1"));
    properties_write_line(out, SLICE_LIT("cluster.id"), slice_str(m->cluster_id));
    properties_write_line(out, SLICE_LIT("node.id"), slice_str(number));
    if (!uuid_is_zero(m->directory_id)) {
        uuid_format(m->directory_id, text);
        properties_write_line(out, SLICE_LIT("directory.id"), slice_str(text));
    }
}

int meta_properties_read(struct vfs *fs, const char *dir, struct meta_properties *out, struct errmsg *msg)
{
    char path[LAYOUT_PATH_BYTES], *text;
    size_t len;
    if (!layout_join(path, dir, META_PROPERTIES_NAME)) {
        return err_set(msg, ERR_TOO_LARGE, "the path %s is too long", dir);
    }
    int rc = small_file_read(fs, path, &text, &len, msg);
    if (rc) {
        return rc;
    }
    rc = meta_properties_parse(slice_of(text, len), out, msg);
    mem_free(text);
    if (rc) {
        err_prefix(msg, "%s", path);
    }
    return rc;
}

int meta_properties_write(struct vfs *fs, const char *dir, const struct meta_properties *m,
                          struct errmsg *msg)
{
    char path[LAYOUT_PATH_BYTES];
    if (!layout_join(path, dir, META_PROPERTIES_NAME)) {
        return err_set(msg, ERR_TOO_LARGE, "the path %s is too long", dir);
    }
    struct strbuf text;
    strbuf_init(&text);
    meta_properties_print(m, &text);
    int rc = small_file_replace(fs, path, strbuf_slice(&text), true, msg);
    strbuf_fini(&text);
    return rc;
}

// ---- all directories of a node

static void read_one(struct vfs *fs, struct meta_dirs *d, const char *path)
{
    struct meta_dir *m = &d->dirs[d->count++];
    m->path = path;
    m->why.text[0] = '\0';
    int rc = meta_properties_read(fs, path, &m->props, &m->why);
    m->state = rc == 0 ? META_DIR_FORMATTED : rc == ERR_NOTFOUND ? META_DIR_EMPTY : META_DIR_FAILED;
    m->err = rc;
    if (rc == 0 && d->cluster_id[0] == '\0') {
        memcpy(d->cluster_id, m->props.cluster_id, sizeof d->cluster_id);
    }
}

int meta_dirs_read(struct vfs *fs, const char *const *paths, uint32_t count, const char *metadata_dir,
                   struct meta_dirs *out, struct errmsg *msg)
{
    out->count = 0;
    out->cluster_id[0] = '\0';
    if (count >= META_DIRS_MAX) {
        return err_set(msg, ERR_TOO_LARGE, "more than %d log directories", META_DIRS_MAX - 1);
    }
    bool among = false;
    for (uint32_t i = 0; i < count; i++) {
        read_one(fs, out, paths[i]);
        among = among || strcmp(paths[i], metadata_dir) == 0;
    }
    if (!among) {
        read_one(fs, out, metadata_dir);
    }
    return 0;
}

static int check_one(const struct meta_dirs *d, const struct meta_dir *m, node_id id, const char *cluster_id,
                     struct errmsg *msg)
{
    const struct meta_properties *p = &m->props;
    if (strcmp(p->cluster_id, cluster_id) != 0) {
        return err_set(
            msg, ERR_INVALID,
            "%s/" META_PROPERTIES_NAME
            " belongs to cluster %s, not to %s: this directory holds another cluster's data. "
            "Name another directory in log.dirs, or empty this one if its data is no longer wanted",
            m->path, p->cluster_id, cluster_id);
    }
    if (p->id != id) {
        return err_set(msg, ERR_INVALID,
                       "%s/" META_PROPERTIES_NAME
                       " belongs to node %d, but node.id is %d: give each node directories of its own",
                       m->path, p->id, id);
    }
    if (!uuid_is_zero(p->directory_id) && uuid_is_reserved(p->directory_id)) {
        return err_set(msg, ERR_INVALID,
                       "%s/" META_PROPERTIES_NAME " has a reserved directory.id: format the directory anew",
                       m->path);
    }
    for (const struct meta_dir *o = d->dirs; o < m; o++) {
        if (o->state == META_DIR_FORMATTED && !uuid_is_zero(p->directory_id) &&
            uuid_equal(o->props.directory_id, p->directory_id)) {
            return err_set(msg, ERR_INVALID,
                           "%s and %s have the same directory.id: one is a copy of the other; remove the "
                           "copy from log.dirs",
                           o->path, m->path);
        }
    }
    return 0;
}

int meta_dirs_check(const struct meta_dirs *d, const char *metadata_dir, node_id id, const char *cluster_id,
                    struct errmsg *msg)
{
    const char *expected = cluster_id ? cluster_id : d->cluster_id;
    for (uint32_t i = 0; i < d->count; i++) {
        const struct meta_dir *m = &d->dirs[i];
        if (m->state == META_DIR_FAILED && (m->err == ERR_CORRUPT || m->err == ERR_UNSUPPORTED)) {
            return err_set(msg, m->err, "%s", m->why.text);
        }
        int rc = m->state == META_DIR_FORMATTED ? check_one(d, m, id, expected, msg) : 0;
        if (rc) {
            return rc;
        }
        if (strcmp(m->path, metadata_dir) != 0) {
            continue;
        }
        if (m->state == META_DIR_EMPTY) {
            return err_set(msg, ERR_NOTFOUND,
                           "%s is not formatted: run kraft-format format --config FILE --cluster-id ID (and "
                           "--standalone for the "
                           "first node) before the first start",
                           m->path);
        }
        if (m->state == META_DIR_FAILED) {
            return err_set(msg, ERR_IO,
                           "the metadata log directory cannot be read: %s. Give it to the user that runs the "
                           "server, or mend the disk",
                           m->why.text);
        }
    }
    return 0;
}

int meta_dirs_complete(struct vfs *fs, struct meta_dirs *d, node_id id, struct uuid (*make_id)(void *data),
                       void *data, struct errmsg *msg)
{
    for (uint32_t i = 0; i < d->count; i++) {
        struct meta_dir *m = &d->dirs[i];
        if (m->state == META_DIR_FAILED ||
            (m->state == META_DIR_FORMATTED && !uuid_is_zero(m->props.directory_id))) {
            continue;
        }
        if (m->state == META_DIR_EMPTY) {
            memset(&m->props, 0, sizeof m->props);
            memcpy(m->props.cluster_id, d->cluster_id, sizeof d->cluster_id);
            m->props.id = id;
            int rc = fs->ops->mkdir(fs, m->path);
            if (rc && rc != ERR_EXISTS) {
                return err_set(msg, rc, "%s cannot be made: %s", m->path, err_text(rc));
            }
        }
        m->props.directory_id = make_id(data);
        int rc = meta_properties_write(fs, m->path, &m->props, msg);
        if (rc) {
            return rc;
        }
        m->state = META_DIR_FORMATTED;
    }
    return 0;
}
