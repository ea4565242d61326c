// SPDX-License-Identifier: Apache-2.0
// Decoding: runs the program of a struct over the input. All bounds checks of the protocol are in this file.
//
// Nothing is reserved for a count before it is known that the bytes left can hold that many elements; what
// the elements then take in C is bounded by the arena's limit.
#include "core/protocol/codec_engine.h"

#include "core/base/bytes.h"

static int decode_struct(const struct kp_message_type *t, unsigned program, uint8_t *s, struct kp_reader *r);

static int __attribute__((cold, noinline))
fail(const struct kp_message_type *t, const struct kp_op *op, struct kp_reader *r, int code, const char *what)
{
    return err_set(r->err, code, "%s: %s: %s", t->name, kp__field_name(t, op->field), what);
}

static int __attribute__((cold, noinline))
fail_short(const struct kp_message_type *t, const struct kp_op *op, struct kp_reader *r)
{
    return fail(t, op, r, ERR_MALFORMED, "the bytes end here");
}

static inline bool read_uvarint(struct kp_reader *r, uint32_t *out)
{
    if (r->pos < r->end && *r->pos < 0x80) { // nearly all are one byte
        *out = *r->pos++;
        return true;
    }
    size_t n = uvarint_read(r->pos, kp_reader_left(r), out);
    r->pos += n;
    return n != 0;
}

// Reads the length of a string, bytes or array: -1 is null; what follows is checked by the caller.
static inline int read_length(const struct kp_message_type *t, const struct kp_op *op, struct kp_reader *r,
                              bool narrow, int64_t *out)
{
    if (op->code & KP_COMPACT) {
        uint32_t n;
        if (!read_uvarint(r, &n))
            return fail_short(t, op, r);
        *out = (int64_t)n - 1;
    } else if (narrow) {
        if (kp_reader_left(r) < 2)
            return fail_short(t, op, r);
        *out = (int16_t)bytes_load_be16(r->pos);
        r->pos += 2;
    } else {
        if (kp_reader_left(r) < 4)
            return fail_short(t, op, r);
        *out = (int32_t)bytes_load_be32(r->pos);
        r->pos += 4;
    }
    if (*out < 0 && (*out < -1 || !(op->code & KP_NULLABLE)))
        return fail(t, op, r, ERR_MALFORMED, *out == -1 ? "is null" : "has a negative length");
    return 0;
}

// A string or bytes: a slice of the input.
static inline int decode_slice(const struct kp_message_type *t, const struct kp_op *op, uint8_t *at,
                               struct kp_reader *r, bool is_string)
{
    int64_t len = 0;
    int rc = read_length(t, op, r, is_string, &len);
    if (rc)
        return rc;
    if (len < 0) {
        kp__store_slice(at, SLICE_NULL);
        return 0;
    }
    if ((uint64_t)len > kp_reader_left(r))
        return fail_short(t, op, r);
    if (is_string && len > KP_STRING_BYTES_MAX)
        return fail(t, op, r, ERR_MALFORMED, "is longer than a string can be");
    kp__store_slice(at, slice_of(r->pos, (size_t)len));
    r->pos += len;
    return 0;
}

// One value of a kind whose size is fixed. The caller has checked that its bytes are there.
static inline void decode_fixed(unsigned kind, uint8_t *at, const uint8_t *pos)
{
    switch (kind) {
    case KP_BOOL: {
        bool v = *pos != 0;
        memcpy(at, &v, sizeof(v));
        break;
    }
    case KP_INT8:
        *at = *pos;
        break;
    case KP_INT16:
    case KP_UINT16: {
        uint16_t v = bytes_load_be16(pos);
        memcpy(at, &v, sizeof(v));
        break;
    }
    case KP_INT32:
    case KP_UINT32: {
        uint32_t v = bytes_load_be32(pos);
        memcpy(at, &v, sizeof(v));
        break;
    }
    case KP_INT64:
    case KP_FLOAT64: {
        uint64_t v = bytes_load_be64(pos);
        memcpy(at, &v, sizeof(v));
        break;
    }
    default:
        memcpy(at, pos, sizeof(struct uuid));
    }
}

