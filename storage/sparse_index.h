// SPDX-License-Identifier: Apache-2.0
// The offset and time index of one segment in memory, and as Kafka's .index and .timeindex files.
//
// .index, 8 bytes an entry:      0 4 offset - base offset (of the batch's last offset), 4 4 position of the
// batch .timeindex, 12 bytes an entry: 0 8 timestamp, 8 4 offset - base offset: the largest timestamp up to
// that offset Both rise strictly in both columns. No checksum: what does not rise or points past the log is
// not trusted and built anew. Kafka preallocates the files of the active segment: zeros behind the last entry
// are its unused part.
#ifndef KRAFT_STORAGE_SPARSE_INDEX_H
#define KRAFT_STORAGE_SPARSE_INDEX_H

#include "core/base/err.h"
#include "core/base/slice.h"
#include "core/base/types.h"

#define OFFSET_INDEX_ENTRY_BYTES 8
#define TIME_INDEX_ENTRY_BYTES 12

struct offset_entry {
    uint32_t offset; // minus base offset
    uint32_t pos;    // in the .log file
};
struct time_entry {
    time_ms timestamp;
    uint32_t offset; // minus base offset
};
struct sparse_index {
    struct offset_entry *offsets; // rising
    unsigned offsets_count, offsets_cap;
    struct time_entry *times; // rising
    unsigned times_count, times_cap;
    int64_t bytes_since;             // log bytes since the last offset entry
    time_ms max_timestamp;           // largest in the segment; -1 none
    log_offset max_timestamp_offset; // last offset of the first batch that has it; -1 none
};

void sparse_index_init(struct sparse_index *ix);
void sparse_index_fini(struct sparse_index *ix);
void sparse_index_clear(struct sparse_index *ix);

// A batch was written at `pos`: adds entries as Kafka does, each `interval` bytes.
void sparse_index_note(struct sparse_index *ix, log_offset base, int64_t interval, uint64_t pos, size_t size,
                       log_offset last_offset, time_ms max_timestamp);
// The entry that is forced at roll and close, so that the last one is the segment's largest timestamp.
void sparse_index_close(struct sparse_index *ix, log_offset base);
// Removes what belongs to offsets at or above `base` + relative `offset`. bytes_since and max_timestamp must
// be set anew.
void sparse_index_truncate(struct sparse_index *ix, uint32_t offset);
bool sparse_index_full(const struct sparse_index *ix,
                       int64_t bytes_max); // one of the two has no room in its file

// Position to begin a search for relative offset `offset` at: of the last entry at or below it, else 0.
uint32_t sparse_index_position(const struct sparse_index *ix, uint32_t offset);
// Position of the last entry with a position <= pos, else 0.
uint32_t sparse_index_before(const struct sparse_index *ix, uint64_t pos);
// Relative offset of the last time entry with a timestamp below `timestamp`, else 0.
uint32_t sparse_index_time(const struct sparse_index *ix, time_ms timestamp);

// Files. `out` by mem_alloc. Decoding replaces the contents of the one index; ERR_CORRUPT leaves it empty.
// `log_size` bounds positions.
void sparse_index_encode_offsets(const struct sparse_index *ix, uint8_t **out, size_t *len);
void sparse_index_encode_times(const struct sparse_index *ix, uint8_t **out, size_t *len);
int sparse_index_decode_offsets(struct sparse_index *ix, struct slice bytes, uint64_t log_size,
                                struct errmsg *msg);
int sparse_index_decode_times(struct sparse_index *ix, struct slice bytes, struct errmsg *msg);

#endif
