// SPDX-License-Identifier: Apache-2.0
// The verb format: checks everything first, then writes the checkpoint, then meta.properties of each
// directory, that of the metadata directory last of all.
//
// A crash in between leaves a metadata directory without meta.properties: no server starts on it, and the
// next format begins anew. Directories that were finished before keep their ids.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/mem.h"
#include "core/base/path.h"
#include "raft/format.h"
#include "storage/meta_properties.h"
#include "tools/kraft-format/format.h"

#define METADATA_DIR "__cluster_metadata-0"
#define CLUSTER_ID_CHARS 22

struct work {
    const struct format_options *o; // command line
    const struct server_config *c;  // configuration
    struct vfs *fs;                 // the real disk
    struct arena arena;             // what follows from both
    struct meta_dirs *dirs;         // what is there
    struct meta_dir *metadata;      // the one of the metadata log
    bool dynamic;                   // kraft.version 1
    bool fixed_directory;           // --initial-controllers says this node's directory id
    struct uuid directory_id;       // of the metadata directory
    struct quorum_voter *voters;    // initial voters
    uint32_t voters_count;          // of them
    struct record_list records;     // initial metadata records
};

// ---- the command line against the configuration

static int check_cluster_id(const char *id, struct errmsg *msg)
{
    struct uuid u;
    if (!id) {
        return err_set(msg, ERR_INVALID,
                       "--cluster-id is missing: make one with kraft-format random-uuid and use it on every "
                       "node of the cluster");
    }
    size_t len = strlen(id);
    if (len != CLUSTER_ID_CHARS || !uuid_parse(slice_str(id), &u) || uuid_is_zero(u)) {
        return err_set(msg, ERR_INVALID,
                       "--cluster-id %s is no id: it has %zu characters, an id has 22 (letters, digits, - "
                       "and _); kraft-format "
                       "random-uuid makes one",
                       id, len);
    }
    return 0;
}

static int check_quorum_options(struct work *w, struct errmsg *msg)
{
    const struct format_options *o = w->o;
    const struct server_config *c = w->c;
    int given = o->standalone + (o->initial_controllers != NULL) + o->no_initial_controllers;
    int wanted = format_wanted_kraft_version(o);
    const char *option = o->standalone            ? "--standalone"
                         : o->initial_controllers ? "--initial-controllers"
                                                  : "--no-initial-controllers";
    if (given > 1) {
        return err_set(msg, ERR_INVALID,
                       "--standalone, --initial-controllers and --no-initial-controllers exclude each other");
    }
    if (c->voters_count > 0 && given > 0) {
        return err_set(msg, ERR_INVALID,
                       "%s starts a quorum whose voters change at run time, but controller.quorum.voters "
                       "names fixed ones: the node "
                       "would end up in two quorums. Remove the one or the other",
                       option);
    }
    if (c->voters_count > 0 && wanted > 0) {
        return err_set(msg, ERR_INVALID,
                       "kraft.version=1 needs a configuration without controller.quorum.voters");
    }
    if (c->voters_count == 0 && wanted == 0) {
        return err_set(msg, ERR_INVALID,
                       "kraft.version=0 needs controller.quorum.voters in the configuration");
    }
    if (wanted > 1) {
        return err_set(msg, ERR_INVALID, "kraft.version=%d is not known: 0 and 1 are", wanted);
    }
    if (!c->is_controller && (o->standalone || o->initial_controllers)) {
        return err_set(msg, ERR_INVALID, "%s is for controllers, but process.roles has none on this node",
                       option);
    }
    if (c->is_controller && c->voters_count == 0 && given == 0) {
        return err_set(msg, ERR_INVALID,
                       "say how this controller gets its quorum: --standalone (a first node), "
                       "--initial-controllers LIST (several at "
                       "once), or --no-initial-controllers (it joins a cluster that is there)");
    }
    if (!c->is_controller && o->scram_count > 0) {
        fputs("kraft-format: warning: --add-scram has no effect on a node that is only a broker; use it on "
              "the controllers\n",
              stderr);
    }
    w->dynamic = c->voters_count == 0;
    return 0;
}

// ---- voters

static int set_endpoint(const struct work *w, struct quorum_voter *v, struct slice host, uint16_t port,
                        struct errmsg *msg)
{
    if (host.len == 0) {
        return err_set(msg, ERR_INVALID, "this machine has no host name: name one in the listener %s",
                       w->c->controller_listener_names[0]);
    }
    const char *name = w->c->controller_listener_names[0];
    struct quorum_endpoint *e = &v->endpoints[0];
    if (host.len >= sizeof e->host || strlen(name) >= sizeof e->name) {
        return err_set(msg, ERR_INVALID, "the host or listener name of voter %d is too long", v->id);
    }
    memcpy(e->host, host.data, host.len);
    memcpy(e->name, name, strlen(name));
    e->port = port;
    v->endpoints_count = 1;
    v->kraft_version_min = 0;
    v->kraft_version_max = 1;
    return 0;
}

