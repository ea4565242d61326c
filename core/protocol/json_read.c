// SPDX-License-Identifier: Apache-2.0
// JSON form of a message: from jansson values to the C struct.
#include "core/protocol/json.h"

#include <math.h>

#include "core/base/base64.h"
#include "core/protocol/codec_engine.h"

struct reading {
    const struct kp_message_type *t; // the message
    enum kp_json_mode mode;          // strict or loose
    struct arena *arena;             // takes text, bytes, arrays
    struct errmsg *err;              // takes the message
};

static int read_struct(struct reading *r, unsigned program, uint8_t *s, const json_t *json);

static int fail(struct reading *r, const struct kp_op *op, const char *wanted)
{
    return err_set(r->err, ERR_INVALID, "%s: %s: %s is wanted", r->t->name, kp__field_name(r->t, op->field),
                   wanted);
}

static int read_number(struct reading *r, const struct kp_op *op, unsigned kind, uint8_t *at,
                       const json_t *json)
{
    static const int64_t low[] = {[KP_INT8] = INT8_MIN,
                                  [KP_INT16] = INT16_MIN,
                                  [KP_INT32] = INT32_MIN,
                                  [KP_INT64] = INT64_MIN,
                                  [KP_FLOAT64] = 0};
    static const int64_t high[] = {
        [KP_INT8] = INT8_MAX,     [KP_INT16] = INT16_MAX, [KP_UINT16] = UINT16_MAX, [KP_INT32] = INT32_MAX,
        [KP_UINT32] = UINT32_MAX, [KP_INT64] = INT64_MAX, [KP_FLOAT64] = 0};
    if (!json_is_integer(json))
        return fail(r, op, "a whole number");
    int64_t value = json_integer_value(json);
    if (value < low[kind] || value > high[kind])
        return fail(r, op, "a number that fits the field");
    kp__store_number(at, kind, value);
    return 0;
}

static int read_double(struct reading *r, const struct kp_op *op, uint8_t *at, const json_t *json)
{
    double v;
    if (json_is_number(json))
        v = json_number_value(json);
    else if (json_is_string(json) && strcmp(json_string_value(json), "NaN") == 0)
        v = (double)NAN;
    else if (json_is_string(json) && strcmp(json_string_value(json), "Infinity") == 0)
        v = (double)INFINITY;
    else if (json_is_string(json) && strcmp(json_string_value(json), "-Infinity") == 0)
        v = -(double)INFINITY;
    else
        return fail(r, op, "a number");
    memcpy(at, &v, sizeof(v));
    return 0;
}

static int read_text(struct reading *r, const struct kp_op *op, uint8_t *at, const json_t *json)
{
    if (!json_is_string(json))
        return fail(r, op, "text");
    size_t len = json_string_length(json);
    kp__store_slice(at, slice_of(arena_dup(r->arena, json_string_value(json), len + 1), len)); // with its NUL
    return 0;
}

static int read_bytes(struct reading *r, const struct kp_op *op, uint8_t *at, const json_t *json)
{
    if (!json_is_string(json))
        return fail(r, op, "base64 text");
    size_t len = json_string_length(json);
    uint8_t *bytes = arena_alloc(r->arena, BASE64_DECODED_BYTES(len) + 1);
    if (!base64_decode(BASE64_STANDARD, slice_of(json_string_value(json), len), bytes, &len))
        return fail(r, op, "base64 text");
    kp__store_slice(at, slice_of(bytes, len)); // of records: the slice comes first
    return 0;
}

static int read_scalar(struct reading *r, const struct kp_op *op, unsigned kind, uint8_t *at,
                       const json_t *json)
{
    switch (kind) {
    case KP_STRING:
        return read_text(r, op, at, json);
    case KP_BYTES:
    case KP_RECORDS:
        return read_bytes(r, op, at, json);
    case KP_STRUCT:
        return read_struct(r, op->sub, at, json);
    case KP_BOOL:
        if (!json_is_boolean(json))
            return fail(r, op, "true or false");
        *(bool *)at = json_is_true(json);
        return 0;
    case KP_UUID: {
        struct uuid id;
        if (!json_is_string(json) || !uuid_parse(slice_str(json_string_value(json)), &id))
            return fail(r, op, "an id of 22 characters");
        memcpy(at, &id, sizeof(id));
        return 0;
    }
    case KP_FLOAT64:
        return read_double(r, op, at, json);
    default:
        return read_number(r, op, kind, at, json);
    }
}

