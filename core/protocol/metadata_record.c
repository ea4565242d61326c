// SPDX-License-Identifier: Apache-2.0
// Frame and body of the records of the cluster metadata log.
#include "core/protocol/metadata_record.h"

#include "core/base/assert.h"
#include "core/base/bytes.h"

void metadata_record_init(struct metadata_record *m, enum metadata_record_type type, int16_t version)
{
    const struct kp_message_type *t = kp_message_of_metadata((uint32_t)type);
    MUST(t && kp_message_has_version(t, version));
    m->type = type;
    m->version = version;
    kp_message_init(t, &m->body);
}

static int read_uvarint(struct kp_reader *r, const char *what, uint32_t *out)
{
    size_t n = uvarint_read(r->pos, kp_reader_left(r), out);
    if (n == 0)
        return err_set(r->err, ERR_MALFORMED, "metadata record: no %s", what);
    r->pos += n;
    return 0;
}

int metadata_record_decode(struct metadata_record *m, struct slice value, struct arena *arena,
                           struct errmsg *err)
{
    struct kp_reader r;
    uint32_t frame, type, version;
    int rc;
    kp_reader_init(&r, value, arena, err);
    if ((rc = read_uvarint(&r, "frame version", &frame)))
        return rc;
    if (frame != METADATA_FRAME_VERSION)
        return err_set(err, ERR_UNSUPPORTED, "metadata record: frame version %u, only %d is known", frame,
                       METADATA_FRAME_VERSION);
    if ((rc = read_uvarint(&r, "type", &type)) || (rc = read_uvarint(&r, "version", &version)))
        return rc;
    const struct kp_message_type *t = kp_message_of_metadata(type);
    if (!t)
        return err_set(err, ERR_UNSUPPORTED,
                       "metadata record: type %u is not known; a newer release wrote it", type);
    if (version > INT16_MAX || !kp_message_has_version(t, (int)version))
        return err_set(err, ERR_UNSUPPORTED, "metadata record: %s version %u is not known (%d to %d are)",
                       t->name, version, t->min_version, t->max_version);
    m->type = (enum metadata_record_type)type;
    m->version = (int16_t)version;
    if ((rc = kp_message_decode(t, &m->body, &r, (int)version)))
        return rc;
    if (kp_reader_left(&r))
        return err_set(err, ERR_MALFORMED, "metadata record: %zu bytes after %s version %u",
                       kp_reader_left(&r), t->name, version);
    return 0;
}

static size_t write_frame(const struct metadata_record *m, uint8_t *p)
{
    size_t n = uvarint_write(p, METADATA_FRAME_VERSION);
    n += uvarint_write(p + n, (uint32_t)m->type);
    return n + uvarint_write(p + n, (uint32_t)m->version);
}

int metadata_record_encode(const struct metadata_record *m, struct rope *out)
{
    uint8_t frame[3 * VARINT_BYTES_MAX];
    rope_write(out, frame, write_frame(m, frame));
    return kp_message_encode(kp_message_of_metadata((uint32_t)m->type), &m->body, out, m->version);
}

size_t metadata_record_size(const struct metadata_record *m)
{
    uint8_t frame[3 * VARINT_BYTES_MAX];
    return write_frame(m, frame) +
           kp_message_size(kp_message_of_metadata((uint32_t)m->type), &m->body, m->version);
}

int metadata_record_encode_into(const struct metadata_record *m, uint8_t *out)
{
    size_t n = write_frame(m, out);
    return kp_message_encode_into(kp_message_of_metadata((uint32_t)m->type), &m->body, out + n, m->version);
}

const char *metadata_record_type_name(uint32_t type)
{
    const struct kp_message_type *t = kp_message_of_metadata(type);
    return t ? t->name : "UnknownRecord";
}
