// SPDX-License-Identifier: Apache-2.0
// The line to the active controller: states of the connection, the queue, and what to do when an answer is
// missing.
//
//   IDLE --a request--> DIALING --connected--> VERSIONS --ApiVersions--> PROBING --active = this one--> READY
//     ^                    |  refused             |  closed                | another one: DIALING (that one)
//     |                    v                      v                        | none yet
//     +------------------ PAUSED <----------------+------------------------+
//
// Every state but IDLE has one timer: `timer` bounds VERSIONS, PROBING and READY-with-something-sent, and
// ends PAUSED.
#include "core/server/controller_channel.h"

#include <stdio.h>

#include "core/base/arena.h"
#include "core/base/assert.h"
#include "core/base/logline.h"
#include "core/base/mem.h"
#include "core/protocol/gen/api_versions_request.h"
#include "core/protocol/gen/api_versions_response.h"
#include "core/protocol/gen/apis.h"
#include "core/protocol/gen/describe_cluster_request.h"
#include "core/protocol/gen/describe_cluster_response.h"
#include "core/server/outbound.h"

#define CHANNEL_MAGIC 0x6368616eu
#define CHANNEL_ENDPOINTS_MAX 32 // known controllers; more than any quorum has
#define CHANNEL_API_MAX 128      // API keys whose versions are remembered
#define CHANNEL_PAUSE_MIN_MS 20  // controller.quorum.retry.backoff.ms
#define CHANNEL_PAUSE_MAX_MS 100 // so that a new leader is found well within a second
#define CHANNEL_PROBE_MS 1000    // longest wait for ApiVersions and DescribeCluster

enum channel_state { CH_IDLE, CH_DIALING, CH_VERSIONS, CH_PROBING, CH_READY, CH_PAUSED };
enum request_place { IN_NONE, IN_QUEUE, IN_SENT };

struct request_list {
    struct channel_request *head;  // oldest
    struct channel_request **tail; // where the next one goes
};

struct controller_channel {
    uint32_t magic;                                                  // CHANNEL_MAGIC
    struct node_loop *loop;                                          // where everything happens
    struct log_sink *log;                                            // may be NULL
    void (*found)(void *data, node_id active);                       // may be NULL
    void *data;                                                      // its first argument
    char name[24];                                                   // for log lines
    char client_id[64];                                              // in request headers
    struct controller_endpoint known[CHANNEL_ENDPOINTS_MAX];         // places to ask
    unsigned known_count;                                            // in use
    unsigned next;                                                   // which to ask next
    struct controller_endpoint at;                                   // the one dialed or connected
    node_id active;                                                  // last seen active controller; -1 none
    enum channel_state state;                                        // see above
    struct node_conn *conn;                                          // open connection or NULL
    struct node_timer timer;                                         // see above
    uint32_t pause_ms;                                               // next pause
    uint32_t connect_timeout_ms, answer_timeout_ms, frame_bytes_max; // from the options
    int32_t correlation;                                             // last one used
    struct {
        int16_t min, max;
    } versions[CHANNEL_API_MAX];     // of the connected controller; max -1 = not served
    struct request_list queue, sent; // to be sent; waiting for an answer
    bool closing;                    // nothing goes out any more
};

static void channel_advance(struct controller_channel *ch);
static void channel_timer_cb(struct node_timer *t);

// ---- lists ----------------------------------------------------------------------------------------------
static void requests_init(struct request_list *l)
{
    l->head = NULL;
    l->tail = &l->head;
}

static void requests_add(struct request_list *l, struct channel_request *r)
{
    r->next = NULL;
    *l->tail = r;
    l->tail = &r->next;
}

static bool requests_remove(struct request_list *l, struct channel_request *r)
{
    for (struct channel_request **p = &l->head; *p; p = &(*p)->next) {
        if (*p != r)
            continue;
        *p = r->next;
        if (l->tail == &r->next)
            l->tail = p;
        r->next = NULL;
        return true;
    }
    return false;
}