static int voters_from_list(struct work *w, struct errmsg *msg)
{
    struct config_voter *list;
    int32_t count;
    int rc = endpoint_parse_voters(slice_str(w->o->initial_controllers), true, &w->arena, &list, &count, msg);
    if (rc) {
        err_prefix(msg, "--initial-controllers");
        return rc;
    }
    if (count == 0 || count > QUORUM_SERVERS_MAX) {
        return err_set(msg, ERR_INVALID, "--initial-controllers names %d controllers: 1 to %d are possible",
                       count, QUORUM_SERVERS_MAX);
    }
    w->voters = arena_zalloc(&w->arena, (size_t)count * sizeof *w->voters);
    w->voters_count = (uint32_t)count;
    for (int32_t i = 0; i < count; i++) {
        w->voters[i].id = list[i].id;
        w->voters[i].directory_id = list[i].directory;
        rc = set_endpoint(w, &w->voters[i], list[i].host, list[i].port, msg);
        if (rc) {
            return rc;
        }
        if (list[i].id == w->c->id) {
            w->fixed_directory = true;
            w->directory_id = list[i].directory;
        }
    }
    if (!w->fixed_directory) {
        return err_set(msg, ERR_INVALID,
                       "--initial-controllers does not list this node, node.id %d: add it, or use "
                       "--no-initial-controllers",
                       w->c->id);
    }
    return 0;
}

static int make_voters(struct work *w, struct errmsg *msg)
{
    w->directory_id = format_random_uuid(NULL);
    if (w->o->initial_controllers) {
        return voters_from_list(w, msg);
    }
    if (!w->o->standalone) {
        return 0;
    }
    const struct config_endpoint *e = &w->c->controller_advertised;
    if (e->port == 0) {
        return err_set(msg, ERR_INVALID, "--standalone needs a fixed port: listener %s has port 0",
                       (const char *)e->name.data);
    }
    w->voters = arena_zalloc(&w->arena, sizeof *w->voters);
    w->voters_count = 1;
    w->voters[0].id = w->c->id;
    w->voters[0].directory_id = w->directory_id;
    return set_endpoint(w, &w->voters[0], e->host, e->port, msg);
}

// ---- what is there

static int has_log(void *data, const char *name, bool is_dir)
{
    size_t n = strlen(name);
    bool log = !is_dir && ((n == 24 && strcmp(name + 20, ".log") == 0) || strcmp(name, "quorum-state") == 0);
    return log ? ERR_EXISTS : 0;
}

static int look(struct work *w, struct errmsg *msg)
{
    const struct server_config *c = w->c;
    int rc = meta_dirs_read(w->fs, c->log_dirs, c->log_dirs_count, c->metadata_log_dir, w->dirs, msg);
    if (rc) {
        return rc;
    }
    for (uint32_t i = 0; i < w->dirs->count; i++) {
        struct meta_dir *m = &w->dirs->dirs[i];
        if (strcmp(m->path, c->metadata_log_dir) == 0) {
            w->metadata = m;
        }
        if (m->state == META_DIR_FAILED) {
            return err_set(msg, m->err, "%s", m->why.text);
        }
        if (m->state != META_DIR_FORMATTED) {
            continue;
        }
        if (strcmp(m->props.cluster_id, w->o->cluster_id) != 0) {
            return err_set(msg, ERR_EXISTS,
                           "%s is formatted for cluster %s, not for %s: it may hold another cluster's data. "
                           "Name another directory in "
                           "log.dirs, or empty this one if its data is no longer wanted",
                           m->path, m->props.cluster_id, w->o->cluster_id);
        }
        if (m->props.id != c->id) {
            return err_set(
                msg, ERR_EXISTS,
                "%s is formatted for node %d, but node.id is %d: give each node directories of its own",
                m->path, m->props.id, c->id);
        }
    }
    for (uint32_t i = 0; i < w->dirs->count && !w->o->ignore_formatted; i++) {
        // Without a formatted metadata directory the others are left from a format that did not come to its
        // end.
        if (w->metadata->state == META_DIR_FORMATTED && w->dirs->dirs[i].state == META_DIR_FORMATTED) {
            return err_set(msg, ERR_EXISTS,
                           "%s is already formatted: add --ignore-formatted to format only the others",
                           w->dirs->dirs[i].path);
        }
    }
    char *log = path_join(c->metadata_log_dir, METADATA_DIR);
    if (w->metadata->state == META_DIR_EMPTY && w->fs->ops->list(w->fs, log, has_log, NULL) == ERR_EXISTS) {
        rc = err_set(msg, ERR_EXISTS,
                     "%s holds a metadata log, but %s has no meta.properties: formatting would lose it. "
                     "Restore meta.properties, or "
                     "empty the directory if its data is no longer wanted",
                     log, c->metadata_log_dir);
    }
    mem_free(log);
    return rc;
}

// ---- writing

