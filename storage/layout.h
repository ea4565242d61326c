// SPDX-License-Identifier: Apache-2.0
// Names of the files in a partition's directory, as Kafka has them, and their paths.
//
// A segment's files are called by the 20 digits of its base offset and a suffix; a producer snapshot by the
// offset that it reaches to. A renamed file keeps its name and gets another suffix behind it.
#ifndef KRAFT_STORAGE_LAYOUT_H
#define KRAFT_STORAGE_LAYOUT_H

#include "core/base/types.h"

#define LAYOUT_PATH_BYTES                                                                                    \
    1024 // longest path that storage makes, with its NUL: log.dirs entry + 255 + file name

enum layout_kind {
    LAYOUT_LOG,       // .log
    LAYOUT_INDEX,     // .index
    LAYOUT_TIMEINDEX, // .timeindex
    LAYOUT_TXNINDEX,  // .txnindex
    LAYOUT_SNAPSHOT,  // .snapshot: producer state
    LAYOUT_KINDS,
    LAYOUT_OTHER = LAYOUT_KINDS, // nothing of a segment
};
enum layout_state {
    LAYOUT_PLAIN,   // in use
    LAYOUT_DELETE,  // .deleted: taken out, to be removed
    LAYOUT_CLEANED, // .cleaned: being written by compaction
    LAYOUT_SWAP,    // .swap: written by compaction, to take the place of older ones
    LAYOUT_TMP,     // .tmp: an unfinished replacement
};
struct layout_name {
    enum layout_kind kind;   // LAYOUT_OTHER: the other fields mean nothing but `state` of a .tmp
    enum layout_state state; // suffix behind the kind
    log_offset offset;       // from the digits
};

extern const char *const layout_suffix[LAYOUT_KINDS];         // ".log", ...
extern const char *const layout_state_suffix[LAYOUT_TMP + 1]; // "", ".deleted", ...

struct layout_name layout_parse(const char *name);
// "DIR/00000000000000000000.log" + state suffix into `buf` of LAYOUT_PATH_BYTES. False: it does not fit.
bool layout_path(char *buf, const char *dir, log_offset offset, enum layout_kind kind,
                 enum layout_state state);
bool layout_join(char *buf, const char *dir, const char *name); // "DIR/NAME"; false: it does not fit

#endif
