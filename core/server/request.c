// SPDX-License-Identifier: Apache-2.0
// The life of a request: header, table, handler, replies in order.
//
// See request.h for the contract. Where it waits: in the connection's list until it and all before it are
// answered; in a handler's own lists; in a pool job or another loop's hands until request_post brings it
// back.
#include "core/server/request.h"

#include "core/base/assert.h"
#include "core/base/bytes.h"
#include "core/base/mem.h"
#include "core/server/broker.h"
#include "core/server/data_plane.h"
#include "core/server/request_conn.h"

static struct request *take(struct request_loop *l)
{
    struct request *rq = l->free;
    if (rq != NULL) {
        l->free = rq->next;
        l->free_count--;
        rq->next = NULL;
    } else {
        rq = mem_zalloc(sizeof *rq);
        arena_init(&rq->arena);
        rq->arena.limit = REQUEST_ARENA_BYTES_MAX;
        rope_init(&rq->reply);
        rq->loop = l;
    }
    rq->magic = REQUEST_MAGIC;
    return rq;
}

static void release(struct request *rq)
{
    MUST(rq->magic == REQUEST_MAGIC);
    struct request_loop *l = rq->loop;
    rq->magic = 0;
    if (rq->arena.used > REQUEST_ARENA_KEEP_BYTES && l->free_count >= REQUEST_POOL_LARGE_MAX) {
        arena_fini(&rq->arena); // the pool does not fill with memory of rare large requests
        arena_init(&rq->arena);
        rq->arena.limit = REQUEST_ARENA_BYTES_MAX;
    } else {
        arena_reset(&rq->arena);
    }
    if (rq->reply.len > 0) {
        rope_clear(&rq->reply);
    }
    if (l->free_count >= REQUEST_POOL_MAX) {
        arena_fini(&rq->arena);
        rope_clear(&rq->reply);
        mem_free(rq);
        return;
    }
    rq->conn = NULL;
    rq->embedded_cb = NULL;
    rq->cancel = NULL;
    rq->state = NULL;
    rq->out = NULL;
    rq->throttle_ms = 0;
    rq->answered = rq->paused = rq->close_after = rq->unsupported_version = false;
    rq->next = l->free;
    l->free = rq;
    l->free_count++;
}

static void mark_dirty(struct request_conn *c)
{
    if (!c->dirty) {
        c->dirty = true;
        c->next_dirty = c->loop->dirty;
        c->loop->dirty = c;
    }
}

static void throttle_over(struct node_timer *t)
{
    struct request_conn *c =
        (struct request_conn *)(void *)((char *)t - offsetof(struct request_conn, throttle));
    node_conn_resume(c->conn);
}

// KIP-219: the reply goes out at once, then the connection is not read for the time that it says.
static void start_throttle(struct request_conn *c, int32_t ms)
{
    if (ms > 0 && c->conn != NULL && !node_timer_running(&c->throttle)) {
        c->throttle.fire = throttle_over;
        node_conn_pause(c->conn);
        node_timer_start(node_conn_loop(c->conn), &c->throttle, (uint64_t)ms);
    }
}

// Sends off all answered requests at the head of the list.
static void drain(struct request_conn *c)
{
    while (c->first != NULL && c->first->answered) {
        struct request *rq = c->first;
        c->first = rq->next;
        if (c->first == NULL) {
            c->last = NULL;
        }
        c->unanswered--;
        if (rq->reply.len > 0) {
            rope_move(&c->out, &rq->reply);
        }
        start_throttle(c, rq->throttle_ms);
        c->close_after |= rq->close_after;
        bool paused = rq->paused;
        release(rq);
        if (paused) {
            node_conn_resume(c->conn);
        }
    }
    if (c->full && c->unanswered <= c->listener->pipeline_max / 2) {
        c->full = false;
        node_conn_resume(c->conn);
    }
    mark_dirty(c);
}

static void finish(struct request *rq)
{
    MUST(rq->magic == REQUEST_MAGIC && !rq->answered);
    if (rq->embedded_cb != NULL) {
        rq->embedded_cb(rq, rq->embedded_data);
        release(rq);
        return;
    }
    struct request_conn *c = rq->conn;
    if (c == NULL) {
        release(rq);
        return;
    }
    if (c->current == rq) {
        c->current = NULL;
    }
    rq->answered = true;
    if (c->first == rq) {
        drain(c);
    }
}

