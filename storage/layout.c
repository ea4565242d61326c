// SPDX-License-Identifier: Apache-2.0
// Names and paths of segment files.
#include "storage/layout.h"
#include <stdio.h>
#include <string.h>

#define OFFSET_DIGITS 20

const char *const layout_suffix[LAYOUT_KINDS] = {
    [LAYOUT_LOG] = ".log",           [LAYOUT_INDEX] = ".index",       [LAYOUT_TIMEINDEX] = ".timeindex",
    [LAYOUT_TXNINDEX] = ".txnindex", [LAYOUT_SNAPSHOT] = ".snapshot",
};

const char *const layout_state_suffix[LAYOUT_TMP + 1] = {
    [LAYOUT_PLAIN] = "",     [LAYOUT_DELETE] = ".deleted", [LAYOUT_CLEANED] = ".cleaned",
    [LAYOUT_SWAP] = ".swap", [LAYOUT_TMP] = ".tmp",
};

static bool parse_offset(const char *name, log_offset *out)
{
    uint64_t v = 0;
    for (int i = 0; i < OFFSET_DIGITS; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(name[i] - '0');
        if (v > ((uint64_t)INT64_MAX - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *out = (log_offset)v;
    return true;
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), s = strlen(suffix);
    return n >= s && strcmp(name + n - s, suffix) == 0;
}

struct layout_name layout_parse(const char *name)
{
    struct layout_name out = {.kind = LAYOUT_OTHER, .state = LAYOUT_PLAIN, .offset = -1};
    if (ends_with(name, layout_state_suffix[LAYOUT_TMP]))
        out.state = LAYOUT_TMP;
    log_offset offset;
    if (!parse_offset(name, &offset))
        return out;
    const char *rest = name + OFFSET_DIGITS;
    for (int k = 0; k < LAYOUT_KINDS; k++) {
        size_t len = strlen(layout_suffix[k]);
        if (strncmp(rest, layout_suffix[k], len) != 0)
            continue;
        for (int s = LAYOUT_PLAIN; s <= LAYOUT_TMP; s++) {
            if (strcmp(rest + len, layout_state_suffix[s]) == 0)
                return (struct layout_name){(enum layout_kind)k, (enum layout_state)s, offset};
        }
    }
    return out;
}

bool layout_path(char *buf, const char *dir, log_offset offset, enum layout_kind kind,
                 enum layout_state state)
{
    int n = snprintf(buf, LAYOUT_PATH_BYTES, "%s/%020lld%s%s", dir, (long long)offset, layout_suffix[kind],
                     layout_state_suffix[state]);
    return n > 0 && n < LAYOUT_PATH_BYTES;
}

bool layout_join(char *buf, const char *dir, const char *name)
{
    int n = snprintf(buf, LAYOUT_PATH_BYTES, "%s/%s", dir, name);
    return n > 0 && n < LAYOUT_PATH_BYTES;
}