// Puts what was sent and not answered back before what waits, in the order of sending.
static void requeue_sent(struct controller_channel *ch)
{
    for (struct channel_request *r = ch->sent.head; r; r = r->next)
        r->where = IN_QUEUE;
    if (!ch->sent.head)
        return;
    *ch->sent.tail = ch->queue.head;
    if (!ch->queue.head)
        ch->queue.tail = ch->sent.tail;
    ch->queue.head = ch->sent.head;
    requests_init(&ch->sent);
}

// ---- a request's end ------------------------------------------------------------------------------------
static void request_forget(struct controller_channel *ch, struct channel_request *r)
{
    if (r->where != IN_NONE)
        MUST(requests_remove(r->where == IN_QUEUE ? &ch->queue : &ch->sent, r));
    r->where = IN_NONE;
    node_timer_stop(ch->loop, &r->timer);
}

static void request_fail(struct controller_channel *ch, struct channel_request *r, int err)
{
    request_forget(ch, r);
    (void)r->answer(r, err, 0, SLICE_NULL);
}

static void request_deadline_cb(struct node_timer *t)
{
    struct channel_request *r =
        (struct channel_request *)((char *)t - offsetof(struct channel_request, timer));
    request_fail(r->channel, r, ERR_TIMEOUT);
}

// ---- connection -----------------------------------------------------------------------------------------
static void channel_drop(struct controller_channel *ch)
{
    struct node_conn *c = ch->conn;
    ch->conn = NULL;
    node_timer_stop(ch->loop, &ch->timer);
    requeue_sent(ch);
    if (c) {
        node_conn_set_data(c, NULL);
        node_conn_close(c, false);
    }
}

static void channel_pause(struct controller_channel *ch)
{
    ch->state = CH_PAUSED;
    ch->pause_ms = ch->pause_ms
                       ? (ch->pause_ms * 2 > CHANNEL_PAUSE_MAX_MS ? CHANNEL_PAUSE_MAX_MS : ch->pause_ms * 2)
                       : CHANNEL_PAUSE_MIN_MS;
    node_timer_start(ch->loop, &ch->timer, ch->pause_ms);
}

static void channel_lost(struct controller_channel *ch)
{
    channel_drop(ch);
    ch->active = -1;
    channel_pause(ch);
}

static void conn_send(struct controller_channel *ch, int16_t api, int16_t version, struct rope *body)
{
    struct rope frame;
    rope_init(&frame);
    outbound_request_frame(&frame, api, version, ++ch->correlation, ch->client_id, body);
    node_conn_send(ch->conn, &frame);
    rope_clear(&frame);
}

static void send_versions(struct controller_channel *ch)
{
    struct kp_api_versions_request q;
    kp_api_versions_request_init(&q);
    q.client_software_name = SLICE_LIT("kraft");
    q.client_software_version = SLICE_LIT("0.1.0");
    struct rope body;
    rope_init(&body);
    MUST(kp_api_versions_request_encode(&q, &body, 3) == 0);
    ch->state = CH_VERSIONS;
    conn_send(ch, KP_API_API_VERSIONS, 3, &body);
    node_timer_start(ch->loop, &ch->timer, CHANNEL_PROBE_MS);
}

static void send_probe(struct controller_channel *ch)
{
    struct kp_describe_cluster_request q;
    kp_describe_cluster_request_init(&q);
    q.endpoint_type = 2; // controllers
    struct rope body;
    rope_init(&body);
    MUST(kp_describe_cluster_request_encode(&q, &body, 1) == 0);
    ch->state = CH_PROBING;
    conn_send(ch, KP_API_DESCRIBE_CLUSTER, 1, &body);
    node_timer_start(ch->loop, &ch->timer, CHANNEL_PROBE_MS);
}

static void send_request(struct controller_channel *ch, struct channel_request *r)
{
    MUST(requests_remove(&ch->queue, r));
    r->where = IN_NONE;
    int16_t low = r->version_min, high = r->version_max;
    if (r->api < CHANNEL_API_MAX) {
        if (ch->versions[r->api].min > low)
            low = ch->versions[r->api].min;
        if (ch->versions[r->api].max < high)
            high = ch->versions[r->api].max;
    }
    struct rope body;
    rope_init(&body);
    if (high < low || r->encode(r, high, &body) != 0) {
        rope_clear(&body);
        request_fail(ch, r, ERR_UNSUPPORTED);
        return;
    }
    conn_send(ch, r->api, high, &body);
    r->correlation = ch->correlation;
    r->sent_version = high;
    r->where = IN_SENT;
    requests_add(&ch->sent, r);
}

