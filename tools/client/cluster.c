// SPDX-License-Identifier: Apache-2.0
// The blocking client's view of a cluster: bootstrap addresses, brokers, a connection to each.
#include <stdio.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/protocol/gen/metadata_request.h"
#include "core/protocol/gen/metadata_response.h"
#include "tools/client/kclient.h"

bool kclient_parse_address(const char *text, size_t len, char host[KCLIENT_HOST_BYTES], uint16_t *port)
{
    size_t colon = len, from = 0;
    while (colon > 0 && text[colon - 1] != ':')
        colon--;
    if (colon < 2 || colon == len || len - colon > 5)
        return false;
    unsigned value = 0;
    for (size_t i = colon; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    size_t end = colon - 1;
    if (text[0] == '[' && end > 2 && text[end - 1] == ']') {
        from = 1;
        end--;
    }
    if (value == 0 || value > UINT16_MAX || end - from >= KCLIENT_HOST_BYTES || end == from)
        return false;
    memcpy(host, text + from, end - from);
    host[end - from] = 0;
    *port = (uint16_t)value;
    return true;
}

// Dials the addresses in turn until one answers.
static int dial_bootstrap(struct kclient *c, struct errmsg *err)
{
    int rc = err_set(err, ERR_INVALID, "the list of servers is empty");
    for (const char *at = c->bootstrap; *at;) {
        char host[KCLIENT_HOST_BYTES];
        uint16_t port;
        size_t len = strcspn(at, ",");
        if (len > 0) {
            if (!kclient_parse_address(at, len, host, &port))
                return err_set(err, ERR_INVALID, "%.*s is not an address; HOST:PORT is wanted", (int)len, at);
            if ((rc = kclient_dial(&c->first, host, port, &c->opts, err)) == 0)
                return 0;
        }
        at += len + (at[len] == ',');
    }
    if (strchr(c->bootstrap, ','))
        err_prefix(err, "none of %s answers; the last", c->bootstrap);
    return rc;
}

int kclient_open(struct kclient **out, const char *bootstrap, const struct kclient_options *opts,
                 struct errmsg *err)
{
    struct kclient *c = mem_zalloc(sizeof(*c));
    c->opts = *opts;
    c->bootstrap = mem_strdup(bootstrap);
    c->controller = -1;
    int rc = dial_bootstrap(c, err);
    if (rc) {
        kclient_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

static void forget_brokers(struct kclient *c)
{
    for (size_t i = 0; i < c->brokers_count; i++)
        kclient_hangup(c->brokers[i].conn);
    mem_free(c->brokers);
    c->brokers = NULL;
    c->brokers_count = 0;
}

void kclient_close(struct kclient *c)
{
    if (!c)
        return;
    forget_brokers(c);
    kclient_hangup(c->first);
    mem_free(c->bootstrap);
    mem_free(c);
}

int kclient_any(struct kclient *c, struct kclient_conn **out, struct errmsg *err)
{
    if (!c->first || c->first->fd < 0) {
        kclient_hangup(c->first);
        c->first = NULL;
        int rc = dial_bootstrap(c, err);
        for (size_t i = 0; rc && i < c->brokers_count; i++)
            rc = kclient_dial(&c->first, c->brokers[i].host, c->brokers[i].port, &c->opts, err);
        if (rc)
            return rc;
    }
    *out = c->first;
    return 0;
}

static struct kclient_broker *find_broker(struct kclient *c, node_id id)
{
    for (size_t i = 0; i < c->brokers_count; i++)
        if (c->brokers[i].id == id)
            return &c->brokers[i];
    return NULL;
}

// Takes over the list of brokers; connections to those whose address did not change live on.
static void take_brokers(struct kclient *c, const struct kp_metadata_response *r)
{
    size_t count = (size_t)(r->brokers_count > 0 ? r->brokers_count : 0);
    struct kclient_broker *fresh = mem_calloc(count ? count : 1, sizeof(*fresh));
    for (size_t i = 0; i < count; i++) {
        const struct kp_metadata_response_metadata_response_broker *b = &r->brokers[i];
        fresh[i].id = b->node_id;
        fresh[i].port = (uint16_t)b->port;
        snprintf(fresh[i].host, sizeof(fresh[i].host), SLICE_FMT, SLICE_ARG(b->host));
        struct kclient_broker *old = find_broker(c, b->node_id);
        if (old && old->port == fresh[i].port && strcmp(old->host, fresh[i].host) == 0) {
            fresh[i].conn = old->conn;
            old->conn = NULL;
        }
    }
    forget_brokers(c);
    c->brokers = fresh;
    c->brokers_count = count;
    c->controller = r->controller_id;
}

int kclient_refresh(struct kclient *c, struct errmsg *err)
{
    struct kp_metadata_request q;
    struct kp_metadata_response r;
    struct kclient_conn *conn;
    struct arena arena;
    int rc = kclient_any(c, &conn, err);
    if (rc)
        return rc;
    kp_metadata_request_init(&q); // no topics
    arena_init(&arena);
    rc = kclient_call(conn, KP_API_METADATA, -1, &q, &r, &arena, err);
    if (rc == 0)
        take_brokers(c, &r);
    arena_fini(&arena);
    return rc;
}

int kclient_node(struct kclient *c, node_id id, struct kclient_conn **out, struct errmsg *err)
{
    int rc;
    if (!find_broker(c, id) && (rc = kclient_refresh(c, err)))
        return rc;
    struct kclient_broker *b = find_broker(c, id);
    if (!b)
        return err_set(err, ERR_NOTFOUND, "the cluster has no live broker %d", id);
    if (b->conn && b->conn->fd < 0) {
        kclient_hangup(b->conn);
        b->conn = NULL;
    }
    if (!b->conn && (rc = kclient_dial(&b->conn, b->host, b->port, &c->opts, err))) {
        err_prefix(err, "broker %d advertises %s:%u", id, b->host, b->port);
        return rc;
    }
    *out = b->conn;
    return 0;
}
