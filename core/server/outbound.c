// SPDX-License-Identifier: Apache-2.0
// Requests that this node sends as a client: request header v1 and v2, response header v0 and v1.
//
// Frame: int32 length, then int16 api key, int16 version, int32 correlation id, nullable string client id
// (int16 length), and from the first flexible version on a byte 0 (no tagged fields). An answer: int32
// correlation id, and tagged fields where flexible (ApiVersions: never).
#include "core/server/outbound.h"

#include "core/base/bytes.h"
#include "core/base/err.h"
#include "core/protocol/gen/apis.h"

static bool is_flexible(int16_t api, int16_t version)
{
    const struct kp_api_info *info = kp_api_find(api);
    return info && version >= info->flexible_from;
}

void outbound_request_frame(struct rope *out, int16_t api, int16_t version, int32_t correlation,
                            const char *client_id, struct rope *body)
{
    size_t client_len = strlen(client_id), header = 8 + 2 + client_len + (is_flexible(api, version) ? 1 : 0);
    uint8_t *p = rope_reserve(out, 4 + header);
    bytes_store_be32(p, (uint32_t)(header + body->len));
    bytes_store_be16(p + 4, (uint16_t)api);
    bytes_store_be16(p + 6, (uint16_t)version);
    bytes_store_be32(p + 8, (uint32_t)correlation);
    bytes_store_be16(p + 12, (uint16_t)client_len);
    memcpy(p + 14, client_id, client_len);
    if (is_flexible(api, version))
        p[14 + client_len] = 0;
    rope_move(out, body);
}

int outbound_response_correlation(struct slice frame, int32_t *out)
{
    if (frame.len < 4)
        return ERR_MALFORMED;
    *out = (int32_t)bytes_load_be32(frame.data);
    return 0;
}

static int take_uvarint(struct slice *s, uint32_t *out)
{
    size_t used = uvarint_read(s->data, s->len, out);
    if (used == 0)
        return ERR_MALFORMED;
    *s = slice_of(s->data + used, s->len - used);
    return 0;
}

// Skips tagged fields: a varint count, then for each a tag, a length and that many bytes.
static int skip_tags(struct slice *s)
{
    uint32_t count, tag, len;
    if (take_uvarint(s, &count) != 0)
        return ERR_MALFORMED;
    for (; count > 0; count--) {
        if (take_uvarint(s, &tag) != 0 || take_uvarint(s, &len) != 0 || len > s->len)
            return ERR_MALFORMED;
        *s = slice_of(s->data + len, s->len - len);
    }
    return 0;
}

int outbound_response_body(struct slice frame, int16_t api, int16_t version, struct slice *body)
{
    if (frame.len < 4)
        return ERR_MALFORMED;
    *body = slice_of(frame.data + 4, frame.len - 4);
    if (api == KP_API_API_VERSIONS || !is_flexible(api, version))
        return 0;
    return skip_tags(body);
}
