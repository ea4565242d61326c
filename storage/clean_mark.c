// SPDX-License-Identifier: Apache-2.0
// The one-line JSON of the clean-stop mark.
#include "storage/clean_mark.h"
#include <stdio.h>
#include "storage/text_scan.h"

static void skip_space(struct slice *s)
{
    while (s->len && (s->data[0] == ' ' || s->data[0] == '\n' || s->data[0] == '\r' || s->data[0] == '\t')) {
        s->data++;
        s->len--;
    }
}

static bool take(struct slice *s, char c)
{
    skip_space(s);
    if (s->len == 0 || s->data[0] != (uint8_t)c)
        return false;
    s->data++;
    s->len--;
    return true;
}

static bool take_string(struct slice *s, struct slice *out)
{
    if (!take(s, '"'))
        return false;
    const uint8_t *end = s->len ? memchr(s->data, '"', s->len) : NULL;
    if (!end)
        return false;
    size_t n = (size_t)(end - s->data);
    *out = slice_of(s->data, n);
    s->data += n + 1;
    s->len -= n + 1;
    return true;
}

static bool take_number(struct slice *s, int64_t *out)
{
    skip_space(s);
    size_t n = 0;
    while (n < s->len && (s->data[n] == '-' || (s->data[n] >= '0' && s->data[n] <= '9')))
        n++;
    if (!text_number(slice_of(s->data, n), out))
        return false;
    s->data += n;
    s->len -= n;
    return true;
}

int clean_mark_parse(struct slice text, broker_epoch *epoch, struct errmsg *msg)
{
    *epoch = -1;
    skip_space(&text);
    if (text.len == 0)
        return 0;
    bool more = take(&text, '{');
    if (!more)
        return err_set(msg, ERR_CORRUPT, "not a JSON object");
    bool version_seen = false;
    do {
        struct slice key;
        int64_t value;
        if (!take_string(&text, &key) || !take(&text, ':') || !take_number(&text, &value))
            return err_set(msg, ERR_CORRUPT, "not \"name\":number pairs");
        if (slice_equal_str(key, "version")) {
            version_seen = true;
            if (value != 0)
                return err_set(msg, ERR_CORRUPT, "version %lld is not known", (long long)value);
        } else if (slice_equal_str(key, "brokerEpoch")) {
            *epoch = value;
        }
    } while (take(&text, ','));
    if (!take(&text, '}') || !version_seen) {
        *epoch = -1;
        return err_set(msg, ERR_CORRUPT, "cut off, or without a version");
    }
    return 0;
}

size_t clean_mark_format(broker_epoch epoch, char *buf, size_t size)
{
    int n = snprintf(buf, size, "{\"version\":0,\"brokerEpoch\":%lld}", (long long)epoch);
    return n > 0 ? (size_t)n : 0;
}
