// SPDX-License-Identifier: Apache-2.0
// Reads and writes request and response headers.
#include "core/protocol/header.h"

#include "core/base/assert.h"
#include "core/base/bytes.h"

int kp_header_read_request(struct kp_reader *r, struct kp_request_header *h, const struct kp_api_info **api)
{
    if (kp_reader_left(r) < 8)
        return err_set(r->err, ERR_MALFORMED, "request header: %zu bytes, at least 8 are needed",
                       kp_reader_left(r));
    int16_t key = (int16_t)bytes_load_be16(r->pos);
    int16_t version = (int16_t)bytes_load_be16(r->pos + 2);
    *api = kp_api_find(key);
    if (!*api) {
        kp_request_header_init(h);
        h->request_api_key = key;
        h->request_api_version = version;
        h->correlation_id = (int32_t)bytes_load_be32(r->pos + 4);
        return err_set(r->err, ERR_UNSUPPORTED, "request header: API key %d is not known", key);
    }
    int err = kp_request_header_decode(h, r, (int16_t)kp_api_request_header_version(*api, version));
    if (err)
        err_prefix(r->err, "request header of %s v%d", (*api)->name, version);
    return err;
}

int kp_header_write_request(struct rope *out, const struct kp_request_header *h)
{
    const struct kp_api_info *api = kp_api_find(h->request_api_key);
    MUST(api);
    return kp_request_header_encode(h, out,
                                    (int16_t)kp_api_request_header_version(api, h->request_api_version));
}

void kp_header_write_response(struct rope *out, const struct kp_api_info *api, int version,
                              int32_t correlation_id)
{
    int flexible = kp_api_response_header_version(api, version);
    uint8_t *p = rope_reserve(out, flexible ? 5 : 4);
    bytes_store_be32(p, (uint32_t)correlation_id);
    if (flexible)
        p[4] = 0; // no tagged fields
}

int kp_header_read_response(struct kp_reader *r, const struct kp_api_info *api, int version,
                            struct kp_response_header *h)
{
    int err = kp_response_header_decode(h, r, (int16_t)kp_api_response_header_version(api, version));
    if (err)
        err_prefix(r->err, "response header of %s v%d", api->name, version);
    return err;
}
