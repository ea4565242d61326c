// SPDX-License-Identifier: Apache-2.0
// What the parts of the codec engine share; private to core/protocol.
#ifndef KRAFT_PROTOCOL_CODEC_ENGINE_H
#define KRAFT_PROTOCOL_CODEC_ENGINE_H

#include "core/protocol/codec.h"
#include "core/protocol/codec_table.h"

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

// Sets one field, which is all zeros, to its default. `at` is the field.
void kp__field_init(const struct kp_message_type *t, const struct kp_field *f, uint8_t *at);
// The same for all fields of a struct that is all zeros.
void kp__struct_defaults(const struct kp_message_type *t, const struct kp_struct_type *s, uint8_t *at);

#endif