static void flush_dirty(struct node_hook *h)
{
    struct request_loop *l =
        (struct request_loop *)(void *)((char *)h - offsetof(struct request_loop, turn_end));
    while (l->dirty != NULL) {
        struct request_conn *c = l->dirty;
        l->dirty = c->next_dirty;
        c->dirty = false;
        if (c->conn == NULL) { // closed meanwhile: this was the last reference
            rope_clear(&c->out);
            c->magic = 0;
            mem_free(c);
            continue;
        }
        if (c->broken) {
            rope_clear(&c->out);
            node_conn_close(c->conn, false);
            continue;
        }
        if (c->out.len > 0) {
            node_conn_send(c->conn, &c->out);
        }
        if (c->close_after) {
            node_conn_close(c->conn, true);
        } else if (!c->congested && node_conn_queued(c->conn) > REQUEST_QUEUED_BYTES_MAX) {
            c->congested = true;
            node_conn_pause(c->conn);
        }
    }
}

void request_loop_init(struct request_loop *l, struct node_loop *loop, struct broker_loop *data,
                       struct log_sink *log)
{
    *l = (struct request_loop){.loop = loop, .data = data, .log = log};
    l->turn_end.run = flush_dirty;
    node_loop_add_turn_end(loop, &l->turn_end);
}

void request_loop_fini(struct request_loop *l)
{
    while (l->free != NULL) {
        struct request *rq = l->free;
        l->free = rq->next;
        arena_fini(&rq->arena);
        rope_clear(&rq->reply);
        mem_free(rq);
    }
    l->free_count = 0;
}

// ---- answering ------------------------------------------------------------------------------------------

struct rope *request_reply_begin(struct request *rq)
{
    MUST(rq->magic == REQUEST_MAGIC && !rq->answered);
    struct request_conn *c = rq->conn;
    struct rope *out = c != NULL && c->first == rq ? &c->out : &rq->reply;
    rq->out = out;
    rq->reply_start = out->len;
    bool flexible = rq->api_key != KP_API_API_VERSIONS && rq->version >= kp_apis[rq->api_key].flexible_from;
    size_t prefix = rq->embedded_cb != NULL ? 0 : 4; // an embedded reply is framed by what it is in
    uint8_t *head = rope_reserve(out, prefix + 4 + flexible);
    rq->reply_size = prefix > 0 ? head : NULL;
    bytes_store_be32(head + prefix, (uint32_t)rq->correlation_id);
    if (flexible) {
        head[prefix + 4] = 0; // no tagged fields in the header
    }
    return out;
}

void request_reply_end(struct request *rq, int err)
{
    MUST(rq->out != NULL);
    size_t size = rq->out->len - rq->reply_start;
    if (err != 0 || size > INT32_MAX) {
        log_error(rq->loop->log, "request", "a reply could not be encoded", "api=%s version=%d error=%s",
                  kp_apis[rq->api_key].name, rq->version, err_text(err));
        if (rq->embedded_cb != NULL) {
            rope_clear(&rq->reply); // the embedder sees an empty reply
        } else if (rq->conn != NULL) {
            rq->conn->broken = true;
        }
    } else if (rq->reply_size != NULL) {
        bytes_store_be32(rq->reply_size, (uint32_t)(size - 4));
    }
    finish(rq);
}

void request_reply_raw(struct request *rq, struct slice header_and_body)
{
    struct request_conn *c = rq->conn;
    struct rope *out = c != NULL && c->first == rq ? &c->out : &rq->reply;
    if (rq->embedded_cb == NULL) {
        bytes_store_be32(rope_reserve(out, 4), (uint32_t)header_and_body.len);
    }
    rope_write(out, header_and_body.data, header_and_body.len);
    finish(rq);
}

void request_reply_none(struct request *rq)
{
    finish(rq);
}

void request_close(struct request *rq)
{
    rq->close_after = true;
    finish(rq);
}

void request_abandon(struct request *rq)
{
    MUST(request_gone(rq));
    release(rq);
}

bool request_decoded(struct request *rq, int err)
{
    if (err == 0) {
        return true;
    }
    log_warn(rq->loop->log, "request", "malformed request, connection closed",
             "api=%s version=%d client=" SLICE_FMT " error=%s", kp_apis[rq->api_key].name, rq->version,
             SLICE_ARG(rq->ctx->client_host), err_text(err));
    request_close(rq);
    return false;
}

const struct image *request_image(const struct request *rq)
{
    if (rq->listener->image != NULL) {
        return rq->listener->image(rq);
    }
    return rq->loop->data != NULL ? rq->loop->data->image : NULL;
}

static void run_post(struct node_task *t)
{
    struct request *rq = (struct request *)(void *)((char *)t - offsetof(struct request, post));
    rq->post_cb(rq);
}

void request_post(struct request *rq, void (*cb)(struct request *rq))
{
    rq->post.run = run_post;
    rq->post_cb = cb;
    node_loop_post(rq->loop->loop, &rq->post);
}

// ---- taking in ------------------------------------------------------------------------------------------

