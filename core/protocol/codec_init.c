// SPDX-License-Identifier: Apache-2.0
// Defaults: sets a struct, or one field of it, to what its schema says.
#include "core/protocol/codec_engine.h"

#include "core/base/assert.h"

static void store_number(uint8_t *at, unsigned kind, int64_t value)
{
    switch (kind) {
    case KP_BOOL:
    case KP_INT8: {
        int8_t v = (int8_t)value;
        memcpy(at, &v, sizeof(v));
        break;
    }
    case KP_INT16:
    case KP_UINT16: {
        int16_t v = (int16_t)value;
        memcpy(at, &v, sizeof(v));
        break;
    }
    case KP_INT32:
    case KP_UINT32: {
        int32_t v = (int32_t)value;
        memcpy(at, &v, sizeof(v));
        break;
    }
    case KP_INT64:
        memcpy(at, &value, sizeof(value));
        break;
    case KP_FLOAT64: {
        double v = (double)value;
        memcpy(at, &v, sizeof(v));
        break;
    }
    default:
        UNREACHABLE("only numbers have a default value");
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
            *(struct slice *)(void *)at = SLICE_LIT("");
        return;
    case KP_RECORDS:
    case KP_UUID:
        return;
    case KP_STRUCT:
        if (!(f->code & KP_NULLABLE))
            kp__struct_defaults(t, &t->structs[f->sub], at);
        return;
    default:
        if (f->value)
            store_number(at, kind, f->value);
    }
}

void kp__struct_defaults(const struct kp_message_type *t, const struct kp_struct_type *s, uint8_t *at)
{
    const struct kp_field *f = t->fields + s->first;
    for (unsigned i = 0; i < s->count; i++)
        kp__field_init(t, &f[i], at + f[i].offset);
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
