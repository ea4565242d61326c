// SPDX-License-Identifier: Apache-2.0
// Connections of the blocking client: connect, send a frame, receive a frame, each with a deadline.
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/base/bytes.h"
#include "core/base/mem.h"
#include "core/protocol/gen/api_versions_request.h"
#include "core/protocol/gen/api_versions_response.h"
#include "core/protocol/gen/errors.h"
#include "core/protocol/header.h"
#include "tools/client/kclient.h"

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void drop(struct kclient_conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

// Waits until the socket is ready; false: the deadline has passed.
static bool wait_ready(int fd, short events, int64_t deadline)
{
    for (;;) {
        int64_t left = deadline - now_ms();
        struct pollfd p = {.fd = fd, .events = events};
        int n = poll(&p, 1, left > 0 ? (int)left : 0);
        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

static int connect_one(const struct addrinfo *a, int64_t deadline, int *out)
{
    int one = 1, status = 0;
    socklen_t len = sizeof(status);
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
        status = errno;
        if (status == EINPROGRESS) {
            if (!wait_ready(fd, POLLOUT, deadline))
                status = ETIMEDOUT;
            else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &status, &len) != 0)
                status = errno;
        }
    }
    if (status) {
        close(fd);
        return status;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    *out = fd;
    return 0;
}

static int connect_any(struct kclient_conn *c, struct errmsg *err)
{
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    int64_t deadline = now_ms() + c->opts.timeout_ms;
    int status = 0;
    snprintf(port, sizeof(port), "%u", c->port);
    int rc = getaddrinfo(c->host, port, &hints, &list);
    if (rc)
        return err_set(err, ERR_RESOLVE, "%s: %s", c->host, gai_strerror(rc));
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        if ((status = connect_one(a, deadline, &c->fd)) == 0)
            break;
    freeaddrinfo(list);
    if (status == 0)
        return 0;
    int code = status == ECONNREFUSED ? ERR_REFUSED : status == ETIMEDOUT ? ERR_TIMEOUT : ERR_IO;
    return err_set(err, code, "%s:%u: %s", c->host, c->port,
                   status == ECONNREFUSED
                       ? "nobody listens there: is the server running, and is this the port of its listener?"
                       : strerror(status));
}

static int lost(struct kclient_conn *c, int code, struct errmsg *err)
{
    drop(c);
    return err_set(err, code, "%s:%u: %s", c->host, c->port,
                   code == ERR_TIMEOUT ? "no answer in time" : "the server closed the connection");
}

static int send_all(struct kclient_conn *c, const uint8_t *data, size_t len, struct errmsg *err)
{
    int64_t deadline = now_ms() + c->opts.timeout_ms;
    while (len > 0) {
        ssize_t n = send(c->fd, data, len, MSG_NOSIGNAL);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (!wait_ready(c->fd, POLLOUT, deadline))
                return lost(c, ERR_TIMEOUT, err);
        } else if (errno != EINTR) {
            return lost(c, ERR_RESET, err);
        }
    }
    return 0;
}

static int receive_all(struct kclient_conn *c, uint8_t *data, size_t len, int64_t deadline,
                       struct errmsg *err)
{
    while (len > 0) {
        ssize_t n = recv(c->fd, data, len, 0);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            if (!wait_ready(c->fd, POLLIN, deadline))
                return lost(c, ERR_TIMEOUT, err);
        } else if (n == 0 || errno != EINTR) {
            return lost(c, ERR_RESET, err);
        }
    }
    return 0;
}

int kclient_send_raw(struct kclient_conn *c, struct slice frame, struct errmsg *err)
{
    uint8_t prefix[4];
    if (c->fd < 0)
        return err_set(err, ERR_RESET, "%s:%u: the connection is closed", c->host, c->port);
    bytes_store_be32(prefix, (uint32_t)frame.len);
    int rc = send_all(c, prefix, sizeof(prefix), err);
    return rc ? rc : send_all(c, frame.data, frame.len, err);
}

int kclient_send(struct kclient_conn *c, int api_key, int version, const void *request, struct errmsg *err)
{
    struct kp_request_header h;
    struct rope rope;
    kp_request_header_init(&h);
    h.request_api_key = (int16_t)api_key;
    h.request_api_version = (int16_t)version;
    h.correlation_id = c->next_correlation++;
    h.client_id = slice_str(c->opts.client_id);
    rope_init(&rope);
    int rc = kp_header_write_request(&rope, &h);
    if (rc == 0)
        rc = kp_message_encode(kp_message_of_api(api_key, KP_REQUEST), request, &rope, version);
    uint8_t *flat = mem_alloc(rope.len);
    size_t len = rope.len;
    if (rc == 0)
        rc = rope_flatten(&rope, flat);
    if (rc)
        err_set(err, rc, "the request cannot be encoded: %s", err_text(rc));
    else
        rc = kclient_send_raw(c, slice_of(flat, len), err);
    rope_clear(&rope);
    mem_free(flat);
    return rc;
}

static int receive_frame(struct kclient_conn *c, struct arena *arena, struct slice *out, struct errmsg *err)
{
    uint8_t prefix[4];
    int64_t deadline = now_ms() + c->opts.timeout_ms;
    if (c->fd < 0)
        return err_set(err, ERR_RESET, "%s:%u: the connection is closed", c->host, c->port);
    int rc = receive_all(c, prefix, sizeof(prefix), deadline, err);
    if (rc)
        return rc;
    uint32_t len = bytes_load_be32(prefix);
    if (len > KCLIENT_FRAME_BYTES_MAX) {
        drop(c);
        return err_set(err, ERR_MALFORMED, "%s:%u: a response of %u bytes", c->host, c->port, len);
    }
    uint8_t *data = arena_alloc(arena, len ? len : 1);
    *out = slice_of(data, len);
    return receive_all(c, data, len, deadline, err);
}