static int read_array(struct reading *r, const struct kp_op *op, uint8_t *at, const json_t *json)
{
    unsigned kind = op->code & KP_KIND_MASK;
    if (!json_is_array(json))
        return fail(r, op, "an array");
    size_t count = json_array_size(json), stride = kp__element_size(r->t, kind, op->sub);
    if (count > INT32_MAX)
        return fail(r, op, "a shorter array");
    uint8_t *elements = arena_zalloc(r->arena, count * stride);
    for (size_t i = 0; i < count; i++) {
        int rc = read_scalar(r, op, kind, elements + i * stride, json_array_get(json, i));
        if (rc)
            return rc;
    }
    kp__store_pointer(at, count ? elements : NULL);
    kp__store_count(at, (int32_t)count);
    return 0;
}

static int read_null(struct reading *r, const struct kp_op *op, uint8_t *at)
{
    unsigned kind = op->code & KP_KIND_MASK;
    if (!(op->code & KP_NULLABLE))
        return fail(r, op, "a value that is not null");
    if (op->code & KP_ARRAY) {
        kp__store_pointer(at, NULL);
        kp__store_count(at, -1);
    } else if (kind == KP_STRUCT) {
        kp__store_pointer(at, NULL);
    } else {
        kp__store_slice(at, SLICE_NULL);
    }
    return 0;
}

static int read_field(struct reading *r, const struct kp_op *op, uint8_t *at, const json_t *json)
{
    unsigned kind = op->code & KP_KIND_MASK;
    if (json_is_null(json))
        return read_null(r, op, at);
    if (op->code & KP_ARRAY)
        return read_array(r, op, at, json);
    if (kind == KP_STRUCT && (r->t->fields[op->field].code & KP_NULLABLE)) {
        uint8_t *s = arena_alloc(r->arena, kp__element_size(r->t, kind, op->sub));
        kp__store_pointer(at, s);
        at = s;
    }
    return read_scalar(r, op, kind, at, json);
}

static int unknown_name(struct reading *r, const struct kp_program *p, const json_t *json)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)json, name, value)
    {
        const struct kp_op *op = kp__ops_plain(r->t, p), *end = op + p->plain + p->tagged;
        while (op < end && strcmp(name, kp__field_name(r->t, op->field)) != 0)
            op++;
        if (op == end)
            return err_set(r->err, ERR_INVALID, "%s: there is no field %s in %s at this version", r->t->name,
                           name, kp_names + r->t->structs[p->type].name);
    }
    return 0;
}

static int read_struct(struct reading *r, unsigned program, uint8_t *s, const json_t *json)
{
    const struct kp_program *p = &r->t->programs[program];
    const struct kp_op *op = kp__ops_plain(r->t, p);
    size_t found = 0;
    if (!json_is_object(json))
        return err_set(r->err, ERR_INVALID, "%s: an object with the fields of %s is wanted", r->t->name,
                       kp_names + r->t->structs[p->type].name);
    kp_struct_init(r->t, p->type, s);
    for (unsigned i = 0; i < (unsigned)p->plain + p->tagged; i++, op++) {
        const json_t *value = json_object_get(json, kp__field_name(r->t, op->field));
        if (value) {
            int rc = read_field(r, op, s + op->offset, value);
            if (rc)
                return rc;
            found++;
        } else if (i < p->plain && r->mode == KP_JSON_STRICT) {
            return err_set(r->err, ERR_INVALID, "%s: field %s is missing", r->t->name,
                           kp__field_name(r->t, op->field));
        }
    }
    return r->mode == KP_JSON_STRICT && found != json_object_size(json) ? unknown_name(r, p, json) : 0;
}

int kp_message_from_json(const struct kp_message_type *t, void *m, const json_t *json, int version,
                         enum kp_json_mode mode, struct arena *arena, struct errmsg *err)
{
    if (!kp_message_has_version(t, version))
        return err_set(err, ERR_UNSUPPORTED, "%s: version %d is not known (%d to %d are)", t->name, version,
                       t->min_version, t->max_version);
    struct reading r = {.t = t, .mode = mode, .arena = arena, .err = err};
    return read_struct(&r, t->by_version[version - t->min_version], m, json);
}