static void send_all(struct controller_channel *ch)
{
    if (!ch->sent.head && ch->queue.head)
        node_timer_start(ch->loop, &ch->timer, ch->answer_timeout_ms);
    // `answer` of one that cannot be sent may queue or cancel others, hence the look at the head each time.
    while (ch->state == CH_READY && ch->queue.head)
        send_request(ch, ch->queue.head);
}

// ---- answers --------------------------------------------------------------------------------------------
static bool take_versions(struct controller_channel *ch, struct kp_reader *r)
{
    struct kp_api_versions_response a;
    kp_api_versions_response_init(&a);
    if (kp_api_versions_response_decode(&a, r, 3) != 0 || a.error_code != 0)
        return false;
    for (unsigned i = 0; i < CHANNEL_API_MAX; i++) {
        ch->versions[i].min = 0;
        ch->versions[i].max = -1;
    }
    for (int32_t i = 0; i < a.api_keys_count; i++) {
        int16_t key = a.api_keys[i].api_key;
        if (key < 0 || key >= CHANNEL_API_MAX)
            continue;
        ch->versions[key].min = a.api_keys[i].min_version;
        ch->versions[key].max = a.api_keys[i].max_version;
    }
    return true;
}

// Learns all controllers; says where the active one is. False: the answer is of no use.
static bool take_probe(struct controller_channel *ch, struct kp_reader *r, struct controller_endpoint *active)
{
    struct kp_describe_cluster_response a;
    kp_describe_cluster_response_init(&a);
    if (kp_describe_cluster_response_decode(&a, r, 1) != 0 || a.error_code != 0)
        return false;
    active->id = -1;
    for (int32_t i = 0; i < a.brokers_count; i++) {
        struct controller_endpoint e = {.id = a.brokers[i].broker_id, .port = (uint16_t)a.brokers[i].port};
        if (a.brokers[i].host.len == 0 || a.brokers[i].host.len >= sizeof e.host)
            continue;
        memcpy(e.host, a.brokers[i].host.data, a.brokers[i].host.len);
        controller_channel_learn(ch, &e);
        if (e.id == a.controller_id)
            *active = e;
    }
    return true;
}

static void dial(struct controller_channel *ch, const struct controller_endpoint *to);

static void after_probe(struct controller_channel *ch, const struct controller_endpoint *active)
{
    if (active->id < 0) { // an election is going on: ask again soon, somebody else
        channel_lost(ch);
        return;
    }
    if (strcmp(active->host, ch->at.host) != 0 || active->port != ch->at.port) {
        channel_drop(ch);
        dial(ch, active);
        return;
    }
    if (ch->active != active->id)
        log_info(ch->log, "channel", "found the active controller",
                 "channel=%s controller=%d host=%s port=%u", ch->name, active->id, active->host,
                 active->port);
    ch->active = active->id;
    ch->at.id = active->id;
    ch->pause_ms = 0;
    ch->state = CH_READY;
    node_timer_stop(ch->loop, &ch->timer);
    send_all(ch);
    if (ch->found && ch->state == CH_READY)
        ch->found(ch->data, active->id);
}

static int take_answer(struct controller_channel *ch, int32_t correlation, struct slice frame)
{
    struct channel_request *r = ch->sent.head;
    while (r && r->correlation != correlation)
        r = r->next;
    if (!r)
        return 0; // its sender has given up
    struct slice body;
    if (outbound_response_body(frame, r->api, r->sent_version, &body) != 0)
        return ERR_MALFORMED;
    MUST(requests_remove(&ch->sent, r));
    r->where = IN_NONE;
    // The timer is out of the wheel while `answer` runs, which may free or reuse the request.
    node_timer_stop(ch->loop, &r->timer);
    uint32_t timeout_ms = r->timeout_ms;
    enum channel_verdict v = r->answer(r, 0, r->sent_version, body);
    if (v == CHANNEL_DONE || ch->closing)
        return 0;
    mono_us now = node_now(ch->loop);
    if (timeout_ms)
        node_timer_start(ch->loop, &r->timer, r->deadline > now ? (r->deadline - now) / 1000 : 0);
    r->where = IN_QUEUE;
    requests_add(&ch->queue, r);
    return v == CHANNEL_ELSEWHERE ? ERR_NOTLEADER : ERR_AGAIN;
}