int kclient_receive(struct kclient_conn *c, int api_key, int version, void *response, struct arena *arena,
                    struct errmsg *err)
{
    const struct kp_api_info *api = kp_api_find(api_key);
    struct kp_response_header h;
    struct kp_reader r;
    struct slice frame = SLICE_NULL;
    int rc = receive_frame(c, arena, &frame, err);
    if (rc)
        return rc;
    kp_reader_init(&r, frame, arena, err);
    if ((rc = kp_header_read_response(&r, api, version, &h)) == 0) {
        if (h.correlation_id < c->awaited)
            rc = err_set(err, ERR_MALFORMED, "%s: an answer with correlation id %d, %d was awaited",
                         api->name, h.correlation_id, c->awaited);
        c->awaited = h.correlation_id + 1;
    }
    if (rc == 0)
        rc = kp_message_decode(kp_message_of_api(api_key, KP_RESPONSE), response, &r, version);
    if (rc) {
        err_prefix(err, "%s:%u", c->host, c->port);
        drop(c);
    }
    return rc;
}

int kclient_version(const struct kclient_conn *c, int api_key, int limit)
{
    const struct kp_api_info *api = kp_api_find(api_key);
    int high = api->max_version < c->max_version[api_key] ? api->max_version : c->max_version[api_key];
    int low = api->min_version > c->min_version[api_key] ? api->min_version : c->min_version[api_key];
    if (limit >= 0 && high > limit)
        high = limit;
    return high >= low ? high : -1;
}

int kclient_call(struct kclient_conn *c, int api_key, int version, const void *request, void *response,
                 struct arena *arena, struct errmsg *err)
{
    int usable = kclient_version(c, api_key, version);
    if (usable < 0 || (version >= 0 && usable != version))
        return err_set(err, ERR_UNSUPPORTED,
                       "%s:%u does not have %s%s (a controller's port, or another release?): name a broker's "
                       "listener in --bootstrap-server",
                       c->host, c->port, kp_api_find(api_key)->name,
                       version >= 0 ? " at the version that is needed" : "");
    int rc = kclient_send(c, api_key, usable, request, err);
    return rc ? rc : kclient_receive(c, api_key, usable, response, arena, err);
}

static void learn_versions(struct kclient_conn *c, const struct kp_api_versions_response *r)
{
    for (int i = 0; i < KP_API_COUNT; i++) {
        c->min_version[i] = 0;
        c->max_version[i] = -1;
    }
    for (int32_t i = 0; i < r->api_keys_count; i++) {
        const struct kp_api_versions_response_api_version *a = &r->api_keys[i];
        if (kp_api_find(a->api_key)) {
            c->min_version[a->api_key] = a->min_version;
            c->max_version[a->api_key] = a->max_version;
        }
    }
}

// A server that lacks our version answers at version 0; the question is then asked again at the highest that
// it has.
static int ask_versions(struct kclient_conn *c, struct errmsg *err)
{
    struct kp_api_versions_request q;
    struct kp_api_versions_response r;
    struct arena arena;
    int version = 4, rc; // version 5 asks for the identity of the server, which we do not know
    arena_init(&arena);
    kp_api_versions_request_init(&q);
    q.client_software_name = SLICE_LIT("kraft-tools");
    q.client_software_version = SLICE_LIT("0.1.0");
    do {
        if ((rc = kclient_send(c, KP_API_API_VERSIONS, version, &q, err)))
            break;
        // The answer to an unknown version is version 0: no tagged fields, no throttle time. Its error code
        // stands first in all versions.
        struct slice frame = SLICE_NULL;
        if ((rc = receive_frame(c, &arena, &frame, err)))
            break;
        c->awaited++;
        int answered =
            frame.len >= 6 && bytes_load_be16(frame.data + 4) == KE_UNSUPPORTED_VERSION ? 0 : version;
        struct kp_reader reader;
        kp_reader_init(&reader, frame.len >= 4 ? slice_of(frame.data + 4, frame.len - 4) : frame, &arena,
                       err);
        if ((rc = kp_api_versions_response_decode(&r, &reader, (int16_t)answered)))
            break;
        learn_versions(c, &r);
        if (r.error_code == KE_NONE)
            break;
        int next = kclient_version(c, KP_API_API_VERSIONS, version - 1);
        if (r.error_code != KE_UNSUPPORTED_VERSION || next < 0)
            rc = err_set(err, ERR_UNSUPPORTED, "%s:%u: ApiVersions: %s", c->host, c->port,
                         kafka_error_name(r.error_code));
        version = next;
    } while (rc == 0);
    arena_fini(&arena);
    return rc;
}

int kclient_dial(struct kclient_conn **out, const char *host, uint16_t port,
                 const struct kclient_options *opts, struct errmsg *err)
{
    struct kclient_conn *c = mem_zalloc(sizeof(*c));
    c->opts = *opts;
    c->fd = -1;
    c->port = port;
    snprintf(c->host, sizeof(c->host), "%s", host);
    int rc = connect_any(c, err);
    if (rc == 0)
        rc = ask_versions(c, err);
    if (rc) {
        kclient_hangup(c);
        return rc;
    }
    *out = c;
    return 0;
}

void kclient_hangup(struct kclient_conn *c)
{
    if (!c)
        return;
    drop(c);
    mem_free(c);
}
