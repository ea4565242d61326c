// SPDX-License-Identifier: Apache-2.0
// What the files of kraft-format share: options, exit codes, random bytes, the configuration.
#ifndef KRAFT_TOOLS_FORMAT_H
#define KRAFT_TOOLS_FORMAT_H

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/config/server_config.h"
#include "core/metadata/record_list.h"

enum format_exit {
    FORMAT_OK = 0,      // done, or nothing to do
    FORMAT_REFUSED = 1, // it would not work, or would destroy something
    FORMAT_USAGE = 2,   // bad command line
    FORMAT_FAILED = 3,  // a file or directory cannot be read or written
};

#define FORMAT_LIST_MAX 64 // --add-scram, --feature and --override, of each

struct format_options {
    const char *config_path;                // --config
    const char *cluster_id;                 // --cluster-id
    bool standalone;                        // --standalone
    const char *initial_controllers;        // --initial-controllers
    bool no_initial_controllers;            // --no-initial-controllers
    bool ignore_formatted;                  // --ignore-formatted
    bool dry_run;                           // --dry-run
    const char *release_version;            // --release-version
    const char *scram[FORMAT_LIST_MAX];     // --add-scram
    const char *features[FORMAT_LIST_MAX];  // --feature
    const char *overrides[FORMAT_LIST_MAX]; // --override
    unsigned scram_count, features_count, overrides_count;
};

// Level of metadata.version where neither --release-version nor --feature names one: 4.3-IV0, the newest
// whose records need nothing that this release does not serve.
#define FORMAT_METADATA_VERSION 30

void format_random(void *out, size_t len);  // of the kernel
struct uuid format_random_uuid(void *data); // data is not used

// Reads the configuration; warnings go to stderr. Answers an exit code and NULL, having said why, where it
// cannot be used.
enum format_exit format_load_config(const struct format_options *o, struct server_config **out);
// Reads a whole file by mem_alloc, NUL behind it; NULL with the reason in errno.
char *format_read_file(const char *path, size_t *len);
int format_make_directory(const char *path, struct errmsg *msg); // with its parents, synced

// The initial metadata records: feature levels and SCRAM users. ERR_INVALID.
int format_initial_records(const struct format_options *o, struct arena *arena, struct record_list *out,
                           struct errmsg *msg);
// Adds the record of one --add-scram. ERR_INVALID.
int format_add_scram(const char *text, struct arena *arena, struct record_list *out, struct errmsg *msg);
// kraft.version that --feature asks for; -1 none.
int format_wanted_kraft_version(const struct format_options *o);

enum format_exit format_run(const struct format_options *o);  // the verb format
enum format_exit format_info(const struct format_options *o); // the verb info

#endif
