// SPDX-License-Identifier: Apache-2.0
// Ids: text form and order.
#include "core/base/uuid.h"

#include "core/base/base64.h"
#include "core/base/bytes.h"
#include "core/base/hash.h"

int uuid_compare(struct uuid a, struct uuid b)
{
    for (int i = 0; i < 16; i += 8) {
        int64_t x = (int64_t)bytes_load_be64(a.b + i), y = (int64_t)bytes_load_be64(b.b + i);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

bool uuid_is_reserved(struct uuid a)
{
    return bytes_load_be64(a.b) == 0 && bytes_load_be64(a.b + 8) < 100;
}

uint64_t uuid_hash(struct uuid a)
{
    return hash_bytes(a.b, sizeof a.b);
}

void uuid_format(struct uuid a, char out[UUID_TEXT_BYTES])
{
    (void)base64_encode(BASE64_URL, slice_of(a.b, sizeof a.b), out);
}

bool uuid_parse(struct slice text, struct uuid *out)
{
    uint8_t buf[BASE64_DECODED_BYTES(24)];
    size_t len;
    if (text.len < 22 || text.len > 24)
        return false;
    if (!base64_decode(BASE64_URL, text, buf, &len) || len != sizeof out->b)
        return false;
    memcpy(out->b, buf, sizeof out->b);
    return true;
}

bool uuid_from_random(const uint8_t bytes[16], struct uuid *out)
{
    struct uuid id;
    memcpy(id.b, bytes, sizeof id.b);
    id.b[6] = (id.b[6] & 0x0f) | 0x40;              // version 4
    id.b[8] = (id.b[8] & 0x3f) | 0x80;              // RFC 4122 variant
    if (uuid_is_reserved(id) || id.b[0] >> 2 == 62) // 62 is '-' in the text's first place
        return false;
    *out = id;
    return true;
}
