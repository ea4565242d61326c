// SPDX-License-Identifier: Apache-2.0
// A principal to bytes and back.
#include "core/security/principal.h"

#include "core/base/assert.h"
#include "core/protocol/gen/default_principal.h"

#define VERSION_BYTES 2 // int16, big-endian, in front

struct slice principal_serialize(const struct request_context *ctx, struct arena *arena)
{
    struct kp_default_principal p;
    kp_default_principal_init(&p);
    p.type = ctx->principal_type;
    p.name = ctx->principal_name;
    p.token_authenticated = ctx->token_authenticated;
    size_t size = kp_default_principal_size(&p, KP_DEFAULT_PRINCIPAL_MAX_VERSION);
    uint8_t *out = arena_alloc(arena, VERSION_BYTES + size);
    out[0] = 0;
    out[1] = KP_DEFAULT_PRINCIPAL_MAX_VERSION;
    int err = kp_message_encode_into(&kp_default_principal_type, &p, out + VERSION_BYTES,
                                     KP_DEFAULT_PRINCIPAL_MAX_VERSION);
    MUST(err == 0);
    return slice_of(out, VERSION_BYTES + size);
}

int principal_deserialize(struct slice bytes, struct arena *arena, struct request_context *ctx,
                          struct errmsg *msg)
{
    if (slice_is_null(bytes) || bytes.len < VERSION_BYTES)
        return err_set(msg, ERR_MALFORMED, "a principal of %zu bytes", bytes.len);
    int16_t version = (int16_t)(bytes.data[0] << 8 | bytes.data[1]);
    struct kp_default_principal p;
    struct kp_reader r;
    kp_reader_init(&r, slice_of(bytes.data + VERSION_BYTES, bytes.len - VERSION_BYTES), arena, msg);
    if (kp_default_principal_decode(&p, &r, version) != 0) {
        err_prefix(msg, "the principal");
        return ERR_MALFORMED;
    }
    if (kp_reader_left(&r) > 0 || p.type.len == 0 || p.name.len == 0)
        return err_set(msg, ERR_MALFORMED, "a principal without a type or a name, or with bytes behind it");
    ctx->principal_type = p.type;
    ctx->principal_name = p.name;
    ctx->token_authenticated = p.token_authenticated;
    return 0;
}
