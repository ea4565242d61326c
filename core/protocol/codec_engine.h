// SPDX-License-Identifier: Apache-2.0
// What the parts of the codec engine share; private to core/protocol.
#ifndef KRAFT_PROTOCOL_CODEC_ENGINE_H
#define KRAFT_PROTOCOL_CODEC_ENGINE_H

#include "core/protocol/codec.h"
#include "core/protocol/codec_table.h"

#define KP_STRING_BYTES_MAX 32767 // longest string: its length is an int16 where it is not compact

// An array field is a pointer followed by its count.
#define KP_COUNT_OFFSET sizeof(void *)

static inline void kp__store_count(uint8_t *at, int32_t count)
{
    memcpy(at + KP_COUNT_OFFSET, &count, sizeof(count));
}
static inline int32_t kp__load_count(const uint8_t *at)
{
    int32_t count;
    memcpy(&count, at + KP_COUNT_OFFSET, sizeof(count));
    return count;
}
static inline void *kp__load_pointer(const uint8_t *at)
{
    void *p;
    memcpy(&p, at, sizeof(p));
    return p;
}
static inline void kp__store_pointer(uint8_t *at, const void *p)
{
    memcpy(at, &p, sizeof(p));
}
static inline struct slice kp__load_slice(const uint8_t *at)
{
    struct slice s;
    memcpy(&s, at, sizeof(s));
    return s;
}
static inline void kp__store_slice(uint8_t *at, struct slice s)
{
    memcpy(at, &s, sizeof(s));
}
static inline bool kp__is_text_like(unsigned kind)
{
    return kind == KP_STRING || kind == KP_BYTES;
}
static inline const struct kp_program *kp__program_of(const struct kp_message_type *t, int version)
{
    return &t->programs[t->by_version[version - t->min_version]];
}
static inline const struct kp_op *kp__ops_plain(const struct kp_message_type *t, const struct kp_program *p)
{
    return t->ops + p->first;
}
static inline const struct kp_op *kp__ops_tagged(const struct kp_message_type *t, const struct kp_program *p)
{
    return t->ops + p->first + p->plain;
}
static inline const struct kp_op *kp__ops_init(const struct kp_message_type *t, const struct kp_program *p)
{
    return t->ops + p->first + p->plain + p->tagged;
}
static inline const char *kp__field_name(const struct kp_message_type *t, unsigned field)
{
    return kp_names + t->fields[field].name;
}

// Bytes of one value of a kind in C; for KP_STRUCT of the struct of program `sub`.
size_t kp__element_size(const struct kp_message_type *t, unsigned kind, unsigned sub);

// Value of a number or bool field as 64 bits; not for KP_FLOAT64.
int64_t kp__load_number(const uint8_t *at, unsigned kind);
// Stores a number or bool; bits that do not fit are cut.
void kp__store_number(uint8_t *at, unsigned kind, int64_t value);

// Sets one field, which is all zeros, to its default. `at` is the field.
void kp__field_init(const struct kp_message_type *t, const struct kp_field *f, uint8_t *at);
// The same for all fields of a struct that is all zeros.
void kp__struct_defaults(const struct kp_message_type *t, const struct kp_struct_type *s, uint8_t *at);
// Holds the field its default? Such a tagged field is not written.
bool kp__field_is_default(const struct kp_message_type *t, const struct kp_field *f, const uint8_t *at);

// Unknown tagged fields of a struct; NULL: none.
static inline const struct kp_unknown_tag *kp__unknown_of(const struct kp_struct_type *s, const uint8_t *at)
{
    return s->unknown == KP_NO_UNKNOWN ? NULL : kp__load_pointer(at + s->unknown);
}

#endif
