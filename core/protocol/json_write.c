// SPDX-License-Identifier: Apache-2.0
// JSON form of a message: from C struct to jansson values.
#include "core/protocol/json.h"

#include <math.h>

#include "core/base/assert.h"
#include "core/base/base64.h"
#include "core/base/mem.h"
#include "core/protocol/codec_engine.h"

static json_t *struct_json(const struct kp_message_type *t, unsigned program, const uint8_t *s);

// Length of the well-formed UTF-8 sequence at `p`; 0: none.
static size_t sequence_length(const uint8_t *p, size_t left)
{
    for (size_t n = 1; n <= 4 && n <= left; n++)
        if (slice_is_utf8(slice_of(p, n)))
            return n;
    return 0;
}

// Text that is not UTF-8: each bad byte becomes the replacement character.
static json_t *repaired_text(struct slice s)
{
    char *text = mem_alloc(3 * s.len);
    size_t len = 0;
    for (size_t i = 0; i < s.len;) {
        size_t n = sequence_length(s.data + i, s.len - i);
        memcpy(text + len, n ? (const char *)s.data + i : "\xef\xbf\xbd", n ? n : 3);
        len += n ? n : 3;
        i += n ? n : 1;
    }
    json_t *json = json_stringn(text, len);
    mem_free(text);
    return json;
}

static json_t *text_json(struct slice s)
{
    if (!s.data)
        return json_null();
    json_t *json = json_stringn((const char *)s.data, s.len); // NULL: not UTF-8
    return json ? json : repaired_text(s);
}

static json_t *bytes_json(struct slice s)
{
    if (!s.data)
        return json_null();
    char *text = mem_alloc(BASE64_ENCODED_BYTES(s.len));
    size_t len = base64_encode(BASE64_STANDARD, s, text);
    json_t *json = json_stringn_nocheck(text, len);
    mem_free(text);
    return json;
}

static json_t *records_json(const struct kp_records *r)
{
    if (!r->rope)
        return bytes_json(r->bytes);
    uint8_t *flat = mem_alloc(r->rope->len);
    int err = rope_flatten(r->rope, flat);
    MUST(err == 0);
    json_t *json = bytes_json(slice_of(flat, r->rope->len));
    mem_free(flat);
    return json;
}

// JSON has no word for these three; the reference writes them as text.
static json_t *double_json(double v)
{
    if (isnan(v))
        return json_string("NaN");
    if (isinf(v))
        return json_string(v < 0 ? "-Infinity" : "Infinity");
    return json_real(v);
}

static json_t *scalar_json(const struct kp_message_type *t, const struct kp_op *op, unsigned kind,
                           const uint8_t *at)
{
    switch (kind) {
    case KP_STRING:
        return text_json(kp__load_slice(at));
    case KP_BYTES:
        return bytes_json(kp__load_slice(at));
    case KP_RECORDS:
        return records_json((const void *)at);
    case KP_STRUCT:
        return struct_json(t, op->sub, at);
    case KP_BOOL:
        return json_boolean(*at);
    case KP_UUID: {
        char text[UUID_TEXT_BYTES];
        uuid_format(*(const struct uuid *)(const void *)at, text);
        return json_string_nocheck(text);
    }
    case KP_FLOAT64: {
        double v;
        memcpy(&v, at, sizeof(v));
        return double_json(v);
    }
    default:
        return json_integer(kp__load_number(at, kind));
    }
}

static json_t *field_json(const struct kp_message_type *t, const struct kp_op *op, const uint8_t *at)
{
    unsigned kind = op->code & KP_KIND_MASK;
    if (op->code & KP_ARRAY) {
        int32_t count = kp__load_count(at);
        if (count < 0 && (op->code & KP_NULLABLE))
            return json_null();
        json_t *array = json_array();
        const uint8_t *element = kp__load_pointer(at);
        size_t stride = kp__element_size(t, kind, op->sub);
        for (int32_t i = 0; i < count; i++)
            (void)json_array_append_new(array, scalar_json(t, op, kind, element + (size_t)i * stride));
        return array;
    }
    if (kind == KP_STRUCT && (t->fields[op->field].code & KP_NULLABLE)) {
        at = kp__load_pointer(at);
        if (!at)
            return json_null();
    }
    return scalar_json(t, op, kind, at);
}

static json_t *struct_json(const struct kp_message_type *t, unsigned program, const uint8_t *s)
{
    const struct kp_program *p = &t->programs[program];
    const struct kp_op *op = kp__ops_plain(t, p);
    json_t *object = json_object();
    for (const struct kp_op *end = op + p->plain; op < end; op++)
        (void)json_object_set_new_nocheck(object, kp__field_name(t, op->field),
                                          field_json(t, op, s + op->offset));
    for (const struct kp_op *end = op + p->tagged; op < end; op++)
        if (!kp__field_is_default(t, &t->fields[op->field], s + op->offset))
            (void)json_object_set_new_nocheck(object, kp__field_name(t, op->field),
                                              field_json(t, op, s + op->offset));
    return object;
}

json_t *kp_message_to_json(const struct kp_message_type *t, const void *m, int version)
{
    MUST(kp_message_has_version(t, version));
    return struct_json(t, t->by_version[version - t->min_version], m);
}
