// SPDX-License-Identifier: Apache-2.0
// What the subcommands of kraft-dump share.
#ifndef KRAFT_TOOLS_DUMP_H
#define KRAFT_TOOLS_DUMP_H

#include <jansson.h>

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/base/slice.h"
#include "core/record/batch.h"

#define DUMP_OK 0    // all that was asked for was shown
#define DUMP_BAD 1   // some of the input is damaged or unknown; the rest was shown
#define DUMP_USAGE 2 // the command line cannot be understood
#define DUMP_IO 3    // a file cannot be read

// A subcommand: argv[0] is its name. Gives the exit status.
typedef int dump_command(int argc, char **argv);

dump_command dump_log, dump_metadata, dump_wire;

// Prints to stderr and gives DUMP_USAGE.
int dump_usage_error(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// ---- files

struct dump_file {
    const char *path;   // as given
    struct slice bytes; // whole content, mapped
};
// Maps a file to read it. DUMP_OK, or DUMP_IO after a message on stderr.
int dump_file_open(struct dump_file *f, const char *path);
void dump_file_close(struct dump_file *f);
const char *dump_base_name(const char *path); // after the last slash

// ---- records

// What the records of a log mean.
enum dump_decoder {
    DECODE_AUTO,         // by the name of the folder
    DECODE_NONE,         // text, or base64
    DECODE_METADATA,     // __cluster_metadata
    DECODE_GROUPS,       // __consumer_offsets
    DECODE_TRANSACTIONS, // __transaction_state
    DECODE_SHARES,       // __share_group_state
};
// Decoder for a file by its folder's name.
enum dump_decoder dump_decoder_of(const char *path);

// Key and value of a record in JSON: decoded where the decoder knows them, else text, or base64 of bytes that
// are no text. Never NULL.
struct dump_decoded {
    json_t *key;   // null: none
    json_t *value; // null: none
    bool bad;      // they could not be decoded; `value` then says why
};
struct dump_decoded dump_decode(enum dump_decoder d, bool control, const struct record *r,
                                struct arena *arena);

json_t *dump_data_json(struct slice s); // text, or an object with base64

// ---- parts of kraft-dump log

struct dump_log_options {
    bool json;                 // a JSON object a line
    bool records;              // also the records of each batch
    enum dump_decoder decoder; // what they mean
    long long from, to;        // only batches that touch these offsets
};
// Each prints one kind of file. DUMP_OK or DUMP_BAD.
int dump_segment(const struct dump_file *f, const struct dump_log_options *opts);
int dump_offset_index(const struct dump_file *f, const struct dump_log_options *opts);
int dump_time_index(const struct dump_file *f, const struct dump_log_options *opts);
int dump_txn_index(const struct dump_file *f, const struct dump_log_options *opts);
int dump_producer_snapshot(const struct dump_file *f, const struct dump_log_options *opts);

#endif