static int channel_frame(struct node_conn *c, uint8_t *data, size_t len)
{
    struct controller_channel *ch = node_conn_data(c);
    if (!ch)
        return 0;
    struct slice frame = slice_of(data, len), body;
    int32_t correlation;
    if (outbound_response_correlation(frame, &correlation) != 0)
        return ERR_MALFORMED;
    if (ch->state == CH_READY) {
        int verdict = take_answer(ch, correlation, frame);
        if (verdict == ERR_MALFORMED)
            return ERR_MALFORMED;
        if (ch->closing || ch->conn != c)
            return 0;
        if (ch->state == CH_READY && ch->sent.head)
            node_timer_start(ch->loop, &ch->timer, ch->answer_timeout_ms);
        else if (ch->state == CH_READY)
            node_timer_stop(ch->loop, &ch->timer);
        if (verdict != 0) { // not the active one, or later: what was sent is sent again, in order
            channel_lost(ch);
        }
        return 0;
    }
    if (correlation != ch->correlation)
        return 0;
    struct arena arena;
    arena_init(&arena);
    arena.limit = ch->frame_bytes_max;
    struct kp_reader r;
    int16_t api = ch->state == CH_VERSIONS ? KP_API_API_VERSIONS : KP_API_DESCRIBE_CLUSTER;
    int16_t version = ch->state == CH_VERSIONS ? 3 : 1;
    int err = outbound_response_body(frame, api, version, &body);
    if (err == 0) {
        kp_reader_init(&r, body, &arena, NULL);
        if (ch->state == CH_VERSIONS) {
            err = take_versions(ch, &r) ? 0 : ERR_MALFORMED;
            if (err == 0)
                send_probe(ch);
        } else if (ch->state == CH_PROBING) {
            struct controller_endpoint active;
            err = take_probe(ch, &r, &active) ? 0 : ERR_MALFORMED;
            if (err == 0)
                after_probe(ch, &active);
        }
    }
    arena_fini(&arena);
    return err;
}

static void channel_closed(struct node_conn *c, int reason)
{
    struct controller_channel *ch = node_conn_data(c);
    if (!ch || ch->conn != c)
        return;
    ch->conn = NULL;
    ch->pause_ms = 0; // somebody else may be active already
    channel_lost(ch);
}

static const struct node_conn_ops channel_ops = {.frame = channel_frame, .closed = channel_closed};

static void dial_done(struct node_conn *c, int err, void *data)
{
    struct controller_channel *ch = data;
    MUST(ch->magic == CHANNEL_MAGIC);
    if (ch->closing) {
        if (c)
            node_conn_close(c, false);
        return;
    }
    MUST(ch->state == CH_DIALING);
    if (err) {
        channel_lost(ch);
        return;
    }
    ch->conn = c;
    node_conn_set_data(c, ch);
    node_conn_set_ops(c, &channel_ops);
    send_versions(ch);
}

static void dial(struct controller_channel *ch, const struct controller_endpoint *to)
{
    if (to != &ch->at)
        ch->at = *to;
    ch->state = CH_DIALING;
    struct node_dial d = {.host = ch->at.host,
                          .port = ch->at.port,
                          .timeout_ms = ch->connect_timeout_ms,
                          .limits = {.frame_bytes_max = ch->frame_bytes_max},
                          .done = dial_done,
                          .data = ch};
    node_dial(ch->loop, &d);
}

static void channel_advance(struct controller_channel *ch)
{
    if (ch->closing)
        return;
    if (ch->state == CH_READY)
        send_all(ch);
    else if (ch->state == CH_IDLE && ch->known_count > 0)
        dial(ch, &ch->known[ch->next++ % ch->known_count]);
}

