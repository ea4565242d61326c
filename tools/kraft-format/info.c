// SPDX-License-Identifier: Apache-2.0
// The verb info: what the directories of a configuration are, and what would keep a server from starting on
// them.
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/path.h"
#include "raft/format.h"
#include "storage/meta_properties.h"
#include "tools/kraft-format/format.h"

static void print_directory(struct vfs *fs, const struct meta_dir *m, bool metadata)
{
    char id[UUID_TEXT_BYTES];
    if (m->state == META_DIR_EMPTY) {
        printf("%s: not formatted\n", m->path);
        return;
    }
    if (m->state == META_DIR_FAILED) {
        printf("%s: cannot be read\n", m->path);
        return;
    }
    uuid_format(m->props.directory_id, id);
    printf("%s: cluster %s, node %d, directory %s\n", m->path, m->props.cluster_id, m->props.id,
           uuid_is_zero(m->props.directory_id) ? "without id (one is made at the next start)" : id);
    if (metadata) {
        char *log = path_join(m->path, "__cluster_metadata-0");
        printf("%s: %s\n", log, raft_format_exists(fs, log) ? "metadata log" : "no metadata log yet");
        mem_free(log);
    }
}

enum format_exit format_info(const struct format_options *o)
{
    struct server_config *c;
    struct errmsg msg = {""};
    enum format_exit exit_code = format_load_config(o, &c);
    if (!c) {
        return exit_code;
    }
    struct vfs *fs = vfs_posix();
    struct meta_dirs *dirs = mem_zalloc(sizeof *dirs);
    int rc = meta_dirs_read(fs, c->log_dirs, c->log_dirs_count, c->metadata_log_dir, dirs, &msg);
    for (uint32_t i = 0; rc == 0 && i < dirs->count; i++) {
        print_directory(fs, &dirs->dirs[i], strcmp(dirs->dirs[i].path, c->metadata_log_dir) == 0);
    }
    rc = rc ? rc : meta_dirs_check(dirs, c->metadata_log_dir, c->id, o->cluster_id, &msg);
    if (rc) {
        printf("Problem: %s\n", msg.text);
    } else {
        printf("Node %d can start.\n", c->id);
    }
    mem_free(dirs);
    server_config_free(c);
    return rc ? FORMAT_REFUSED : FORMAT_OK;
}
