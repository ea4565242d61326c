// SPDX-License-Identifier: Apache-2.0
// Start: reads a metadata directory into what libraft's load callback hands over once.
//
//   1. leftovers of a crash (`.part`, `.tmp`, `.deleted`) are removed
//   2. quorum-state: term and vote; a file that cannot be read is never taken for a fresh node
//   3. the newest snapshot that is complete; a damaged one is set aside and reported if an older one and the
//   log cover it
//   4. the log from there on: every entry goes to libraft (it never applies past a gap), with a block of its
//   own each (rule 17)
//   5. a sole voter starts with term + 1 and its own vote (rule 18)
#include <stdlib.h>
#include "core/base/mem.h"
#include "core/base/path.h"
#include "core/metadata/image.h"
#include "core/record/batch.h"
#include "raft/quorum_impl.h"

struct found {
    struct quorum *q;
    struct manifest *names; // snapshots by name, any order
    uint32_t count, cap;
    char **stale; // names to remove
    uint32_t stale_count, stale_cap;
};

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n >= m && strcmp(name + n - m, suffix) == 0;
}

static int found_name(void *data, const char *name, bool is_dir)
{
    struct found *f = data;
    struct manifest m = {0};
    if (is_dir)
        return 0;
    if (checkpoint_parse_name(name, &m.end_offset, &m.epoch)) {
        if (f->count == f->cap) {
            f->cap = f->cap ? f->cap * 2 : 8;
            f->names = mem_realloc(f->names, f->cap * sizeof *f->names);
        }
        f->names[f->count++] = m;
    } else if (ends_with(name, ".tmp") || ends_with(name, ".deleted") || ends_with(name, ".part")) {
        if (f->stale_count == f->stale_cap) {
            f->stale_cap = f->stale_cap ? f->stale_cap * 2 : 8;
            f->stale = mem_realloc(f->stale, f->stale_cap * sizeof(char *));
        }
        f->stale[f->stale_count++] = mem_strdup(name);
    }
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    const struct manifest *x = a, *y = b;
    if (x->end_offset != y->end_offset)
        return x->end_offset < y->end_offset ? 1 : -1;
    return (x->epoch < y->epoch) - (x->epoch > y->epoch);
}

static void remove_stale(struct found *f)
{
    struct vfs *fs = f->q->opts.fs;
    for (uint32_t i = 0; i < f->stale_count; i++) {
        char *path = path_join(f->q->dir, f->stale[i]);
        (void)fs->ops->unlink(fs, path);
        mem_free(path);
        mem_free(f->stale[i]);
    }
    mem_free(f->stale);
}

// ---- snapshots
// -------------------------------------------------------------------------------------------------
static void set_aside(struct quorum *q, const struct manifest *m, const char *why)
{
    char from[CHECKPOINT_NAME_BYTES], to[CHECKPOINT_NAME_BYTES];
    checkpoint_name(m->end_offset, m->epoch, "", from);
    checkpoint_name(m->end_offset, m->epoch, ".damaged", to);
    char *a = path_join(q->dir, from), *b = path_join(q->dir, to);
    log_error(q->log, "raft", "damaged snapshot set aside", "file=%s why=\"%s\"", b, why);
    (void)q->opts.fs->ops->rename(q->opts.fs, a, b);
    mem_free(a);
    mem_free(b);
}

static void use_snapshot(struct quorum *q, const struct manifest *m, struct checkpoint_info *info,
                         struct image *image)
{
    q->current = (struct snapshot_file){
        {m->end_offset, m->epoch, info->size}, info->index, info->term, node_wall(q->opts.node)};
    q->current_set = info->voters;
    q->current_conf_index = info->conf_index;
    image_unref(q->image);
    q->image = image;
}

// The newest one that is whole. Older ones are only listed: they were whole when they were written.
static int load_snapshots(struct quorum *q, struct found *f, struct errmsg *msg)
{
    struct errmsg why = {{0}};
    q->image = image_empty();
    if (f->count)
        qsort(f->names, f->count, sizeof *f->names, newest_first);
    for (uint32_t i = 0; i < f->count; i++) {
        char name[CHECKPOINT_NAME_BYTES];
        struct checkpoint_info info;
        struct image *image = NULL;
        checkpoint_name(f->names[i].end_offset, f->names[i].epoch, "", name);
        char *path = path_join(q->dir, name);
        int err = 0;
        if (q->current.index == 0) {
            err = checkpoint_read_image(q->opts.fs, path, &info, &image, &why);
            if (!err && info.voters) {
                use_snapshot(q, &f->names[i], &info, image);
                quorum__snapshots_add(q, &q->current);
            } else if (!err) {
                image_unref(image); // formatted to be added later: no configuration yet
            }
        } else if (f->names[i].end_offset > 0) {
            struct snapshot_file older = {f->names[i], 0, 0, node_wall(q->opts.node)};
            struct vfs_stat st;
            if (q->opts.fs->ops->stat(q->opts.fs, path, &st) == 0) {
                older.manifest.size = st.size;
                quorum__snapshots_add(q, &older);
            }
        }
        mem_free(path);
        if (err && err != ERR_CORRUPT && err != ERR_MALFORMED)
            return err_set(msg, err, "%s", why.text);
        if (err)
            set_aside(q, &f->names[i], why.text);
    }
    return 0;
}