// Fewest bytes that an element takes on the wire.
static size_t min_wire_size(const struct kp_message_type *t, const struct kp_op *op, unsigned kind)
{
    if (kind == KP_STRUCT)
        return t->programs[op->sub].min_size;
    if (kp__is_text_like(kind))
        return op->code & KP_COMPACT ? 1 : kind == KP_STRING ? 2 : 4;
    return kind == KP_BOOL ? 1 : kp__element_size(t, kind, 0);
}

static int decode_elements(const struct kp_message_type *t, const struct kp_op *op, uint8_t *at, size_t count,
                           struct kp_reader *r)
{
    unsigned kind = op->code & KP_KIND_MASK;
    size_t size = kp__element_size(t, kind, op->sub);
    int rc = 0;
    if (kind == KP_STRUCT) {
        for (size_t i = 0; i < count && rc == 0; i++)
            rc = decode_struct(t, op->sub, at + i * size, r);
    } else if (kp__is_text_like(kind)) {
        struct kp_op element = *op; // the elements themselves are never null
        element.code = (uint8_t)(op->code & (KP_KIND_MASK | KP_COMPACT));
        for (size_t i = 0; i < count && rc == 0; i++)
            rc = decode_slice(t, &element, at + i * size, r, kind == KP_STRING);
    } else {
        for (size_t i = 0; i < count; i++, r->pos += size)
            decode_fixed(kind, at + i * size, r->pos);
    }
    return rc;
}

static int decode_array(const struct kp_message_type *t, const struct kp_op *op, uint8_t *at,
                        struct kp_reader *r)
{
    unsigned kind = op->code & KP_KIND_MASK;
    int64_t count = 0;
    int rc = read_length(t, op, r, false, &count);
    if (rc)
        return rc;
    kp__store_pointer(at, NULL);
    kp__store_count(at, (int32_t)(count < 0 ? -1 : 0));
    if (count <= 0)
        return 0;
    if ((uint64_t)count > kp_reader_left(r) / min_wire_size(t, op, kind) || count > INT32_MAX)
        return fail(t, op, r, ERR_MALFORMED, "claims more elements than there are bytes");
    uint8_t *elements = arena_try_alloc(r->arena, (size_t)count * kp__element_size(t, kind, op->sub));
    if (!elements)
        return fail(t, op, r, ERR_TOO_LARGE, "has more elements than the memory limit of a message allows");
    if ((rc = decode_elements(t, op, elements, (size_t)count, r)))
        return rc;
    kp__store_pointer(at, elements);
    kp__store_count(at, (int32_t)count);
    return 0;
}

// A nullable struct: one byte, negative (in a tagged field: 0) for null, then the struct.
static int decode_nullable_struct(const struct kp_message_type *t, const struct kp_op *op, uint8_t *at,
                                  struct kp_reader *r)
{
    uint8_t *s = NULL;
    bool present = true;
    if (op->code & KP_NULLABLE) {
        if (kp_reader_left(r) < 1)
            return fail_short(t, op, r);
        int8_t mark = (int8_t)*r->pos++;
        present = op->code & KP_IN_TAG ? mark > 0 : mark >= 0;
    }
    if (present) {
        s = arena_try_alloc(r->arena, kp__element_size(t, KP_STRUCT, op->sub));
        if (!s)
            return fail(t, op, r, ERR_TOO_LARGE, "passes the memory limit of a message");
        int rc = decode_struct(t, op->sub, s, r);
        if (rc)
            return rc;
    }
    kp__store_pointer(at, s);
    return 0;
}

