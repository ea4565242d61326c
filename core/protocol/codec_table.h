// SPDX-License-Identifier: Apache-2.0
// The tables of the codec, as tools/generate writes them: fields, and a program per struct and version.
//
// A program lists what is on the wire at one version, in order: plain fields, then tagged fields by rising
// tag, then the fields that this version does not have and whose default is not all zeros. So the engine
// never compares versions, and all bounds are checked in one place. Indices instead of pointers keep the
// tables free of relocations.
#ifndef KRAFT_PROTOCOL_CODEC_TABLE_H
#define KRAFT_PROTOCOL_CODEC_TABLE_H

#include <stdint.h>

// Kinds of a field: the low four bits of a code.
enum kp_kind {
    KP_BOOL,
    KP_INT8,
    KP_INT16,
    KP_UINT16,
    KP_INT32,
    KP_UINT32,
    KP_INT64,
    KP_FLOAT64,
    KP_UUID,
    KP_STRING,
    KP_BYTES,
    KP_RECORDS,
    KP_STRUCT,
};
#define KP_KIND_MASK 0x0f
#define KP_ARRAY 0x10 // array of the kind: pointer, then int32_t count
#define KP_NULLABLE                                                                                          \
    0x20 // op: null is allowed at this version; field: at some version (a struct is then a pointer)
#define KP_COMPACT 0x40 // op: lengths are unsigned varints of length + 1
#define KP_IN_TAG 0x80  // op: a tagged field; null of a struct is then said by 0, elsewhere by -1

// One step of a program.
struct kp_op {
    uint8_t code;    // kind and flags
    uint8_t field;   // index in the message's fields
    uint16_t offset; // of the field in its struct
    uint16_t sub;    // KP_STRUCT: index of the program of the nested struct
    uint16_t tag;    // tagged fields: number of the tag
};

struct kp_program {
    uint16_t first;    // first op
    uint8_t plain;     // ops that are always on the wire
    uint8_t tagged;    // tagged ops after them
    uint8_t inits;     // then ops of absent fields that need their default
    uint8_t flexible;  // 1: ends with tagged fields
    uint16_t type;     // index of the struct
    uint16_t min_size; // fewest bytes that it takes on the wire; at least 1
};

struct kp_field {
    int64_t value;   // default of a number or bool
    uint16_t name;   // offset of the JSON name in kp_names
    uint16_t offset; // in its struct
    uint16_t sub;    // KP_STRUCT: index of the struct
    uint8_t code;    // kind and flags
    uint8_t null;    // 1: the default is null
};

struct kp_struct_type {
    uint16_t name;    // offset of the struct's name in kp_names
    uint16_t first;   // first field
    uint16_t count;   // fields
    uint16_t size;    // bytes of the C struct
    uint16_t unknown; // offset of its struct kp_unknown_tags; KP_NO_UNKNOWN: it has none
};
#define KP_NO_UNKNOWN 0xffff

// What a nullable struct points to where its default is not null but a struct of zeros; never written to.
#define KP_ZEROS_BYTES 64
extern const uint64_t kp_zeros[KP_ZEROS_BYTES / 8];

extern const char kp_names[]; // all names, each with its NUL

#endif