static int keep_bootstrap(void *data, struct slice value, struct errmsg *msg)
{
    struct quorum *q = data;
    (void)msg;
    q->bootstrap = mem_realloc(q->bootstrap, (q->bootstrap_count + 1) * sizeof *q->bootstrap);
    q->bootstrap[q->bootstrap_count++] = arena_dup_slice(&q->bootstrap_arena, value);
    return 0;
}

static int load_bootstrap(struct quorum *q, struct errmsg *msg)
{
    char name[CHECKPOINT_NAME_BYTES];
    struct checkpoint_info info;
    checkpoint_name(0, 0, "", name);
    char *path = path_join(q->dir, name);
    int err = checkpoint_read(q->opts.fs, path, &info, keep_bootstrap, q, msg);
    mem_free(path);
    if (!err)
        voter_set_unref(info.voters);
    if (err == ERR_NOTFOUND && q->dynamic && q->current.index == 0)
        return err_set(msg, ERR_NOTFOUND, "%s was not formatted: run kraft-format first", q->dir);
    if (!err && info.dynamic != q->dynamic)
        return err_set(msg, ERR_INVALID,
                       "%s was formatted for a %s quorum, but %s: a cluster keeps the kind of its quorum",
                       q->dir, info.dynamic ? "dynamic" : "static",
                       info.dynamic ? "controller.quorum.voters is set"
                                    : "controller.quorum.voters is not set");
    return err == ERR_NOTFOUND ? 0 : err;
}

// Static quorum: the configuration comes from the options, and never changes.
static int static_base(struct quorum *q, struct errmsg *msg)
{
    struct voter_set *set = voter_set_new(q->opts.static_voters_count);
    bool self = false;
    for (uint32_t i = 0; i < set->count; i++) {
        set->servers[i].voter = q->opts.static_voters[i];
        set->servers[i].id = quorum_raft_id(q->opts.static_voters[i].id, UUID_ZERO, false);
        set->servers[i].role = RAFT_VOTER;
        self = self || set->servers[i].id == q->self;
    }
    for (uint32_t i = 1; i < set->count; i++) { // the same order everywhere, however the option is written
        for (uint32_t k = i; k > 0 && set->servers[k].id < set->servers[k - 1].id; k--) {
            struct quorum_server t = set->servers[k];
            set->servers[k] = set->servers[k - 1];
            set->servers[k - 1] = t;
        }
    }
    if (!self) {
        voter_set_unref(set);
        return err_set(msg, ERR_INVALID, "node %d is not in controller.quorum.voters", (int)q->opts.id);
    }
    if (q->current_set) { // the log knows the members; the options know where they are
        struct voter_set *known = q->current_set;
        bool same = known->count == set->count;
        for (uint32_t i = 0; same && i < set->count; i++)
            same = voter_set_find(known, set->servers[i].id) != NULL;
        if (!same) {
            voter_set_unref(set);
            return err_set(
                msg, ERR_INVALID,
                "controller.quorum.voters names other voters than %s was begun with: a static quorum never "
                "changes. Put the old list back",
                q->dir);
        }
        q->current_set = voter_set_with_endpoints(known, set);
        voter_set_unref(known);
        voter_set_unref(set);
        return 0;
    }
    q->current = (struct snapshot_file){{0, 0, 0}, 2, 1, 0};
    q->current_conf_index = 2;
    q->current_set = set;
    return 0;
}

// ---- the log
// ---------------------------------------------------------------------------------------------------
static int take_entry(void *data, raft_index index, const struct entry_batch *e)
{
    struct quorum *q = data;
    if (q->load_count == q->load_cap) {
        q->load_cap = q->load_cap ? q->load_cap * 2 : 64;
        q->load_entries = raft_realloc(q->load_entries, q->load_cap * sizeof *q->load_entries);
        MUST(q->load_entries != NULL);
    }
    size_t prefix = entry_prefix_bytes(e);
    uint8_t *block = raft_malloc(prefix + e->bytes.len);
    MUST(block != NULL);
    entry_prefix_write(e, block);
    memcpy(block + prefix, e->bytes.data, e->bytes.len);
    q->load_entries[q->load_count++] = (struct raft_entry){
        .term = (raft_term)e->epoch, .type = e->type, .buf = {block, prefix + e->bytes.len}};
    if (e->voters)
        quorum__sets_push(q, index, e->type == RAFT_CHANGE, e->voters);
    return 0;
}

