// SPDX-License-Identifier: Apache-2.0
// Base64 in both alphabets.
#include "core/base/base64.h"

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t base64_encode(enum base64_kind kind, struct slice in, char *out)
{
    const char *alphabet = kind == BASE64_URL ? url : standard;
    char *at = out;
    size_t i = 0;
    for (; i + 3 <= in.len; i += 3) {
        uint32_t v = (uint32_t)in.data[i] << 16 | (uint32_t)in.data[i + 1] << 8 | in.data[i + 2];
        *at++ = alphabet[v >> 18];
        *at++ = alphabet[v >> 12 & 63];
        *at++ = alphabet[v >> 6 & 63];
        *at++ = alphabet[v & 63];
    }
    size_t rest = in.len - i;
    if (rest) {
        uint32_t v = (uint32_t)in.data[i] << 16 | (rest == 2 ? (uint32_t)in.data[i + 1] << 8 : 0);
        *at++ = alphabet[v >> 18];
        *at++ = alphabet[v >> 12 & 63];
        if (rest == 2)
            *at++ = alphabet[v >> 6 & 63];
        for (; kind == BASE64_STANDARD && rest < 3; rest++)
            *at++ = '=';
    }
    *at = 0;
    return (size_t)(at - out);
}

static int digit(enum base64_kind kind, uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == (kind == BASE64_URL ? '-' : '+'))
        return 62;
    if (c == (kind == BASE64_URL ? '_' : '/'))
        return 63;
    return -1;
}

bool base64_decode(enum base64_kind kind, struct slice in, uint8_t *out, size_t *out_len)
{
    size_t len = in.len;
    size_t pad = 0;
    while (pad < 2 && len > 0 && in.data[len - 1] == '=') {
        len--;
        pad++;
    }
    if (len % 4 == 1 || (pad && (len + pad) % 4 != 0))
        return false;
    uint8_t *at = out;
    uint32_t v = 0;
    unsigned bits = 0;
    for (size_t i = 0; i < len; i++) {
        int d = digit(kind, in.data[i]);
        if (d < 0)
            return false;
        v = (v << 6 | (uint32_t)d) & 0xffffff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            *at++ = (uint8_t)(v >> bits);
        }
    }
    if (v & ((1u << bits) - 1))
        return false;
    *out_len = (size_t)(at - out);
    return true;
}