// Reads the request header in place (version 1, or 2 with tagged fields, which are skipped). ERR_MALFORMED,
// ERR_UNSUPPORTED.
static int parse_header(struct request *rq, const uint8_t *p, size_t len)
{
    if (len < 10) {
        return ERR_MALFORMED;
    }
    rq->api_key = (int16_t)bytes_load_be16(p);
    rq->version = (int16_t)bytes_load_be16(p + 2);
    rq->correlation_id = (int32_t)bytes_load_be32(p + 4);
    const struct kp_api_info *info = kp_api_find(rq->api_key);
    rq->api = rq->api_key >= 0 && rq->api_key < REQUEST_APIS_MAX ? request_table[rq->api_key] : NULL;
    if (info == NULL || rq->api == NULL) {
        return ERR_UNSUPPORTED;
    }
    int16_t client_len = (int16_t)bytes_load_be16(p + 8);
    size_t at = 10;
    rq->client_id = SLICE_NULL;
    if (client_len >= 0) {
        if ((size_t)client_len > len - at) {
            return ERR_MALFORMED;
        }
        rq->client_id = slice_of(p + at, (size_t)client_len);
        at += (size_t)client_len;
    }
    if (rq->version >= info->flexible_from) {
        uint32_t tags = 0;
        size_t n = uvarint_read(p + at, len - at, &tags);
        for (uint32_t i = 0; n > 0 && i < tags; i++) {
            uint32_t tag = 0;
            uint32_t size = 0;
            at += n;
            n = uvarint_read(p + at, len - at, &tag);
            at += n;
            size_t m = n > 0 ? uvarint_read(p + at, len - at, &size) : 0;
            n = m > 0 && size <= len - at - m ? m + size : 0;
        }
        if (n == 0) {
            return ERR_MALFORMED;
        }
        at += n;
    }
    kp_reader_init(&rq->reader, slice_of(p + at, len - at), &rq->arena, NULL);
    return 0;
}

static request_handler *find_handler(struct request *rq)
{
    request_handler *handle = rq->listener->controller ? rq->api->on_controller : rq->api->on_broker;
    if (handle == NULL || (rq->listener->controller && rq->listener->controller_node == NULL)) {
        return NULL; // not served here, or the controller half has stopped
    }
    if (rq->version < rq->api->version_min || rq->version > rq->api->version_max) {
        if (rq->api_key != KP_API_API_VERSIONS) {
            return NULL;
        }
        rq->unsupported_version = true; // the client does not know yet what we speak: tell it
        rq->version = 0;
    }
    return handle;
}

static int start(struct request *rq, struct slice frame)
{
    int err = parse_header(rq, frame.data, frame.len);
    if (err != 0) {
        return err;
    }
    request_handler *handle = find_handler(rq);
    if (handle == NULL) {
        return ERR_UNSUPPORTED;
    }
    handle(rq);
    return 0;
}

static int frame_cb(struct node_conn *conn, uint8_t *data, size_t len)
{
    struct request_conn *c = node_conn_data(conn);
    MUST(c->magic == REQUEST_CONN_MAGIC);
    if (c->close_after || c->broken) {
        return 0; // on its way out
    }
    struct request *rq = take(c->loop);
    rq->conn = c;
    rq->listener = c->listener;
    rq->ctx = &c->ctx;
    rq->frame = slice_of(data, len);
    // What is decoded may have to outlive the turn: produce requests, which are large, are read where they
    // lie.
    bool produce = len >= 2 && data[0] == 0 && data[1] == KP_API_PRODUCE;
    if (!produce) {
        rq->frame = arena_dup_slice(&rq->arena, rq->frame);
        if (c->appends > 0) {
            data_plane_flush(c->loop->data->data); // what was sent before is done before
        }
    }
    if (c->last != NULL) {
        c->last->next = rq;
    } else {
        c->first = rq;
    }
    c->last = rq;
    c->unanswered++;
    c->current = rq;
    int err = start(rq, rq->frame);
    if (err != 0) {
        log_warn(c->loop->log, "request", "request refused, connection closed",
                 "api=%d version=%d listener=%s client=%s error=%s", rq->api_key, rq->version,
                 c->listener->name, c->host, err_text(err));
        c->current = NULL;
        rq->answered = true; // given back when the connection closes
        return err;
    }
    if (c->current != NULL) { // not answered yet
        c->current = NULL;
        if ((rq->api->flags & REQUEST_PIPELINED) == 0) {
            rq->paused = true;
            node_conn_pause(conn);
        }
        uint32_t max = c->listener->pipeline_max;
        if (!c->full && c->unanswered >= (max > 0 ? max : REQUEST_PIPELINE_DEFAULT)) {
            c->full = true;
            node_conn_pause(conn);
        }
    }
    return 0;
}

