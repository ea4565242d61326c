// SPDX-License-Identifier: Apache-2.0
// The codec of all messages: one engine over the tables that tools/generate makes from the schema files.
//
// Each message has a header in gen/ with its struct and typed wrappers (kp_produce_request_decode and so on);
// code that handles any message uses the functions here with a `struct kp_message_type`.
//
// Decoding is in place: strings, bytes and records are slices of the input; arrays, nullable structs and
// unknown tagged fields are in the reader's arena. The result lives as long as both. A length is checked
// against the bytes that are left before anything is reserved for it.
#ifndef KRAFT_PROTOCOL_CODEC_H
#define KRAFT_PROTOCOL_CODEC_H

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/base/rope.h"
#include "core/base/slice.h"
#include "core/base/uuid.h"

// A tagged field that the schema does not know; kept so that encoding again gives the same bytes.
struct kp_unknown_tag {
    const struct kp_unknown_tag *next; // in the order of appearance, NULL after the last
    uint32_t tag;                      // number of the tag
    struct slice bytes;                // value, without its length
};
struct kp_unknown_tags {
    const struct kp_unknown_tag *first; // NULL: none
};

// Record batches inside Produce and Fetch. Null: bytes.data and rope are NULL.
struct kp_records {
    struct slice bytes; // the batches in one piece (decoding: in place)
    struct rope *rope;  // encoding: if set, moved into the output instead of `bytes`; empty afterwards
};

// Where decoding is. Fill by kp_reader_init.
struct kp_reader {
    const uint8_t *pos;  // next byte
    const uint8_t *end;  // end of the input
    struct arena *arena; // takes arrays; its limit bounds what a peer can make us reserve
    struct errmsg *err;  // takes the message of an error; may be NULL
};
static inline void kp_reader_init(struct kp_reader *r, struct slice input, struct arena *arena,
                                  struct errmsg *err)
{
    r->pos = input.data;
    r->end = input.data + input.len;
    r->arena = arena;
    r->err = err;
}
static inline size_t kp_reader_left(const struct kp_reader *r)
{
    return (size_t)(r->end - r->pos);
}

enum kp_direction { KP_REQUEST, KP_RESPONSE };

// What a message belongs to.
enum kp_message_kind {
    KP_KIND_REQUEST,     // key: API key
    KP_KIND_RESPONSE,    // key: API key
    KP_KIND_METADATA,    // key: record type in the cluster metadata log
    KP_KIND_GROUP,       // key: record type in __consumer_offsets (first int16 of the record's key)
    KP_KIND_TRANSACTION, // key: the same in __transaction_state
    KP_KIND_SHARE,       // key: the same in __share_group_state
    KP_KIND_REMOTE,      // key: type of a remote log metadata record
    KP_KIND_DATA,        // key: -1
};

struct kp_struct_type;
struct kp_program;
struct kp_op;
struct kp_field;

// All that the engine knows of one message. The tables are const and made by tools/generate; see
// codec_table.h.
struct kp_message_type {
    const char *name;                     // the reference's name, e.g. "ProduceRequestData"
    enum kp_message_kind kind;            // what it belongs to
    int16_t key;                          // see kind
    int16_t min_version, max_version;     // versions there are
    int16_t flexible_from;                // first version with compact forms and tagged fields; 32767: none
    uint32_t size;                        // bytes of the C struct
    const struct kp_struct_type *structs; // [0] is the message itself
    const struct kp_field *fields;        // of all structs
    const struct kp_op *ops;              // of all programs
    const struct kp_program *programs;    // one per struct and distinct run of fields
    const uint16_t *by_version;           // [version - min_version] -> program of the message
};

static inline bool kp_message_has_version(const struct kp_message_type *t, int version)
{
    return version >= t->min_version && version <= t->max_version;
}

// Sets all fields to the schema's defaults. `m` is the C struct of `t`.
void kp_message_init(const struct kp_message_type *t, void *m);
// The same for a nested struct: `index` as in t->structs.
void kp_struct_init(const struct kp_message_type *t, unsigned index, void *s);

// Reads a message. Fields that the version does not have get their defaults. Bytes behind the message are
// left in the reader. Errors: ERR_UNSUPPORTED (no such version), ERR_MALFORMED, ERR_TOO_LARGE (the arena's
// limit); the message says which field. After an error `m` must not be used.
int kp_message_decode(const struct kp_message_type *t, void *m, struct kp_reader *r, int version);

// Appends the message to `out`. A null where the version does not allow one is written as empty; fields that
// the version does not have are left out. Errors: ERR_UNSUPPORTED (no such version), ERR_TOO_LARGE (a string
// or array is longer than its length field can say); then `out` holds part of the message and must be
// cleared.
int kp_message_encode(const struct kp_message_type *t, const void *m, struct rope *out, int version);

// Bytes that encoding appends; 0 for a version that does not exist.
size_t kp_message_size(const struct kp_message_type *t, const void *m, int version);

// Encodes into `out`, which has room for kp_message_size() bytes; a `records` rope is copied, not moved
// (ERR_IO: a file in it could not be read). Errors as kp_message_encode.
int kp_message_encode_into(const struct kp_message_type *t, const void *m, uint8_t *out, int version);

// Lookups; NULL where there is none.
const struct kp_message_type *kp_message_of_api(int api_key, enum kp_direction direction);
const struct kp_message_type *kp_message_of_metadata(uint32_t record_type);
const struct kp_message_type *kp_message_by_name(struct slice name); // the reference's name
// Key or value of a coordinator's record: `kind` is KP_KIND_GROUP, KP_KIND_TRANSACTION or KP_KIND_SHARE,
// `record_type` the first int16 of the record's key.
const struct kp_message_type *kp_message_of_record(enum kp_message_kind kind, int record_type, bool is_value);

// All message types, for tools and tests.
extern const struct kp_message_type *const kp_message_types[];
extern const unsigned kp_message_types_count;

#endif
