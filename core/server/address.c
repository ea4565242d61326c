// SPDX-License-Identifier: Apache-2.0
// IP addresses as text and bytes: dotted IPv4, and IPv6 with one "::" and an optional IPv4 tail.
#include "core/server/address.h"

#include <stdio.h>

static size_t parse_v4(struct slice t, uint8_t out[4])
{
    size_t at = 0;
    for (int i = 0; i < 4; i++) {
        unsigned v = 0, digits = 0;
        while (at < t.len && t.data[at] >= '0' && t.data[at] <= '9' && digits < 3) {
            v = v * 10 + (unsigned)(t.data[at++] - '0');
            digits++;
        }
        if (digits == 0 || v > 255)
            return 0;
        out[i] = (uint8_t)v;
        if (i < 3 && (at >= t.len || t.data[at++] != '.'))
            return 0;
    }
    return at == t.len ? 4 : 0;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// One group of up to four hex digits; moves *at. False: none there.
static bool parse_group(struct slice t, size_t *at, uint8_t out[2])
{
    unsigned v = 0, digits = 0;
    while (*at < t.len && digits < 4 && hex_digit(t.data[*at]) >= 0) {
        v = v * 16 + (unsigned)hex_digit(t.data[(*at)++]);
        digits++;
    }
    out[0] = (uint8_t)(v >> 8);
    out[1] = (uint8_t)v;
    return digits > 0;
}

static size_t parse_v6(struct slice t, uint8_t out[16])
{
    size_t n = 0, at = 0, gap = SIZE_MAX;
    memset(out, 0, 16);
    if (t.len >= 2 && t.data[0] == ':' && t.data[1] == ':') {
        gap = 0;
        at = 2;
    }
    while (at < t.len && n < 16) {
        uint8_t v4[4];
        if (n <= 12 && parse_v4(slice_of(t.data + at, t.len - at), v4)) {
            memcpy(out + n, v4, 4);
            n += 4;
            at = t.len;
            break;
        }
        if (!parse_group(t, &at, out + n))
            return 0;
        n += 2;
        if (at == t.len)
            break;
        if (t.data[at++] != ':' || at == t.len)
            return 0;
        if (t.data[at] == ':') {
            if (gap != SIZE_MAX)
                return 0;
            gap = n;
            at++;
        }
    }
    if (at != t.len || (gap == SIZE_MAX) != (n == 16))
        return 0;
    if (gap != SIZE_MAX) {
        memmove(out + 16 - (n - gap), out + gap, n - gap);
        memset(out + gap, 0, 16 - n);
    }
    return 16;
}

size_t address_parse(struct slice text, uint8_t out[16])
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '%')
            text.len = i;
    size_t n = parse_v4(text, out);
    return n ? n : parse_v6(text, out);
}

bool address_print(struct slice bytes, char out[ADDRESS_TEXT_BYTES])
{
    const uint8_t *b = bytes.data;
    if (bytes.len == 4) {
        (void)snprintf(out, ADDRESS_TEXT_BYTES, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
        return true;
    }
    if (bytes.len != 16)
        return false;
    size_t at = 0;
    for (int i = 0; i < 16; i += 2) {
        int n =
            snprintf(out + at, ADDRESS_TEXT_BYTES - at, i ? ":%x" : "%x", (unsigned)(b[i] << 8 | b[i + 1]));
        at += (size_t)n;
    }
    return true;
}