static void forget_entries(struct quorum *q)
{
    for (size_t i = 0; i < q->load_count; i++)
        raft_free(q->load_entries[i].buf.base);
    raft_free(q->load_entries);
    q->load_entries = NULL;
    q->load_count = 0;
    quorum__sets_cut(q, q->current_conf_index + 1);
}

static int load_log(struct quorum *q, struct errmsg *msg)
{
    struct mlog_opts o = {.node = q->opts.node,
                          .loop = q->opts.loop,
                          .pool = q->opts.raft_log,
                          .fs = q->opts.fs,
                          .dir = q->dir,
                          .segment_bytes = q->opts.segment_bytes ? q->opts.segment_bytes : 1u << 30,
                          .log = q->log};
    struct mlog_base base = {q->current.index, (leader_epoch)q->current.term, q->current.manifest.end_offset};
    if (q->current_set)
        quorum__sets_push(q, q->current_conf_index, true, q->current_set);
    int err = mlog_open(&o, &base, take_entry, q, &q->log_store, msg);
    if (!err && q->log_store->count == 0 && q->load_count > 0)
        forget_entries(q); // the log begins anew at the snapshot
    return err;
}

// ---- term and vote
// ---------------------------------------------------------------------------------------------
static int store_state(struct quorum *q, struct errmsg *msg)
{
    return quorum_state_write(q->opts.fs, q->dir, q->dynamic, q->cluster_id, quorum__voters(q), &q->state,
                              msg);
}

static int settle_term(struct quorum *q, bool had_file, struct errmsg *msg)
{
    leader_epoch last = mlog_last_epoch(q->log_store);
    if (last < (leader_epoch)q->current.term)
        last = (leader_epoch)q->current.term;
    const struct voter_set *set = quorum__voters(q);
    bool sole = set && voter_set_voters(set) == 1 && voter_set_find(set, q->self) != NULL &&
                voter_set_find(set, q->self)->role == RAFT_VOTER;
    if (had_file && q->state.term < last)
        return err_set(msg, ERR_CORRUPT,
                       "%s/quorum-state has term %d, but the log has entries of term %d: the file is of an "
                       "older time. Remove this voter, format a fresh directory and add it again (static "
                       "quorum: format and start with --disk-replaced)",
                       q->dir, (int)q->state.term, (int)last);
    if (!had_file && q->log_store->end > 0 && q->log_store->count > 0)
        return err_set(msg, ERR_CORRUPT,
                       "%s/quorum-state is missing beside a log that has entries: this voter has forgotten "
                       "its vote. Remove this voter, format a fresh directory and add it again (static "
                       "quorum: format and start with --disk-replaced)",
                       q->dir);
    if (q->state.term < last)
        q->state = (struct quorum_state){.term = last, .voted = -1};
    if (!sole)
        return 0;
    q->state = (struct quorum_state){.term = q->state.term + 1,
                                     .voted = q->opts.id,
                                     .voted_directory = q->dynamic ? q->opts.directory_id : UUID_ZERO};
    return store_state(q, msg);
}

static int make_directory(struct quorum *q, struct errmsg *msg)
{
    int err = q->opts.fs->ops->mkdir(q->opts.fs, q->dir);
    if (err && err != ERR_EXISTS)
        return err_set(msg, err, "%s: %s", q->dir, err_text(err));
    return 0;
}

int quorum__load(struct quorum *q, struct errmsg *msg)
{
    struct found f = {.q = q};
    int err = make_directory(q, msg);
    if (!err)
        err = q->opts.fs->ops->list(q->opts.fs, q->dir, found_name, &f);
    if (!err) {
        remove_stale(&f);
        err = quorum_state_read(q->opts.fs, q->dir, q->dynamic, &q->state, msg);
    }
    bool had_state = err == 0;
    if (err == 0 || err == ERR_NOTFOUND)
        err = load_snapshots(q, &f, msg);
    mem_free(f.names);
    if (!err)
        err = load_bootstrap(q, msg);
    if (!err && !q->dynamic)
        err = static_base(q, msg);
    if (!err)
        err = load_log(q, msg);
    if (!err)
        err = settle_term(q, had_state, msg);
    if (!err)
        q->high_watermark = q->current.index ? q->current.manifest.end_offset : 0;
    return err;
}
