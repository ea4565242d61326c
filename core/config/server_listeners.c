// SPDX-License-Identifier: Apache-2.0
// Which addresses a node listens on, which it tells others, and whether roles and listeners fit together.
#include "core/config/server_config.h"

#include <ctype.h>
#include <strings.h>

#include "core/config/check.h"
#include "core/config/server_internal.h"

#define TEXT(s) (const char *)(s).data // of slices that are NUL-terminated

bool server_config_is_controller_listener(const struct server_config *c, struct slice name)
{
    for (uint32_t i = 0; i < c->controller_listener_names_count; i++) {
        if (slice_equal_str(name, c->controller_listener_names[i])) {
            return true;
        }
    }
    return false;
}

const struct config_endpoint *server_config_listener(const struct server_config *c, const char *name)
{
    for (uint32_t i = 0; i < c->listeners_count; i++) {
        if (strcasecmp(TEXT(c->listeners[i].name), name) == 0) {
            return &c->listeners[i];
        }
    }
    return NULL;
}

static const char *upper(struct server_config *c, struct slice text)
{
    char *copy = arena_alloc(&c->arena, text.len + 1);
    for (size_t i = 0; i < text.len; i++) {
        copy[i] = (char)toupper(text.data[i]);
    }
    copy[text.len] = '\0';
    return copy;
}

static int make_controller_names(struct server_config *c, struct errmsg *msg)
{
    struct slice list = config__text(c, "controller.listener.names"), rest = list, one;
    uint32_t count = 0;
    while (config_list_next(&rest, &one)) {
        count++;
    }
    if (count == 0) {
        return err_set(msg, ERR_INVALID,
                       "controller.listener.names is missing: write controller.listener.names=CONTROLLER, "
                       "the name of the "
                       "listener on which controllers are reached");
    }
    const char **names = arena_alloc(&c->arena, count * sizeof *names);
    rest = list;
    for (uint32_t i = 0; i < count && config_list_next(&rest, &one); i++) {
        names[i] = upper(c, one);
    }
    c->controller_listener_names = names;
    c->controller_listener_names_count = count;
    return 0;
}

// Security protocol of a listener name. Without a map a name that is a protocol stands for it, and a
// controller listener's is PLAINTEXT.
static int security_of(struct server_config *c, struct slice name, enum security_protocol *out,
                       struct errmsg *msg)
{
    struct slice rest = config__text(c, "listener.security.protocol.map"), one;
    while (config_list_next(&rest, &one)) {
        const uint8_t *colon = one.len > 0 ? memchr(one.data, ':', one.len) : NULL;
        if (!colon) {
            return err_set(msg, ERR_INVALID,
                           "listener.security.protocol.map: \"" SLICE_FMT "\" is not NAME:PROTOCOL",
                           SLICE_ARG(one));
        }
        struct slice key = slice_of(one.data, (size_t)(colon - one.data));
        struct slice protocol = slice_of(colon + 1, one.len - key.len - 1);
        if (key.len != name.len || strncasecmp((const char *)key.data, TEXT(name), name.len) != 0) {
            continue;
        }
        if (!security_protocol_parse(config_trim(protocol), out)) {
            return err_set(msg, ERR_INVALID,
                           "listener.security.protocol.map: \"" SLICE_FMT
                           "\" is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
                           SLICE_ARG(protocol));
        }
        return 0;
    }
    if (!config__given(c, "listener.security.protocol.map") &&
        server_config_is_controller_listener(c, name)) {
        *out = SECURITY_PLAINTEXT;
        return 0;
    }
    return err_set(msg, ERR_INVALID,
                   "listener %s has no security protocol: add %s:PLAINTEXT (or another protocol) to "
                   "listener.security.protocol.map",
                   TEXT(name), TEXT(name));
}

static int parse_endpoints(struct server_config *c, const char *key, struct config_endpoint **out,
                           uint32_t *out_count, struct errmsg *msg)
{
    struct slice list = config__text(c, key), rest = list, one;
    uint32_t count = 0;
    while (config_list_next(&rest, &one)) {
        count++;
    }
    struct config_endpoint *endpoints = arena_zalloc(&c->arena, (count + 1) * sizeof *endpoints);
    rest = list;
    for (uint32_t i = 0; i < count && config_list_next(&rest, &one); i++) {
        int rc = endpoint_parse_listener(one, &c->arena, &endpoints[i], msg);
        rc = rc ? rc : security_of(c, endpoints[i].name, &endpoints[i].security, msg);
        if (rc) {
            err_prefix(msg, "%s", key);
            return rc;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (slice_equal(endpoints[k].name, endpoints[i].name)) {
                return err_set(msg, ERR_INVALID, "%s: the name %s is used twice", key,
                               TEXT(endpoints[i].name));
            }
        }
    }
    *out = endpoints;
    *out_count = count;
    return 0;
}

static bool is_any(struct slice host)
{
    return host.len == 0 || slice_equal_str(host, "0.0.0.0") || slice_equal_str(host, "::");
}

static int check_ports(const struct server_config *c, struct errmsg *msg)
{
    for (uint32_t i = 0; i < c->listeners_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            const struct config_endpoint *a = &c->listeners[k], *b = &c->listeners[i];
            if (a->port == b->port && a->port != 0 &&
                (is_any(a->host) || is_any(b->host) || slice_equal(a->host, b->host))) {
                return err_set(msg, ERR_INVALID,
                               "listeners: %s and %s have the same port %u; give each its own", TEXT(a->name),
                               TEXT(b->name), a->port);
            }
        }
    }
    return 0;
}