static inline int decode_value(const struct kp_message_type *t, const struct kp_op *op, uint8_t *at,
                               struct kp_reader *r)
{
    if (op->code & KP_ARRAY)
        return decode_array(t, op, at, r);
    unsigned kind = op->code & KP_KIND_MASK;
    switch (kind) {
    case KP_STRING:
        return decode_slice(t, op, at, r, true);
    case KP_BYTES:
    case KP_RECORDS: // its slice comes first
        return decode_slice(t, op, at, r, false);
    case KP_STRUCT:
        if (t->fields[op->field].code & KP_NULLABLE)
            return decode_nullable_struct(t, op, at, r);
        return decode_struct(t, op->sub, at, r);
    default: {
        size_t size = kp__element_size(t, kind, 0);
        if (kp_reader_left(r) < size)
            return fail_short(t, op, r);
        decode_fixed(kind, at, r->pos);
        r->pos += size;
        return 0;
    }
    }
}

static const struct kp_op *find_tag(const struct kp_op *op, unsigned count, uint32_t tag)
{
    for (; count > 0; count--, op++)
        if (op->tag == tag)
            return op;
    return NULL;
}

static int keep_unknown(const struct kp_message_type *t, struct kp_reader *r, uint32_t tag, size_t size,
                        struct kp_unknown_tag **last, uint8_t *list)
{
    struct kp_unknown_tag *u = arena_try_alloc(r->arena, sizeof(*u));
    if (!u)
        return err_set(r->err, ERR_TOO_LARGE, "%s: tagged fields pass the memory limit of a message",
                       t->name);
    *u = (struct kp_unknown_tag){.tag = tag, .bytes = slice_of(r->pos, size)};
    if (*last)
        (*last)->next = u;
    else
        kp__store_pointer(list, u);
    *last = u;
    r->pos += size;
    return 0;
}

static int __attribute__((noinline)) decode_tags(const struct kp_message_type *t, const struct kp_program *p,
                                                 uint8_t *s, struct kp_reader *r, uint32_t count)
{
    struct kp_unknown_tag *last = NULL;
    const struct kp_struct_type *type = &t->structs[p->type];
    for (; count > 0; count--) {
        uint32_t tag, size;
        if (!read_uvarint(r, &tag) || !read_uvarint(r, &size) || size > kp_reader_left(r))
            return err_set(r->err, ERR_MALFORMED, "%s: a tagged field ends early", t->name);
        const struct kp_op *op = find_tag(kp__ops_tagged(t, p), p->tagged, tag);
        int rc;
        if (op) {
            const uint8_t *end = r->end;
            r->end = r->pos + size;
            rc = decode_value(t, op, s + op->offset, r);
            if (rc == 0 && r->pos != r->end)
                rc = fail(t, op, r, ERR_MALFORMED, "is shorter than its tag says");
            r->end = end;
        } else {
            rc = keep_unknown(t, r, tag, size, &last, s + type->unknown);
        }
        if (rc)
            return rc;
    }
    return 0;
}

static int decode_struct(const struct kp_message_type *t, unsigned program, uint8_t *s, struct kp_reader *r)
{
    const struct kp_program *p = &t->programs[program];
    const struct kp_op *op = kp__ops_plain(t, p);
    memset(s, 0, t->structs[p->type].size);
    for (const struct kp_op *end = op + p->plain; op < end; op++) {
        int rc = decode_value(t, op, s + op->offset, r);
        if (rc)
            return rc;
    }
    op = kp__ops_init(t, p);
    for (const struct kp_op *end = op + p->inits; op < end; op++)
        kp__field_init(t, &t->fields[op->field], s + op->offset);
    if (!p->flexible)
        return 0;
    uint32_t tags;
    if (!read_uvarint(r, &tags))
        return err_set(r->err, ERR_MALFORMED, "%s: the bytes end before the tagged fields of %s", t->name,
                       kp_names + t->structs[p->type].name);
    return tags ? decode_tags(t, p, s, r, tags) : 0;
}

int kp_message_decode(const struct kp_message_type *t, void *m, struct kp_reader *r, int version)
{
    if (!kp_message_has_version(t, version))
        return err_set(r->err, ERR_UNSUPPORTED, "%s: version %d is not known (%d to %d are)", t->name,
                       version, t->min_version, t->max_version);
    return decode_struct(t, t->by_version[version - t->min_version], m, r);
}
