// SPDX-License-Identifier: Apache-2.0
// Writes the bootstrap checkpoint of a metadata directory.
#include "raft/format.h"

#include "core/base/mem.h"
#include "core/base/path.h"
#include "raft/checkpoint.h"

static int make_directory(struct vfs *fs, const char *dir, struct errmsg *msg)
{
    int err = fs->ops->mkdir(fs, dir);
    if (err == ERR_EXISTS)
        return 0;
    if (err)
        return err_set(msg, err, "%s: %s", dir, err_text(err));
    char *parent = mem_strdup(dir);
    char *slash = strrchr(parent, '/');
    if (slash && slash != parent) {
        *slash = 0;
        err = fs->ops->sync_dir(fs, parent);
    }
    mem_free(parent);
    return err ? err_set(msg, err, "%s: %s", dir, err_text(err)) : 0;
}

int raft_format_write(struct vfs *fs, const char *dir, const struct raft_format *f, struct errmsg *msg)
{
    if (f->voters_count > QUORUM_SERVERS_MAX)
        return err_set(msg, ERR_INVALID, "more than %d voters", QUORUM_SERVERS_MAX);
    int err = make_directory(fs, dir, msg);
    if (err)
        return err;
    struct checkpoint_info info = {
        .index = 2, .term = 1, .conf_index = 2, .dynamic = f->dynamic, .timestamp = f->now};
    if (f->voters_count) {
        info.voters = voter_set_new(f->voters_count);
        for (uint32_t i = 0; i < f->voters_count; i++) {
            info.voters->servers[i].id =
                quorum_raft_id(f->voters[i].id, f->voters[i].directory_id, f->dynamic);
            info.voters->servers[i].role = RAFT_VOTER;
            info.voters->servers[i].voter = f->voters[i];
        }
    }
    err = checkpoint_write(fs, dir, &info, NULL, f->values, f->values_count, msg);
    voter_set_unref(info.voters);
    return err;
}

static int is_ours(void *data, const char *name, bool is_dir)
{
    log_offset end;
    leader_epoch epoch;
    size_t n = strlen(name);
    bool hit = !is_dir && (checkpoint_parse_name(name, &end, &epoch) || strcmp(name, "quorum-state") == 0 ||
                           (n == 24 && strcmp(name + 20, ".log") == 0));
    return hit ? ERR_EXISTS : 0;
}

bool raft_format_exists(struct vfs *fs, const char *dir)
{
    return fs->ops->list(fs, dir, is_ours, NULL) == ERR_EXISTS;
}
