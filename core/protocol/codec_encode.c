// SPDX-License-Identifier: Apache-2.0
// Encoding: runs the program of a struct and writes its fields to a rope, or to a buffer of the caller.
//
// Small values are gathered in a buffer on the stack and go to the rope in runs; long slices go there
// directly, and a rope of records is moved. Sizes are computed for tagged fields only, since these carry
// their length in front.
#include "core/protocol/codec_write.h"

#include "core/base/bytes.h"

#define GATHER_BYTES 512 // values gathered before they go to the rope
#define DIRECT_BYTES 256 // slices from this length on go to the rope without being gathered

struct writer {
    uint8_t *pos;      // next byte to write
    size_t left;       // room at `pos`
    struct rope *out;  // NULL: `pos` is the caller's buffer, which has room for all
    uint8_t *gathered; // start of the gathered bytes
    int err;           // first error; writing goes on as if nothing was
};

static void encode_struct(const struct kp_message_type *t, unsigned program, const uint8_t *s,
                          struct writer *w);

static void flush(struct writer *w)
{
    if (w->pos != w->gathered)
        rope_write(w->out, w->gathered, (size_t)(w->pos - w->gathered));
    w->pos = w->gathered;
    w->left = GATHER_BYTES;
}

// Room for up to GATHER_BYTES, counted as written.
static inline uint8_t *take(struct writer *w, size_t size)
{
    if (__builtin_expect(w->left < size, 0))
        flush(w);
    uint8_t *p = w->pos;
    w->pos += size;
    w->left -= size;
    return p;
}

static void put_bytes(struct writer *w, struct slice s)
{
    if (s.len == 0)
        return;
    if (w->out && s.len >= DIRECT_BYTES) {
        flush(w);
        rope_write(w->out, s.data, s.len);
        return;
    }
    memcpy(take(w, s.len), s.data, s.len);
}

static void put_uvarint(struct writer *w, uint64_t value)
{
    if (value < 0x80) {
        *take(w, 1) = (uint8_t)value;
        return;
    }
    uint8_t bytes[VARLONG_BYTES_MAX];
    size_t n = uvarlong_write(bytes, value);
    memcpy(take(w, n), bytes, n);
}

// Length of a string (`narrow`), bytes or array; `null` where the length is to say null.
static void put_length(struct writer *w, uint8_t code, size_t length, bool narrow, bool null)
{
    if (length > (narrow ? KP_STRING_BYTES_MAX : INT32_MAX)) {
        w->err = ERR_TOO_LARGE;
        length = 0;
    }
    if (code & KP_COMPACT)
        put_uvarint(w, null ? 0 : length + 1);
    else if (narrow)
        bytes_store_be16(take(w, 2), null ? UINT16_MAX : (uint16_t)length);
    else
        bytes_store_be32(take(w, 4), null ? UINT32_MAX : (uint32_t)length);
}

static void put_slice(struct writer *w, uint8_t code, struct slice s)
{
    put_length(w, code, s.len, (code & KP_KIND_MASK) == KP_STRING, !s.data && (code & KP_NULLABLE));
    put_bytes(w, s);
}

static void put_fixed(struct writer *w, unsigned kind, const uint8_t *at)
{
    switch (kind) {
    case KP_BOOL:
    case KP_INT8:
        *take(w, 1) = *at;
        break;
    case KP_INT16:
    case KP_UINT16: {
        uint16_t v;
        memcpy(&v, at, sizeof(v));
        bytes_store_be16(take(w, sizeof(v)), v);
        break;
    }
    case KP_INT32:
    case KP_UINT32: {
        uint32_t v;
        memcpy(&v, at, sizeof(v));
        bytes_store_be32(take(w, sizeof(v)), v);
        break;
    }
    case KP_INT64:
    case KP_FLOAT64: {
        uint64_t v;
        memcpy(&v, at, sizeof(v));
        bytes_store_be64(take(w, sizeof(v)), v);
        break;
    }
    default:
        memcpy(take(w, sizeof(struct uuid)), at, sizeof(struct uuid));
    }
}

static void encode_array(const struct kp_message_type *t, const struct kp_op *op, const uint8_t *at,
                         struct writer *w)
{
    unsigned kind = op->code & KP_KIND_MASK;
    int32_t count = kp__load_count(at);
    bool null = count < 0 && (op->code & KP_NULLABLE);
    const uint8_t *element = kp__load_pointer(at);
    size_t stride = kp__element_size(t, kind, op->sub);
    put_length(w, op->code, count < 0 ? 0 : (size_t)count, false, null);
    for (int32_t i = 0; i < count; i++, element += stride) {
        if (kind == KP_STRUCT)
            encode_struct(t, op->sub, element, w);
        else if (kp__is_text_like(kind))
            put_slice(w, op->code & (KP_KIND_MASK | KP_COMPACT), kp__load_slice(element));
        else
            put_fixed(w, kind, element);
    }
}

