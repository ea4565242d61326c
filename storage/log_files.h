// SPDX-License-Identifier: Apache-2.0
// What lies in a partition's directory, after unfinished work of an earlier life was undone or finished.
#ifndef KRAFT_STORAGE_LOG_FILES_H
#define KRAFT_STORAGE_LOG_FILES_H

#include "core/base/err.h"
#include "storage/layout.h"
#include "storage/vfs.h"

struct log_file_set {
    log_offset base;        // of the segment
    bool has[LAYOUT_KINDS]; // which of its files are there (snapshots stand apart)
};
struct log_files {
    struct log_file_set *sets; // segments with a .log, by base
    unsigned sets_count;
    log_offset *snapshots; // producer snapshots, rising
    unsigned snapshots_count;
    bool changed; // something was removed or renamed: the directory is not synced
};

// Lists `dir`; removes .deleted, .cleaned and .tmp files, finishes a complete swap or drops an incomplete one
// (a .cleaned that is left says so), removes index files without a log. ERR_NOTFOUND: there is no such
// directory.
int log_files_list(struct vfs *fs, const char *dir, struct log_files *out, struct errmsg *msg);
void log_files_fini(struct log_files *f);

#endif