static int write_checkpoint(struct work *w, struct errmsg *msg)
{
    struct raft_format f = {.dynamic = w->dynamic, .voters = w->voters, .voters_count = w->voters_count};
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    f.now = (time_ms)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    struct slice *values = arena_alloc(&w->arena, (w->records.count + 1) * sizeof *values);
    for (uint32_t i = 0; i < w->records.count; i++) {
        size_t len = metadata_record_size(&w->records.items[i]);
        uint8_t *bytes = arena_alloc(&w->arena, len);
        int rc = metadata_record_encode_into(&w->records.items[i], bytes);
        if (rc) {
            return err_set(msg, rc, "a metadata record cannot be written: %s", err_text(rc));
        }
        values[i] = slice_of(bytes, len);
    }
    f.values = values;
    f.values_count = w->records.count;
    char *log = path_join(w->c->metadata_log_dir, METADATA_DIR);
    int rc = raft_format_write(w->fs, log, &f, msg);
    mem_free(log);
    return rc;
}

static int write_properties(struct work *w, struct meta_dir *m, struct uuid directory_id, struct errmsg *msg)
{
    memset(&m->props, 0, sizeof m->props);
    memcpy(m->props.cluster_id, w->o->cluster_id, strlen(w->o->cluster_id));
    m->props.id = w->c->id;
    m->props.directory_id = directory_id;
    return meta_properties_write(w->fs, m->path, &m->props, msg);
}

static int write_all(struct work *w, struct errmsg *msg)
{
    bool fresh = w->metadata->state != META_DIR_FORMATTED;
    for (uint32_t i = 0; i < w->dirs->count; i++) {
        int rc = format_make_directory(w->dirs->dirs[i].path, msg);
        if (rc) {
            return rc;
        }
    }
    // A node that is only a broker gets all metadata from the controllers: nothing is prepared for it, as in
    // Kafka.
    int rc = fresh && w->c->is_controller ? write_checkpoint(w, msg) : 0;
    for (uint32_t i = 0; rc == 0 && i < w->dirs->count; i++) {
        struct meta_dir *m = &w->dirs->dirs[i];
        if (m->state == META_DIR_EMPTY && m != w->metadata) {
            rc = write_properties(w, m, format_random_uuid(NULL), msg);
        }
    }
    return rc == 0 && fresh ? write_properties(w, w->metadata, w->directory_id, msg) : rc;
}

static void report(const struct work *w, const enum meta_dir_state *before)
{
    char id[UUID_TEXT_BYTES];
    uint32_t made = 0;
    for (uint32_t i = 0; i < w->dirs->count; i++) {
        const struct meta_dir *m = &w->dirs->dirs[i];
        if (before[i] == META_DIR_FORMATTED) {
            printf("%s was formatted already\n", m->path);
            continue;
        }
        made++;
        if (w->o->dry_run) {
            printf("%s would be formatted%s\n", m->path,
                   m == w->metadata && w->c->is_controller ? ", with the metadata log" : "");
            continue;
        }
        uuid_format(m->props.directory_id, id);
        printf("%s formatted%s (directory id %s)\n", m->path,
               m == w->metadata && w->c->is_controller ? ", with the metadata log" : "", id);
    }
    if (made == 0) {
        printf("All directories are formatted already; nothing was changed.\n");
    } else if (!w->o->dry_run) {
        printf("Node %d of cluster %s is ready: kraft-server %s starts it.\n", w->c->id, w->o->cluster_id,
               w->o->config_path);
    }
}

static int run(struct work *w, struct errmsg *msg)
{
    int rc = check_cluster_id(w->o->cluster_id, msg);
    rc = rc ? rc : check_quorum_options(w, msg);
    rc = rc ? rc : make_voters(w, msg);
    rc = rc ? rc : format_initial_records(w->o, &w->arena, &w->records, msg);
    rc = rc ? rc : look(w, msg);
    if (rc) {
        return rc;
    }
    enum meta_dir_state before[META_DIRS_MAX];
    for (uint32_t i = 0; i < w->dirs->count; i++) {
        before[i] = w->dirs->dirs[i].state;
    }
    rc = w->o->dry_run ? 0 : write_all(w, msg);
    if (rc == 0) {
        report(w, before);
    }
    return rc;
}

enum format_exit format_run(const struct format_options *o)
{
    struct server_config *c;
    struct errmsg msg = {""};
    enum format_exit exit_code = format_load_config(o, &c);
    if (!c) {
        return exit_code;
    }
    struct work w = {.o = o, .c = c, .fs = vfs_posix(), .dirs = mem_zalloc(sizeof *w.dirs)};
    arena_init(&w.arena);
    record_list_init(&w.records, &w.arena);
    int rc = run(&w, &msg);
    if (rc) {
        fprintf(stderr, "kraft-format: %s\n", msg.text);
    }
    arena_fini(&w.arena);
    mem_free(w.dirs);
    server_config_free(c);
    return rc == 0 ? FORMAT_OK : rc == ERR_IO || rc == ERR_NOSPACE ? FORMAT_FAILED : FORMAT_REFUSED;
}
