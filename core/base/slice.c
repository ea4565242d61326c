// SPDX-License-Identifier: Apache-2.0
// Comparing, checking and copying slices.
#include "core/base/slice.h"

#include "core/base/mem.h"

int slice_compare(struct slice a, struct slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.data, b.data, n) : 0;
    if (c)
        return c;
    return a.len < b.len ? -1 : a.len > b.len;
}

// Bytes of the well-formed sequence at p, or 0.
static size_t utf8_sequence(const uint8_t *p, size_t len)
{
    uint8_t c = p[0];
    if (c < 0x80)
        return 1;
    if (c < 0xc2)
        return 0; // a continuation, or an overlong form of ASCII
    if (c < 0xe0)
        return len >= 2 && (p[1] & 0xc0) == 0x80 ? 2 : 0;
    if (c < 0xf0) {
        if (len < 3 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
            return 0;
        if (c == 0xe0 && p[1] < 0xa0)
            return 0; // overlong
        if (c == 0xed && p[1] >= 0xa0)
            return 0; // half of a surrogate pair
        return 3;
    }
    if (c > 0xf4 || len < 4 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 || (p[3] & 0xc0) != 0x80)
        return 0;
    if ((c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] >= 0x90))
        return 0; // overlong, or above U+10FFFF
    return 4;
}

bool slice_is_utf8(struct slice s)
{
    size_t i = 0;
    while (i < s.len) {
        size_t n = utf8_sequence(s.data + i, s.len - i);
        if (!n)
            return false;
        i += n;
    }
    return true;
}

char *slice_dup_str(struct slice s)
{
    if (!s.data)
        return NULL;
    char *text = mem_alloc(s.len + 1);
    if (s.len)
        memcpy(text, s.data, s.len);
    text[s.len] = 0;
    return text;
}
