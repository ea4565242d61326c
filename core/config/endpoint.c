// SPDX-License-Identifier: Apache-2.0
// Listeners, voters and host:port pairs from their text.
#include "core/config/endpoint.h"

#include <ctype.h>
#include <strings.h>

#include "core/config/check.h"

static const char *const protocols[] = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"};

const char *security_protocol_name(enum security_protocol p)
{
    return (unsigned)p < 4 ? protocols[p] : "UNKNOWN";
}

bool security_protocol_parse(struct slice name, enum security_protocol *out)
{
    for (int i = 0; i < 4; i++) {
        if (name.len == strlen(protocols[i]) &&
            strncasecmp((const char *)name.data, protocols[i], name.len) == 0) {
            *out = (enum security_protocol)i;
            return true;
        }
    }
    return false;
}

int endpoint_parse_host_port(struct slice text, struct slice *host, uint16_t *port, struct errmsg *msg)
{
    text = config_trim(text);
    size_t colon = text.len;
    while (colon > 0 && text.data[colon - 1] != ':') {
        colon--;
    }
    int64_t number;
    if (colon == 0 || !config_read_long(slice_of(text.data + colon, text.len - colon), &number) ||
        number < 0 || number > 65535 || text.data[colon] == '+') {
        return err_set(msg, ERR_INVALID, "\"" SLICE_FMT "\" is not host:port; write HOST:PORT",
                       SLICE_ARG(text));
    }
    struct slice h = slice_of(text.data, colon - 1);
    if (h.len >= 2 && h.data[0] == '[' && h.data[h.len - 1] == ']') {
        h = slice_of(h.data + 1, h.len - 2);
    } else if (h.len > 0 && memchr(h.data, ':', h.len)) {
        return err_set(msg, ERR_INVALID,
                       "\"" SLICE_FMT "\": an IPv6 address needs brackets, as in [::1]:9092",
                       SLICE_ARG(text));
    }
    for (size_t i = 0; i < h.len; i++) {
        if (h.data[i] <= ' ' || h.data[i] == '/' || h.data[i] == '@' || h.data[i] == ',') {
            return err_set(msg, ERR_INVALID, "\"" SLICE_FMT "\" has a host name that cannot be",
                           SLICE_ARG(text));
        }
    }
    *host = h;
    *port = (uint16_t)number;
    return 0;
}

static struct slice keep(struct arena *arena, struct slice s, bool upper)
{
    char *copy = arena_alloc(arena, s.len + 1);
    for (size_t i = 0; i < s.len; i++) {
        copy[i] = upper ? (char)toupper(s.data[i]) : (char)s.data[i];
    }
    copy[s.len] = '\0';
    return slice_of(copy, s.len);
}

int endpoint_parse_listener(struct slice text, struct arena *arena, struct config_endpoint *out,
                            struct errmsg *msg)
{
    text = config_trim(text);
    const uint8_t *mark = text.len > 3 ? memmem(text.data, text.len, "://", 3) : NULL;
    struct slice host;
    if (!mark || mark == text.data) {
        return err_set(msg, ERR_INVALID,
                       "\"" SLICE_FMT
                       "\" is no listener; write NAME://host:port, as PLAINTEXT://0.0.0.0:9092",
                       SLICE_ARG(text));
    }
    size_t head = (size_t)(mark - text.data) + 3;
    int rc = endpoint_parse_host_port(slice_of(text.data + head, text.len - head), &host, &out->port, msg);
    if (rc) {
        err_prefix(msg, "listener " SLICE_FMT, SLICE_ARG(text));
        return rc;
    }
    out->name = keep(arena, slice_of(text.data, head - 3), true);
    out->host = keep(arena, host, false);
    return 0;
}

static int parse_voter(struct slice one, bool with_directory, struct arena *arena, struct config_voter *out,
                       struct errmsg *msg)
{
    const char *form = with_directory ? "id@host:port:DIRECTORY-ID" : "id@host:port";
    const uint8_t *at = one.len > 0 ? memchr(one.data, '@', one.len) : NULL;
    int64_t id;
    if (!at || !config_read_long(slice_of(one.data, (size_t)(at - one.data)), &id) || id < 0 ||
        id > INT32_MAX) {
        return err_set(msg, ERR_INVALID, "\"" SLICE_FMT "\" is no voter; write %s", SLICE_ARG(one), form);
    }
    struct slice rest = slice_of(at + 1, one.len - (size_t)(at + 1 - one.data)), host;
    out->directory = UUID_ZERO;
    if (with_directory) {
        size_t colon = rest.len;
        while (colon > 0 && rest.data[colon - 1] != ':') {
            colon--;
        }
        if (colon == 0 || !uuid_parse(slice_of(rest.data + colon, rest.len - colon), &out->directory) ||
            uuid_is_reserved(out->directory)) {
            return err_set(msg, ERR_INVALID,
                           "\"" SLICE_FMT "\" is no voter; write %s, with a directory id of 22 characters "
                           "(kraft-format random-uuid makes one)",
                           SLICE_ARG(one), form);
        }
        rest.len = colon - 1;
    }
    int rc = endpoint_parse_host_port(rest, &host, &out->port, msg);
    if (rc == 0 && (host.len == 0 || out->port == 0)) {
        rc =
            err_set(msg, ERR_INVALID,
                    "\"" SLICE_FMT "\": others must be able to reach it: name host and port", SLICE_ARG(one));
    }
    if (rc) {
        err_prefix(msg, "voter %s", form);
        return rc;
    }
    out->id = (node_id)id;
    out->host = keep(arena, host, false);
    return 0;
}

int endpoint_parse_voters(struct slice text, bool with_directory, struct arena *arena,
                          struct config_voter **out, int32_t *count, struct errmsg *msg)
{
    struct slice rest = text, one;
    int32_t n = 0;
    while (config_list_next(&rest, &one)) {
        n++;
    }
    struct config_voter *voters = arena_zalloc(arena, ((size_t)n + 1) * sizeof *voters);
    rest = text;
    for (int32_t i = 0; i < n && config_list_next(&rest, &one); i++) {
        int rc = parse_voter(one, with_directory, arena, &voters[i], msg);
        if (rc) {
            return rc;
        }
        for (int32_t k = 0; k < i; k++) {
            if (voters[k].id == voters[i].id) {
                return err_set(msg, ERR_INVALID, "voter %d is listed twice", voters[i].id);
            }
            if (with_directory && uuid_equal(voters[k].directory, voters[i].directory)) {
                return err_set(msg, ERR_INVALID, "voters %d and %d have the same directory id", voters[k].id,
                               voters[i].id);
            }
        }
    }
    *out = voters;
    *count = n;
    return 0;
}