static void channel_timer_cb(struct node_timer *t)
{
    struct controller_channel *ch =
        (struct controller_channel *)((char *)t - offsetof(struct controller_channel, timer));
    if (ch->state == CH_PAUSED) {
        ch->state = CH_IDLE;
        if (ch->queue.head)
            channel_advance(ch);
        return;
    }
    log_warn(ch->log, "channel", "controller does not answer, looking for another",
             "channel=%s host=%s port=%u", ch->name, ch->at.host, ch->at.port);
    channel_lost(ch);
}

// ---- public ---------------------------------------------------------------------------------------------
struct controller_channel *controller_channel_open(const struct controller_channel_opts *opts)
{
    struct controller_channel *ch = mem_zalloc(sizeof *ch);
    ch->magic = CHANNEL_MAGIC;
    ch->loop = opts->loop;
    ch->log = opts->log;
    ch->found = opts->found;
    ch->data = opts->data;
    snprintf(ch->name, sizeof ch->name, "%s", opts->name);
    snprintf(ch->client_id, sizeof ch->client_id, "%s", opts->client_id);
    ch->active = -1;
    ch->connect_timeout_ms = opts->connect_timeout_ms;
    ch->answer_timeout_ms = opts->answer_timeout_ms;
    ch->frame_bytes_max = opts->frame_bytes_max;
    ch->timer.fire = channel_timer_cb;
    requests_init(&ch->queue);
    requests_init(&ch->sent);
    for (unsigned i = 0; i < opts->bootstrap_count; i++)
        controller_channel_learn(ch, &opts->bootstrap[i]);
    return ch;
}

void controller_channel_send(struct controller_channel *ch, struct channel_request *r)
{
    MUST(ch->magic == CHANNEL_MAGIC);
    MUST(r->where == IN_NONE);
    if (ch->closing) {
        (void)r->answer(r, ERR_CANCELED, 0, SLICE_NULL);
        return;
    }
    r->channel = ch;
    r->timer.fire = request_deadline_cb;
    r->deadline = node_now(ch->loop) + (mono_us)r->timeout_ms * 1000;
    if (r->timeout_ms)
        node_timer_start(ch->loop, &r->timer, r->timeout_ms);
    r->where = IN_QUEUE;
    requests_add(&ch->queue, r);
    channel_advance(ch);
}

void controller_channel_cancel(struct controller_channel *ch, struct channel_request *r)
{
    if (r->where != IN_NONE)
        request_forget(ch, r);
}

void controller_channel_learn(struct controller_channel *ch, const struct controller_endpoint *at)
{
    for (unsigned i = 0; i < ch->known_count; i++) {
        struct controller_endpoint *k = &ch->known[i];
        bool same_place = k->port == at->port && strcmp(k->host, at->host) == 0;
        if ((at->id >= 0 && k->id == at->id) || same_place) {
            *k = *at;
            return;
        }
    }
    if (ch->known_count < CHANNEL_ENDPOINTS_MAX)
        ch->known[ch->known_count++] = *at;
}

void controller_channel_follow(struct controller_channel *ch, node_id active)
{
    if (ch->closing || ch->state != CH_READY || active < 0 || ch->active == active)
        return;
    log_info(ch->log, "channel", "another controller is active now", "channel=%s controller=%d", ch->name,
             active);
    ch->pause_ms = 0;
    channel_lost(ch);
}

node_id controller_channel_active(const struct controller_channel *ch)
{
    return ch->active;
}

void controller_channel_close(struct controller_channel *ch)
{
    MUST(ch->magic == CHANNEL_MAGIC && !ch->closing);
    ch->closing = true;
    channel_drop(ch);
    while (ch->queue.head)
        request_fail(ch, ch->queue.head, ERR_CANCELED);
}

void controller_channel_free(struct controller_channel *ch)
{
    if (!ch)
        return;
    MUST(ch->magic == CHANNEL_MAGIC);
    ch->magic = 0;
    mem_free(ch);
}