// Who asked, for requests that outlive their connection.
static const struct request_context gone_context = {.principal_type = {(const uint8_t *)"User", 4},
                                                    .principal_name = {(const uint8_t *)"ANONYMOUS", 9},
                                                    .client_host = {(const uint8_t *)"", 0},
                                                    .listener_name = {(const uint8_t *)"", 0}};

void request_watch_conn(struct request *rq, struct request_watch *w)
{
    MUST(rq->conn != NULL);
    w->conn = rq->conn;
    w->next = rq->conn->watches;
    rq->conn->watches = w;
}

void request_watch_drop(struct request_watch *w)
{
    for (struct request_watch **p = &w->conn->watches; *p != NULL; p = &(*p)->next) {
        if (*p == w) {
            *p = w->next;
            w->conn = NULL;
            return;
        }
    }
    UNREACHABLE("a watch is in its connection's list");
}

static void closed_cb(struct node_conn *conn, int reason)
{
    struct request_conn *c = node_conn_data(conn);
    MUST(c->magic == REQUEST_CONN_MAGIC);
    node_timer_stop(node_conn_loop(conn), &c->throttle);
    struct request *rq = c->first;
    c->first = c->last = NULL;
    c->conn = NULL;
    while (rq != NULL) {
        struct request *next = rq->next;
        rq->conn = NULL;
        rq->next = NULL;
        rq->ctx = &gone_context;
        if (rq->answered) {
            release(rq);
        } else if (rq->cancel != NULL) {
            rq->cancel(rq);
        }
        rq = next;
    }
    while (c->watches != NULL) {
        struct request_watch *w = c->watches;
        c->watches = w->next;
        w->conn = NULL;
        w->gone(w);
    }
    if (!c->dirty) {
        rope_clear(&c->out);
        c->magic = 0;
        mem_free(c);
    }
}

static void drained_cb(struct node_conn *conn)
{
    struct request_conn *c = node_conn_data(conn);
    if (c->congested) {
        c->congested = false;
        node_conn_resume(conn);
    }
}

static const struct node_conn_ops request_conn_ops = {
    .frame = frame_cb, .closed = closed_cb, .drained = drained_cb};

void request_hand_on(struct node_conn *conn)
{
    struct request_conn *c = node_conn_data(conn);
    MUST(c->magic == REQUEST_CONN_MAGIC && c->first == NULL && !c->dirty && c->watches == NULL);
    node_conn_set_data(conn, NULL);
    c->magic = 0;
    rope_clear(&c->out);
    mem_free(c);
}

int request_accept(struct node_conn *conn, void *data)
{
    const struct request_listener *l = data;
    struct node_loop *loop = node_conn_loop(conn);
    struct request_loop *mine = NULL;
    for (unsigned i = 0; i < l->loops_count && mine == NULL; i++) {
        if (l->loops[i]->loop == loop) {
            mine = l->loops[i];
        }
    }
    MUST(mine != NULL);
    struct request_conn *c = mem_zalloc(sizeof *c);
    c->magic = REQUEST_CONN_MAGIC;
    c->conn = conn;
    c->listener = l;
    c->loop = mine;
    uint16_t port = 0;
    node_conn_peer(conn, c->host, sizeof c->host, &port);
    c->ctx = (struct request_context){.principal_type = SLICE_LIT("User"),
                                      .principal_name = SLICE_LIT("ANONYMOUS"),
                                      .client_host = slice_str(c->host),
                                      .listener_name = slice_str(l->name),
                                      .security_protocol = l->security_protocol};
    rope_init(&c->out);
    node_conn_set_data(conn, c);
    node_conn_set_ops(conn, &request_conn_ops);
    return 0;
}

// ---- embedded -------------------------------------------------------------------------------------------

int request_embedded(struct request_loop *loop, const struct request_listener *listener,
                     const struct request_context *ctx, struct slice bytes,
                     void (*cb)(struct request *rq, void *data), void *data)
{
    struct request *rq = take(loop);
    rq->listener = listener;
    struct request_context *mine = arena_dup(&rq->arena, ctx, sizeof *ctx);
    mine->principal_type = arena_dup_slice(&rq->arena, ctx->principal_type);
    mine->principal_name = arena_dup_slice(&rq->arena, ctx->principal_name);
    mine->client_host = arena_dup_slice(&rq->arena, ctx->client_host);
    mine->listener_name = arena_dup_slice(&rq->arena, ctx->listener_name);
    rq->ctx = mine;
    rq->frame = arena_dup_slice(&rq->arena, bytes);
    rq->embedded_cb = cb;
    rq->embedded_data = data;
    int err = start(rq, rq->frame);
    if (err != 0) {
        rq->embedded_cb = NULL;
        release(rq);
    }
    return err;
}
