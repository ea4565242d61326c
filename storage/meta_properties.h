// SPDX-License-Identifier: Apache-2.0
// meta.properties: which cluster, node and directory a log directory belongs to.
//
// Version 1 (KIP-858), Java properties text:
//   version=1
//   cluster.id=22 characters
//   node.id=number
//   directory.id=22 characters of base64; random for each directory; older releases did not write it
// Written last when a directory is formatted, synced and renamed into place: a directory without it is not
// formatted.
#ifndef KRAFT_STORAGE_META_PROPERTIES_H
#define KRAFT_STORAGE_META_PROPERTIES_H

#include "core/base/err.h"
#include "core/base/strbuf.h"
#include "core/base/types.h"
#include "core/base/uuid.h"
#include "storage/vfs.h"

#define META_PROPERTIES_NAME "meta.properties"
#define META_CLUSTER_ID_BYTES                                                                                \
    128 // longest cluster id, with its NUL; ids made by formatting have 22 characters

struct meta_properties {
    char cluster_id[META_CLUSTER_ID_BYTES]; // as text: older clusters have ids that are no uuid
    node_id id;                             // node.id
    struct uuid directory_id;               // zero: the file has none
};

// ERR_CORRUPT: no such text; ERR_UNSUPPORTED: another version. The message says what is wrong, without the
// path.
int meta_properties_parse(struct slice text, struct meta_properties *out, struct errmsg *msg);
void meta_properties_print(const struct meta_properties *m, struct strbuf *out);

// Of one directory. ERR_NOTFOUND: it has none (or is not there). Blocks.
int meta_properties_read(struct vfs *fs, const char *dir, struct meta_properties *out, struct errmsg *msg);
int meta_properties_write(struct vfs *fs, const char *dir, const struct meta_properties *m,
                          struct errmsg *msg);

// What the directories of a node say together.
#define META_DIRS_MAX 128 // log directories of a node
enum meta_dir_state {
    META_DIR_FORMATTED, // has a good file
    META_DIR_EMPTY, // exists, or not, without one: may be taken into use where another directory is formatted
    META_DIR_FAILED, // cannot be read (disk error): offline from the start
};
struct meta_dir {
    const char *path;             // as given
    enum meta_dir_state state;    // see above
    struct meta_properties props; // where it is formatted
    int err;                      // where it failed: the error
    struct errmsg why;            // and its message
};
struct meta_dirs {
    uint32_t count;                         // directories
    struct meta_dir dirs[META_DIRS_MAX];    // in the order given
    char cluster_id[META_CLUSTER_ID_BYTES]; // of the formatted ones; "" where none is
};

// Reads `count` directories and `metadata_dir` (which may be one of them; else it is added as the last). Does
// not judge. ERR_TOO_LARGE: too many.
int meta_dirs_read(struct vfs *fs, const char *const *paths, uint32_t count, const char *metadata_dir,
                   struct meta_dirs *out, struct errmsg *msg);

// Refuses what a node must not start on: a damaged file, metadata directory not formatted, differing cluster
// ids, a node id other than `id`, a directory id that is reserved or appears twice. `cluster_id` NULL: any
// one, all the same. ERR_INVALID, ERR_CORRUPT or ERR_NOTFOUND; the message names files and ids and says what
// to do.
int meta_dirs_check(const struct meta_dirs *d, const char *metadata_dir, node_id id, const char *cluster_id,
                    struct errmsg *msg);

// Gives directories without a file, or without a directory.id, theirs. After meta_dirs_check. `random` makes
// ids.
int meta_dirs_complete(struct vfs *fs, struct meta_dirs *d, node_id id, struct uuid (*make_id)(void *data),
                       void *data, struct errmsg *msg);

#endif
