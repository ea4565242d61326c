// SPDX-License-Identifier: Apache-2.0
// Defaults: sets a struct, or one field of it, to what its schema says, and tells whether a field holds its
// default.
#include "core/protocol/codec_engine.h"

#include "core/base/assert.h"

size_t kp__element_size(const struct kp_message_type *t, unsigned kind, unsigned sub)
{
    static const uint8_t sizes[] = {
        [KP_BOOL] = sizeof(bool),
        [KP_INT8] = 1,
        [KP_INT16] = 2,
        [KP_UINT16] = 2,
        [KP_INT32] = 4,
        [KP_UINT32] = 4,
        [KP_INT64] = 8,
        [KP_FLOAT64] = 8,
        [KP_UUID] = sizeof(struct uuid),
        [KP_STRING] = sizeof(struct slice),
        [KP_BYTES] = sizeof(struct slice),
        [KP_RECORDS] = sizeof(struct kp_records),
    };
    return kind == KP_STRUCT ? t->structs[t->programs[sub].type].size : sizes[kind];
}

void kp__store_number(uint8_t *at, unsigned kind, int64_t value)
{
    // The machine is little-endian (core/base/bytes.h): the low bytes of the value are those of the field.
    memcpy(at, &value, kp__element_size(NULL, kind, 0));
}

int64_t kp__load_number(const uint8_t *at, unsigned kind)
{
    switch (kind) {
    case KP_INT8:
        return *(const int8_t *)at;
    case KP_INT16:
        return *(const int16_t *)(const void *)at;
    case KP_UINT16:
        return *(const uint16_t *)(const void *)at;
    case KP_INT32:
        return *(const int32_t *)(const void *)at;
    case KP_UINT32:
        return *(const uint32_t *)(const void *)at;
    case KP_INT64:
        return *(const int64_t *)(const void *)at;
    default: // KP_BOOL
        return *at;
    }
}

void kp__field_init(const struct kp_message_type *t, const struct kp_field *f, uint8_t *at)
{
    unsigned kind = f->code & KP_KIND_MASK;
    if (f->code & KP_ARRAY) {
        if (f->null)
            kp__store_count(at, -1);
        return;
    }
    switch (kind) {
    case KP_STRING:
    case KP_BYTES:
        if (!f->null)
            kp__store_slice(at, SLICE_LIT(""));
        return;
    case KP_RECORDS:
    case KP_UUID:
    case KP_FLOAT64: // the generator refuses defaults other than zero
        return;
    case KP_STRUCT:
        if ((f->code & KP_NULLABLE) && !f->null)
            kp__store_pointer(at, kp_zeros);
        else if (!(f->code & KP_NULLABLE))
            kp__struct_defaults(t, &t->structs[f->sub], at);
        return;
    default:
        if (f->value)
            kp__store_number(at, kind, f->value);
    }
}

void kp__struct_defaults(const struct kp_message_type *t, const struct kp_struct_type *s, uint8_t *at)
{
    const struct kp_field *f = t->fields + s->first;
    for (unsigned i = 0; i < s->count; i++)
        kp__field_init(t, &f[i], at + f[i].offset);
}

const uint64_t kp_zeros[KP_ZEROS_BYTES / 8];

static bool struct_is_default(const struct kp_message_type *t, const struct kp_struct_type *s,
                              const uint8_t *at)
{
    const struct kp_field *f = t->fields + s->first;
    for (unsigned i = 0; i < s->count; i++)
        if (!kp__field_is_default(t, &f[i], at + f[i].offset))
            return false;
    return kp__unknown_of(s, at) == NULL;
}

bool kp__field_is_default(const struct kp_message_type *t, const struct kp_field *f, const uint8_t *at)
{
    unsigned kind = f->code & KP_KIND_MASK;
    if (f->code & KP_ARRAY) {
        int32_t count = kp__load_count(at);
        return f->null ? count < 0 : count == 0 || (count < 0 && !(f->code & KP_NULLABLE));
    }
    switch (kind) {
    case KP_STRING:
    case KP_BYTES: {
        struct slice s = kp__load_slice(at);
        if (f->null || !s.data)
            return !s.data && (f->null || !(f->code & KP_NULLABLE));
        return s.len == 0;
    }
    case KP_RECORDS: {
        const struct kp_records *r = (const void *)at;
        return !r->bytes.data && !r->rope;
    }
    case KP_UUID:
        return uuid_is_zero(*(const struct uuid *)(const void *)at);
    case KP_FLOAT64: {
        double v;
        memcpy(&v, at, sizeof(v));
        return v == 0;
    }
    case KP_STRUCT:
        if (f->code & KP_NULLABLE) {
            at = kp__load_pointer(at);
            if (f->null || !at)
                return f->null && !at;
        }
        return struct_is_default(t, &t->structs[f->sub], at);
    default:
        return kp__load_number(at, kind) == f->value;
    }
}

void kp_message_init(const struct kp_message_type *t, void *m)
{
    kp_struct_init(t, 0, m);
}

void kp_struct_init(const struct kp_message_type *t, unsigned index, void *s)
{
    memset(s, 0, t->structs[index].size);
    kp__struct_defaults(t, &t->structs[index], s);
}