static int check_roles(struct server_config *c, struct errmsg *msg)
{
    uint32_t for_controllers = 0;
    const char *first = NULL;
    for (uint32_t i = 0; i < c->listeners_count; i++) {
        if (server_config_is_controller_listener(c, c->listeners[i].name)) {
            for_controllers++;
            if (!c->controller_listener) {
                c->controller_listener = &c->listeners[i];
            }
        } else if (!first) {
            first = TEXT(c->listeners[i].name);
        }
    }
    if (!c->is_controller && for_controllers > 0) {
        return err_set(msg, ERR_INVALID,
                       "listener %s belongs to controllers (controller.listener.names), but this node is "
                       "only a broker: remove it "
                       "from listeners",
                       TEXT(c->controller_listener->name));
    }
    if (c->is_controller && for_controllers == 0) {
        return err_set(msg, ERR_INVALID,
                       "this node is a controller, but listeners has none of controller.listener.names: add "
                       "%s://HOST:9093 to listeners",
                       c->controller_listener_names[0]);
    }
    if (!c->is_broker && first) {
        return err_set(msg, ERR_INVALID,
                       "this node is only a controller, but its listener %s is not in "
                       "controller.listener.names: remove it from "
                       "listeners",
                       first);
    }
    if (c->is_broker && !first) {
        return err_set(
            msg, ERR_INVALID,
            "this node is a broker, but has no listener for clients: add PLAINTEXT://HOST:9092 to listeners");
    }
    return 0;
}

// What is told to others: advertised.listeners where given, the listeners else.
static int make_advertised(struct server_config *c, struct errmsg *msg)
{
    struct config_endpoint *all = c->listeners;
    uint32_t count = c->listeners_count;
    struct slice text = config__text(c, "advertised.listeners");
    bool given = !slice_is_null(text) && text.len > 0;
    if (given) {
        int rc = parse_endpoints(c, "advertised.listeners", &all, &count, msg);
        if (rc) {
            return rc;
        }
    }
    c->advertised = arena_zalloc(&c->arena, (count + 1) * sizeof *c->advertised);
    if (c->is_controller) {
        c->controller_advertised = *c->controller_listener;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!server_config_listener(c, TEXT(all[i].name))) {
            return err_set(msg, ERR_INVALID, "advertised.listeners names %s, which is not in listeners",
                           TEXT(all[i].name));
        }
        if (given && is_any(all[i].host) && all[i].host.len > 0) {
            return err_set(msg, ERR_INVALID,
                           "advertised.listeners: %s is not an address that others can reach; name one",
                           TEXT(all[i].host));
        }
        if (server_config_is_controller_listener(c, all[i].name)) {
            if (c->is_controller && slice_equal(all[i].name, c->controller_listener->name)) {
                c->controller_advertised = all[i];
            }
            continue;
        }
        if (is_any(all[i].host) && all[i].host.len > 0) {
            return err_set(msg, ERR_INVALID,
                           "listener %s is bound to %s, which clients cannot use as an address: add "
                           "advertised.listeners=%s://HOST:%u with the name or address of this machine",
                           TEXT(all[i].name), TEXT(all[i].host), TEXT(all[i].name), all[i].port);
        }
        c->advertised[c->advertised_count++] = all[i];
    }
    if (c->is_controller && is_any(c->controller_advertised.host)) {
        c->controller_advertised.host = SLICE_LIT(""); // the machine's own name
    }
    if (c->is_broker && c->advertised_count == 0) {
        return err_set(msg, ERR_INVALID,
                       "advertised.listeners has no listener for clients: add one of those in listeners");
    }
    return 0;
}

static int make_inter_broker(struct server_config *c, struct errmsg *msg)
{
    if (!c->is_broker) {
        return 0;
    }
    struct slice name = config__text(c, "inter.broker.listener.name");
    bool named = !slice_is_null(name) && name.len > 0;
    if (named && config__given(c, "security.inter.broker.protocol")) {
        return err_set(
            msg, ERR_INVALID,
            "inter.broker.listener.name and security.inter.broker.protocol are both set: remove the second");
    }
    const char *wanted = named ? upper(c, name) : upper(c, config__text(c, "security.inter.broker.protocol"));
    for (uint32_t i = 0; i < c->advertised_count; i++) {
        if (slice_equal_str(c->advertised[i].name, wanted)) {
            c->inter_broker_listener = wanted;
            return 0;
        }
    }
    if (!named && c->advertised_count == 1) {
        c->inter_broker_listener = TEXT(c->advertised[0].name); // no choice
        return 0;
    }
    return err_set(
        msg, ERR_INVALID,
        "brokers would talk to each other on listener %s, which is not among the advertised ones: set "
        "inter.broker.listener.name to one of them, as %s",
        wanted, TEXT(c->advertised[0].name));
}

int config__make_listeners(struct server_config *c, struct errmsg *msg)
{
    int rc = make_controller_names(c, msg);
    if (!rc) {
        const char *first = c->controller_listener_names[0];
        rc = security_of(c, slice_str(first), &c->controller_security, msg);
    }
    rc = rc ? rc : parse_endpoints(c, "listeners", &c->listeners, &c->listeners_count, msg);
    rc = rc ? rc : check_ports(c, msg);
    rc = rc ? rc : check_roles(c, msg);
    rc = rc ? rc : make_advertised(c, msg);
    return rc ? rc : make_inter_broker(c, msg);
}

void server_config_set_host(struct server_config *c, const char *host)
{
    struct slice name = slice_of(config__keep(c, slice_str(host)), strlen(host));
    for (uint32_t i = 0; i < c->advertised_count; i++) {
        if (c->advertised[i].host.len == 0) {
            c->advertised[i].host = name;
        }
    }
    if (c->is_controller && c->controller_advertised.host.len == 0) {
        c->controller_advertised.host = name;
    }
}
