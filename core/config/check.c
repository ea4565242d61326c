// SPDX-License-Identifier: Apache-2.0
// Reads and judges single values.
//
// What a key allows is a short text, Apache Kafka's own way to print it:
//   [1,...]  [0,...,1]  [1,...,9] or -1      ranges of numbers
//   [a, b]  (case insensitive) [a, b]        words; of a list each element
//   [a, by_duration:PnDTnHnMn.nS]            words, one of them with an ISO 8601 duration
//   [partitionId]:[brokerId],...             pairs, or * for all
//   non-empty string                         anything but ""
#include "core/config/check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#define NUMBER_BYTES_MAX 64 // longer texts are no numbers

struct slice config_trim(struct slice text)
{
    while (text.len > 0 && text.data[0] <= ' ') {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && text.data[text.len - 1] <= ' ') {
        text.len--;
    }
    return text;
}

static bool same_word(struct slice a, const char *word)
{
    return a.len == strlen(word) && (a.len == 0 || strncasecmp((const char *)a.data, word, a.len) == 0);
}

bool config_read_bool(struct slice text, bool *out)
{
    text = config_trim(text);
    bool yes = same_word(text, "true");
    if (!yes && !same_word(text, "false")) {
        return false;
    }
    *out = yes;
    return true;
}

bool config_read_long(struct slice text, int64_t *out)
{
    text = config_trim(text);
    bool minus = text.len > 0 && text.data[0] == '-';
    size_t at = text.len > 0 && (minus || text.data[0] == '+');
    int64_t value = 0;
    if (at == text.len) {
        return false;
    }
    for (; at < text.len; at++) {
        int digit = text.data[at] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit, &value)) {
            return false; // counted downwards, so that INT64_MIN fits
        }
    }
    return minus ? (*out = value, true) : !__builtin_sub_overflow(0, value, out);
}

bool config_read_double(struct slice text, double *out)
{
    text = config_trim(text);
    char copy[NUMBER_BYTES_MAX];
    if (text.len == 0 || text.len >= sizeof copy) {
        return false;
    }
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    for (size_t i = 0; i < text.len; i++) { // no "inf", no "nan", no hexadecimal
        if (!strchr("0123456789.eE+-", copy[i])) {
            return false;
        }
    }
    char *end;
    errno = 0;
    *out = strtod(copy, &end);
    return *end == '\0' && isfinite(*out);
}

bool config_list_next(struct slice *list, struct slice *out)
{
    *list = config_trim(*list);
    if (list->data == NULL || list->len == 0) {
        return false;
    }
    const uint8_t *comma = memchr(list->data, ',', list->len);
    size_t len = comma ? (size_t)(comma - list->data) : list->len;
    *out = config_trim(slice_of(list->data, len));
    size_t taken = comma ? len + 1 : len;
    *list = slice_of(list->data + taken, list->len - taken);
    return true;
}

bool config_list_has(struct slice list, const char *element)
{
    struct slice one;
    while (config_list_next(&list, &one)) {
        if (slice_equal_str(one, element)) {
            return true;
        }
    }
    return false;
}

// ---- what is allowed

static bool is_word(const char *valid, struct slice value)
{
    bool any_case = strncmp(valid, "(case", 5) == 0;
    const char *p = strchr(valid, '[');
    while (p && *p && *p != ']') {
        p++;
        while (*p == ' ') {
            p++;
        }
        size_t len = strcspn(p, ",]");
        const char *colon = memchr(p, ':', len);
        if (colon) { // a word that ends in a duration
            size_t head = (size_t)(colon + 1 - p);
            if (value.len > head + 1 && memcmp(value.data, p, head) == 0 && value.data[head] == 'P') {
                return true;
            }
        } else if (value.len == len && (any_case ? strncasecmp((const char *)value.data, p, len)
                                                 : memcmp(value.data, p, len)) == 0) {
            return true;
        }
        p += len;
    }
    return false;
}

static bool is_throttle_list(struct slice list)
{
    struct slice one;
    if (slice_equal_str(config_trim(list), "*")) {
        return true;
    }
    while (config_list_next(&list, &one)) {
        const uint8_t *colon = one.len > 0 ? memchr(one.data, ':', one.len) : NULL;
        int64_t partition, broker;
        if (!colon || !config_read_long(slice_of(one.data, (size_t)(colon - one.data)), &partition) ||
            !config_read_long(slice_of(colon + 1, one.len - (size_t)(colon + 1 - one.data)), &broker) ||
            partition < 0 || broker < 0) {
            return false;
        }
    }
    return true;
}

