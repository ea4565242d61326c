// SPDX-License-Identifier: Apache-2.0
// Sizes: how many bytes a message, or one value of it, takes on the wire.
#include "core/protocol/codec_write.h"

#include "core/base/bytes.h"

static size_t length_size(uint8_t code, size_t length, size_t wide)
{
    return code & KP_COMPACT ? uvarlong_size(length + 1) : wide;
}

static size_t slice_size(uint8_t code, struct slice s)
{
    bool null = !s.data && (code & KP_NULLABLE);
    size_t wide = (code & KP_KIND_MASK) == KP_STRING ? 2 : 4;
    if (null)
        return code & KP_COMPACT ? 1 : wide;
    return length_size(code, s.len, wide) + s.len;
}

static size_t array_size(const struct kp_message_type *t, const struct kp_op *op, const uint8_t *at)
{
    unsigned kind = op->code & KP_KIND_MASK;
    int32_t count = kp__load_count(at);
    if (count < 0)
        return op->code & KP_COMPACT ? 1 : 4;
    const uint8_t *element = kp__load_pointer(at);
    size_t stride = kp__element_size(t, kind, op->sub);
    size_t size = length_size(op->code, (size_t)count, 4);
    if (kind == KP_STRUCT)
        for (int32_t i = 0; i < count; i++)
            size += kp__struct_size(t, op->sub, element + (size_t)i * stride);
    else if (kp__is_text_like(kind))
        for (int32_t i = 0; i < count; i++)
            size += slice_size(op->code & (KP_KIND_MASK | KP_COMPACT),
                               kp__load_slice(element + (size_t)i * stride));
    else
        size += (size_t)count * stride;
    return size;
}

size_t kp__value_size(const struct kp_message_type *t, const struct kp_op *op, const uint8_t *at)
{
    if (op->code & KP_ARRAY)
        return array_size(t, op, at);
    unsigned kind = op->code & KP_KIND_MASK;
    switch (kind) {
    case KP_STRING:
    case KP_BYTES:
        return slice_size(op->code, kp__load_slice(at));
    case KP_RECORDS: {
        const struct kp_records *r = (const void *)at;
        if (!r->rope)
            return slice_size(op->code, r->bytes);
        return length_size(op->code, r->rope->len, 4) + r->rope->len;
    }
    case KP_STRUCT:
        if (!(t->fields[op->field].code & KP_NULLABLE))
            return kp__struct_size(t, op->sub, at);
        at = kp__load_pointer(at);
        return (op->code & KP_NULLABLE ? 1 : 0) + (at ? kp__struct_size(t, op->sub, at) : 0);
    default:
        return kp__element_size(t, kind, 0);
    }
}

// Bytes of all tagged fields, known and unknown, that are written, and how many they are.
static size_t tags_size(const struct kp_message_type *t, const struct kp_program *p, const uint8_t *s,
                        unsigned *count)
{
    size_t size = 0;
    *count = 0;
    const struct kp_op *op = kp__ops_tagged(t, p);
    for (const struct kp_op *end = op + p->tagged; op < end; op++) {
        if (kp__field_is_default(t, &t->fields[op->field], s + op->offset))
            continue;
        size_t n = kp__value_size(t, op, s + op->offset);
        size += uvarint_size(op->tag) + uvarlong_size(n) + n;
        ++*count;
    }
    for (const struct kp_unknown_tag *u = kp__unknown_of(&t->structs[p->type], s); u; u = u->next) {
        size += uvarint_size(u->tag) + uvarlong_size(u->bytes.len) + u->bytes.len;
        ++*count;
    }
    return size;
}

size_t kp__struct_size(const struct kp_message_type *t, unsigned program, const uint8_t *s)
{
    const struct kp_program *p = &t->programs[program];
    const struct kp_op *op = kp__ops_plain(t, p);
    size_t size = 0;
    for (const struct kp_op *end = op + p->plain; op < end; op++)
        size += kp__value_size(t, op, s + op->offset);
    if (p->flexible) {
        unsigned count;
        size += tags_size(t, p, s, &count);
        size += uvarint_size(count);
    }
    return size;
}

size_t kp_message_size(const struct kp_message_type *t, const void *m, int version)
{
    if (!kp_message_has_version(t, version))
        return 0;
    return kp__struct_size(t, t->by_version[version - t->min_version], m);
}
