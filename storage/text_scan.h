// SPDX-License-Identifier: Apache-2.0
// Taking lines, words and numbers off the front of a text file's bytes.
#ifndef KRAFT_STORAGE_TEXT_SCAN_H
#define KRAFT_STORAGE_TEXT_SCAN_H

#include "core/base/slice.h"

// The next line without its end ("\n" or "\r\n"); false at the end of the text.
static inline bool text_line(struct slice *rest, struct slice *line)
{
    if (rest->len == 0)
        return false;
    const uint8_t *nl = memchr(rest->data, '\n', rest->len);
    size_t len = nl ? (size_t)(nl - rest->data) : rest->len;
    *line = slice_of(rest->data, len);
    if (line->len && line->data[line->len - 1] == '\r')
        line->len--;
    size_t taken = nl ? len + 1 : len;
    rest->data += taken;
    rest->len -= taken;
    return true;
}

// The next word of a line (words are apart by spaces); false when there is none left.
static inline bool text_word(struct slice *line, struct slice *word)
{
    while (line->len && line->data[0] == ' ') {
        line->data++;
        line->len--;
    }
    size_t n = 0;
    while (n < line->len && line->data[n] != ' ')
        n++;
    *word = slice_of(line->data, n);
    line->data += n;
    line->len -= n;
    return n > 0;
}

// A whole decimal number with an optional minus sign; false: it is none, or does not fit.
static inline bool text_number(struct slice s, int64_t *out)
{
    size_t i = 0;
    bool minus = s.len > 1 && s.data[0] == '-';
    if (minus)
        i = 1;
    if (i == s.len)
        return false;
    uint64_t v = 0;
    for (; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(s.data[i] - '0');
        if (v > ((uint64_t)INT64_MAX - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *out = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

static inline bool text_word_number(struct slice *line, int64_t *out)
{
    struct slice w;
    return text_word(line, &w) && text_number(w, out);
}

#endif