// Is `value` within "[low,...,high]", "[low,...]" or "... or -1"?
static bool in_range(const char *valid, double value)
{
    char *p;
    double low = strtod(valid + 1, &p), high = INFINITY;
    if (strncmp(p, ",...,", 5) == 0) {
        high = strtod(p + 5, &p);
    }
    return (value >= low && value <= high) || (strstr(valid, "or -1") && value == -1);
}

static bool is_range(const char *valid)
{
    return valid[0] == '[' && strstr(valid, ",...") != NULL && valid[1] != 'p';
}

static int refuse(const struct config_key *key, struct slice value, const char *why, const char *what,
                  struct errmsg *msg)
{
    if (config_is_sensitive(key)) {
        value = SLICE_LIT("[hidden]");
    }
    return err_set(msg, ERR_INVALID, "Invalid value " SLICE_FMT " for configuration %s: %s%s",
                   SLICE_ARG(value), key->name, why, what);
}

static int check_number(const struct config_key *key, struct slice value, int64_t low, int64_t high,
                        const char *what, struct errmsg *msg)
{
    int64_t n;
    if (!config_read_long(value, &n) || n < low || n > high) {
        return refuse(key, value, "Not a number of type ", what, msg);
    }
    // As integers first: a double cannot tell the largest of them apart.
    if (key->valid && is_range(key->valid) && !in_range(key->valid, (double)n)) {
        return refuse(key, value, "Value must be in ", key->valid, msg);
    }
    return 0;
}

static int check_list(const struct config_key *key, struct slice value, struct errmsg *msg)
{
    struct slice rest = value, one;
    if (key->valid && strncmp(key->valid, "[partitionId]", 13) == 0) {
        return is_throttle_list(value) ? 0 : refuse(key, value, "expected ", key->valid, msg);
    }
    while (config_list_next(&rest, &one)) {
        if (one.len == 0) {
            return refuse(key, value, "a list has no empty elements", "", msg);
        }
        if (key->valid && key->valid[0] == '[' && !is_word(key->valid, one)) {
            return refuse(key, value, "each element must be one of ", key->valid, msg);
        }
        struct slice later = rest, other;
        while (config_list_next(&later, &other)) {
            if (slice_equal(one, other)) {
                return refuse(key, value, "an element appears twice", "", msg);
            }
        }
    }
    return 0;
}

int config_check(const struct config_key *key, struct slice value, struct errmsg *msg)
{
    bool b;
    double d;
    if (slice_is_null(value)) {
        return key->flags & CONFIG_REQUIRED
                   ? err_set(msg, ERR_INVALID, "Missing required configuration %s which has no default value",
                             key->name)
                   : 0;
    }
    value = config_trim(value);
    switch ((enum config_type)key->type) {
    case CONFIG_BOOLEAN:
        return config_read_bool(value, &b)
                   ? 0
                   : refuse(key, value, "Expected value to be either true or false", "", msg);
    case CONFIG_SHORT:
        return check_number(key, value, INT16_MIN, INT16_MAX, "short", msg);
    case CONFIG_INT:
        return check_number(key, value, INT32_MIN, INT32_MAX, "int", msg);
    case CONFIG_LONG:
        return check_number(key, value, INT64_MIN, INT64_MAX, "long", msg);
    case CONFIG_DOUBLE:
        if (!config_read_double(value, &d)) {
            return refuse(key, value, "Not a number of type double", "", msg);
        }
        return key->valid && is_range(key->valid) && !in_range(key->valid, d)
                   ? refuse(key, value, "Value must be in ", key->valid, msg)
                   : 0;
    case CONFIG_LIST:
        return check_list(key, value, msg);
    case CONFIG_STRING:
    case CONFIG_CLASS:
    case CONFIG_PASSWORD:
        if (key->valid && strcmp(key->valid, "non-empty string") == 0 && value.len == 0) {
            return refuse(key, value, "String must be non-empty", "", msg);
        }
        if (key->valid && strchr(key->valid, '[') && !is_word(key->valid, value)) {
            return refuse(key, value, "String must be one of: ", key->valid, msg);
        }
        return 0;
    }
    return 0;
}