static void encode_records(const struct kp_op *op, const struct kp_records *r, struct writer *w)
{
    if (!r->rope) {
        put_slice(w, op->code, r->bytes);
        return;
    }
    size_t len = r->rope->len;
    put_length(w, op->code, len, false, false);
    if (w->out) {
        flush(w);
        rope_move(w->out, r->rope);
        return;
    }
    int rc = rope_flatten(r->rope, take(w, len));
    if (rc)
        w->err = rc;
}

static void encode_value(const struct kp_message_type *t, const struct kp_op *op, const uint8_t *at,
                         struct writer *w)
{
    unsigned kind = op->code & KP_KIND_MASK;
    if (op->code & KP_ARRAY) {
        encode_array(t, op, at, w);
        return;
    }
    switch (kind) {
    case KP_STRING:
    case KP_BYTES:
        put_slice(w, op->code, kp__load_slice(at));
        break;
    case KP_RECORDS:
        encode_records(op, (const void *)at, w);
        break;
    case KP_STRUCT:
        if (t->fields[op->field].code & KP_NULLABLE) {
            at = kp__load_pointer(at);
            if (op->code & KP_NULLABLE)
                *take(w, 1) = at ? 1 : op->code & KP_IN_TAG ? 0 : 0xff;
            else if (!at)
                w->err = ERR_INVALID; // null where this version must have a struct
        }
        if (at)
            encode_struct(t, op->sub, at, w);
        break;
    default:
        put_fixed(w, kind, at);
    }
}

static void put_unknown(struct writer *w, const struct kp_unknown_tag *u)
{
    put_uvarint(w, u->tag);
    put_uvarint(w, u->bytes.len);
    put_bytes(w, u->bytes);
}

// Tagged fields go by rising tag, known and unknown ones merged.
static void encode_tags(const struct kp_message_type *t, const struct kp_program *p, const uint8_t *s,
                        struct writer *w)
{
    const struct kp_op *first = kp__ops_tagged(t, p);
    uint64_t present = 0; // bit i: tagged op i is written
    size_t count = 0;
    const struct kp_unknown_tag *u = kp__unknown_of(&t->structs[p->type], s);
    for (unsigned i = 0; i < p->tagged; i++)
        if (!kp__field_is_default(t, &t->fields[first[i].field], s + first[i].offset)) {
            present |= (uint64_t)1 << i;
            count++;
        }
    for (const struct kp_unknown_tag *each = u; each; each = each->next)
        count++;
    put_uvarint(w, count);
    for (; present; present &= present - 1) {
        const struct kp_op *op = &first[__builtin_ctzll(present)];
        for (; u && u->tag < op->tag; u = u->next)
            put_unknown(w, u);
        put_uvarint(w, op->tag);
        put_uvarint(w, kp__value_size(t, op, s + op->offset));
        encode_value(t, op, s + op->offset, w);
    }
    for (; u; u = u->next)
        put_unknown(w, u);
}

static void encode_struct(const struct kp_message_type *t, unsigned program, const uint8_t *s,
                          struct writer *w)
{
    const struct kp_program *p = &t->programs[program];
    const struct kp_op *op = kp__ops_plain(t, p);
    for (const struct kp_op *end = op + p->plain; op < end; op++)
        encode_value(t, op, s + op->offset, w);
    if (p->flexible)
        encode_tags(t, p, s, w);
}

int kp_message_encode(const struct kp_message_type *t, const void *m, struct rope *out, int version)
{
    if (!kp_message_has_version(t, version))
        return ERR_UNSUPPORTED;
    uint8_t gathered[GATHER_BYTES];
    struct writer w = {.pos = gathered, .left = sizeof(gathered), .out = out, .gathered = gathered};
    encode_struct(t, t->by_version[version - t->min_version], m, &w);
    flush(&w);
    return w.err;
}

int kp_message_encode_into(const struct kp_message_type *t, const void *m, uint8_t *out, int version)
{
    if (!kp_message_has_version(t, version))
        return ERR_UNSUPPORTED;
    struct writer w = {.pos = out, .left = SIZE_MAX};
    encode_struct(t, t->by_version[version - t->min_version], m, &w);
    return w.err;
}
