// SPDX-License-Identifier: Apache-2.0
// Receiving and framing.
//
// The loop has one receive buffer; each receive of a turn takes the next part of it, and whole frames are
// delivered where they lie. What remains of a frame moves to a chunk of the connection's own, of the frame's
// size (a small one until the first bytes of the frame are there: a length alone costs nothing), and the rest
// is then received straight into that; between big frames little is received at a time, so that little is
// copied. A paused connection keeps its undelivered bytes in such a chunk, too. An idle
// connection holds nothing.
//
// Memory: what connections have received of unfinished frames is counted in node.frame_bytes. When the budget
// is used up, no connection in the middle of a frame is read (loop.starved) but the one of each loop whose
// frame was begun first: so frames get finished, one after the other. Small frames always get through, since
// others may wait for what they say. A frame that makes no progress for some time while others wait is given
// up with its connection.
#include "net/world.h"

#include <errno.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bytes.h"

#define LENGTH_BYTES 4 // of a frame's length

static bool may_deliver(const struct node_conn *c)
{
    return c->state == CONN_OPEN && !c->paused && !c->choked;
}

static bool budget_left(struct node *n)
{
    return atomic_load_explicit(&n->frame_bytes, memory_order_relaxed) < n->opts.frame_memory_bytes;
}

// Counts what the own chunk has of memory: all of it where it is small, else what was received and one step
// more.
static void charge(struct node_conn *c)
{
    struct node *n = c->loop->node;
    uint64_t bytes = c->in ? c->in->cap : 0;
    if (bytes > NET_CHARGE_STEP_BYTES && bytes > (uint64_t)c->in_end + NET_CHARGE_STEP_BYTES)
        bytes = (uint64_t)c->in_end + NET_CHARGE_STEP_BYTES;
    if (bytes == c->charged)
        return;
    atomic_fetch_add_explicit(&n->frame_bytes, bytes - c->charged, memory_order_relaxed);
    c->charged = bytes;
}

static void input_set(struct node_conn *c, struct chunk *in, uint32_t len)
{
    c->in = in;
    c->in_start = 0;
    c->in_end = len;
    c->in_since = in ? node_now(c->loop) : 0;
    list_remove(&c->in_link);
    if (in)
        list_add_tail(&c->loop->partial, &c->in_link);
    charge(c);
}

// The same frame goes on in another chunk: it keeps its age, else the one that may be read on although memory
// is used up would be another one each time, and every one of them would take memory.
static void input_replace(struct node_conn *c, struct chunk *in, uint32_t len)
{
    loop_hold(c->loop, c->in);
    c->in = in;
    c->in_start = 0;
    c->in_end = len;
    charge(c);
}

void conn_release_input(struct node_conn *c)
{
    if (!c->in)
        return;
    loop_hold(c->loop, c->in); // its frames may be in use until the turn ends
    input_set(c, NULL, 0);
}

static void starve(struct node_conn *c)
{
    struct node_loop *l = c->loop;
    if (list_is_linked(&c->resume_link))
        return;
    net_count(l->node, NET_MEMORY_WAITS, 1);
    c->starved = true;
    list_add_tail(&l->starved, &c->resume_link);
    if (!node_timer_running(&l->pressure))
        node_timer_start(l, &l->pressure, NET_PRESSURE_CHECK_MS);
    conn_watch(c);
}

// The connection whose frame was begun first, of those that may be read; NULL: none.
static struct node_conn *oldest(struct node_loop *l)
{
    LIST_FOR_EACH(it, &l->partial)
    {
        struct node_conn *c = LIST_ENTRY(it, struct node_conn, in_link);
        if (may_deliver(c))
            return c;
    }
    return NULL;
}

static void give_up(struct node_conn *c)
{
    char host[64];
    uint16_t port;
    node_conn_peer(c, host, sizeof host, &port);
    net_log_limited(c->loop->node, &c->loop->node->limit_memory, LOG_LEVEL_WARN,
                    "frame memory is used up; a connection with an unfinished frame is closed",
                    "peer=%s:%u received=%u", host, port, c->in_end - c->in_start);
    conn_fail(c, ERR_TIMEOUT);
}

void conn_starved_check(struct node_loop *l)
{
    bool left = budget_left(l->node);
    struct node_conn *first = oldest(l);
    LIST_FOR_EACH_SAFE(it, &l->starved)
    {
        struct node_conn *c = LIST_ENTRY(it, struct node_conn, resume_link);
        if (!left && c != first)
            continue;
        list_remove(it);
        c->starved = false;
        c->last_io = c->in_since = node_now(l); // it could not go on: its time begins now
        conn_watch(c);
    }
    if (list_is_empty(&l->starved))
        return;
    mono_us now = node_now(l);
    if (first &&
        (now - first->last_io >= NET_STALL_MS * 1000ull || now - first->in_since >= NET_SLOW_MS * 1000ull))
        give_up(first);
    node_timer_start(l, &l->pressure, NET_PRESSURE_CHECK_MS);
}

static void malformed(struct node_conn *c, uint32_t length)
{
    struct node *n = c->loop->node;
    char host[64];
    uint16_t port;
    node_conn_peer(c, host, sizeof host, &port);
    const char *hint = "";
    if (length >> 16 == 0x1603)
        hint = " hint=\"the peer speaks TLS to a plain listener\"";
    else if (length == 0x47455420 || length == 0x504f5354) // "GET ", "POST"
        hint = " hint=\"the peer speaks HTTP\"";
    net_count(n, NET_MALFORMED, 1);
    net_log_limited(n, &n->limit_malformed, LOG_LEVEL_WARN, "frame length out of bounds",
                    "peer=%s:%u length=%d max=%u%s", host, port, (int32_t)length, c->limits.frame_bytes_max,
                    hint);
    conn_fail(c, ERR_MALFORMED);
}

// The frame's whole size, its length included; 0: the length is not allowed (the connection fails).
static size_t frame_size(struct node_conn *c, const uint8_t *head)
{
    uint32_t length = bytes_load_be32(head);
    if (length > c->limits.frame_bytes_max || length > INT32_MAX) {
        malformed(c, length);
        return 0;
    }
    return (size_t)length + LENGTH_BYTES;
}

static void deliver(struct node_conn *c, uint8_t *frame, size_t len)
{
    c->last_frame = (uint32_t)len;
    net_count(c->loop->node, NET_FRAMES_IN, 1);
    int err = c->ops->frame(c, frame, len);
    if (err)
        conn_fail(c, err);
}

// The first four bytes of an accepted connection are there. True: they were the magic number and are used up.
static bool take_magic(struct node_conn *c, const uint8_t *head)
{
    c->head_wanted = false;
    if (!c->listener_magic || bytes_load_be32(head) != c->listener_magic)
        return false;
    if (c->accept_magic(c, c->accept_data) != 0) {
        c->ops = NULL; // refused: nobody is told
        conn_fail(c, 0);
    }
    return true;
}

// Delivers whole frames of data[0..len); answers how many bytes are used up.
static size_t parse(struct node_conn *c, uint8_t *data, size_t len)
{
    size_t at = 0;
    c->delivering = true;
    while (may_deliver(c) && len - at >= LENGTH_BYTES) {
        if (c->head_wanted && take_magic(c, data + at)) {
            at += LENGTH_BYTES;
            continue;
        }
        size_t size = frame_size(c, data + at);
        if (!size || len - at < size)
            break;
        uint8_t *frame = data + at + LENGTH_BYTES;
        at += size;
        deliver(c, frame, size - LENGTH_BYTES);
    }
    c->delivering = false;
    return at;
}

// Bytes that the chunk for what begins with data[0..len) should hold.
static size_t room_wanted(struct node_conn *c, const uint8_t *data, size_t len)
{
    size_t want = len < 128 ? 128 : len;
    if (len < LENGTH_BYTES || c->head_wanted)
        return want;
    uint32_t length = bytes_load_be32(data);
    if (length <= c->limits.frame_bytes_max && length <= INT32_MAX && (size_t)length + LENGTH_BYTES > want)
        want = (size_t)length + LENGTH_BYTES;
    if (len < NET_FIRST_BYTES && want > NET_FIRST_BYTES)
        want = NET_FIRST_BYTES;
    return want;
}

// Moves data[0..len), which parse has left, to a chunk of the connection's own.
static void keep(struct node_conn *c, const uint8_t *data, size_t len)
{
    struct chunk *in = chunk_alloc(room_wanted(c, data, len));
    memcpy(in->data, data, len);
    input_set(c, in, (uint32_t)len);
}

// Parses the connection's own chunk on. Afterwards it holds nothing, or has room for the frame that is
// unfinished.
static void parse_own(struct node_conn *c)
{
    struct chunk *in = c->in;
    uint32_t used = (uint32_t)parse(c, in->data + c->in_start, c->in_end - c->in_start);
    c->in_start += used;
    if (c->state != CONN_OPEN)
        return; // conn_release lets go of it
    uint32_t left = c->in_end - c->in_start;
    if (!left) {
        conn_release_input(c);
        return;
    }
    size_t room = room_wanted(c, in->data + c->in_start, left);
    if (c->in_start + room <= in->cap || !may_deliver(c))
        return; // it fits where it is, or nothing more is received for now
    const uint8_t *rest = in->data + c->in_start;
    struct chunk *larger = chunk_alloc(room);
    memcpy(larger->data, rest, left);
    if (used == 0) {
        input_replace(c, larger, left);
    } else {
        loop_hold(c->loop, in);
        input_set(c, larger, left);
    }
}

void conn_parse_on(struct node_conn *c)
{
    if (c->in && may_deliver(c))
        parse_own(c);
    conn_watch(c);
}

// Bytes still missing for what stands first in the own chunk: the length, or the frame.
static size_t own_missing(struct node_conn *c)
{
    size_t have = c->in_end - c->in_start;
    if (have < LENGTH_BYTES)
        return LENGTH_BYTES - have;
    size_t size = (size_t)bytes_load_be32(c->in->data + c->in_start) + LENGTH_BYTES;
    return size > have ? size - have : 0;
}

// Appends received bytes to the own chunk until it is empty (delivered) or they are used up; answers how many
// were.
static size_t feed_own(struct node_conn *c, const uint8_t *data, size_t len)
{
    size_t at = 0;
    while (at < len && c->in && may_deliver(c)) {
        size_t n = own_missing(c);
        MUST(n > 0);
        if (n > len - at)
            n = len - at;
        size_t fits = c->in->cap - c->in_end;
        if (fits == 0) {
            parse_own(c); // makes room
            MUST(c->state != CONN_OPEN || !c->in || c->in_end < c->in->cap);
            continue;
        }
        if (n > fits)
            n = fits;
        memcpy(c->in->data + c->in_end, data + at, n);
        c->in_end += (uint32_t)n;
        at += n;
        parse_own(c);
    }
    return at;
}

// Keeps bytes that could not be delivered (paused) behind what the own chunk holds already.
static void keep_behind(struct node_conn *c, const uint8_t *data, size_t len)
{
    if (!c->in) {
        keep(c, data, len);
        return;
    }
    uint32_t have = c->in_end - c->in_start;
    if (len > c->in->cap - c->in_end) {
        struct chunk *in = chunk_alloc(have + len);
        memcpy(in->data, c->in->data + c->in_start, have);
        input_replace(c, in, have);
    }
    memcpy(c->in->data + c->in_end, data, len);
    c->in_end += (uint32_t)len;
    charge(c);
}

// Room in the loop's receive buffer for one more receive.
static uint8_t *shared_room(struct node_loop *l, size_t *room)
{
    if (l->recv && NET_RECV_SHARED_BYTES - l->recv_used < *room) {
        loop_hold(l, l->recv); // full: this turn's frames keep it, the next one takes its place
        l->recv = NULL;
    }
    if (!l->recv) {
        l->recv = chunk_alloc(NET_RECV_SHARED_BYTES);
        l->recv_used = 0;
    }
    return l->recv->data + l->recv_used;
}

static void received(struct node_conn *c, uint8_t *shared, size_t len)
{
    size_t at = 0;
    if (c->in)
        at = feed_own(c, shared, len);
    if (at < len && !c->in && may_deliver(c))
        at += parse(c, shared + at, len - at);
    if (at < len && c->state == CONN_OPEN)
        keep_behind(c, shared + at, len - at);
}

// One receive. True: all that was offered was filled, so there is more.
static bool receive(struct node_conn *c)
{
    struct node_loop *l = c->loop;
    bool pressed = !budget_left(l->node);
    if (pressed && c->in && own_missing(c) > NET_RECV_BYTES_PRESSED && c != oldest(l)) {
        starve(c);
        return false;
    }
    struct iovec iov[2];
    int count = 0;
    size_t own = 0;
    if (c->in) {
        own = own_missing(c);
        if (own > c->in->cap - c->in_end)
            own = c->in->cap - c->in_end;
        if (own)
            iov[count++] = (struct iovec){c->in->data + c->in_end, own};
    }
    size_t room = NET_RECV_BYTES_MAX;
    if (own >= NET_BIG_FRAME_BYTES || c->last_frame >= NET_BIG_FRAME_BYTES)
        room = NET_RECV_BYTES_HEAD;
    if (pressed)
        room = NET_RECV_BYTES_PRESSED;
    uint8_t *shared = shared_room(l, &room);
    iov[count++] = (struct iovec){shared, room};
    ssize_t n = c->transport->recv(c, iov, count);
    net_count(l->node, NET_RECEIVES, 1);
    if (n <= 0) {
        if (n == 0)
            conn_fail(c, 0);
        else if (n != -EAGAIN && n != -EWOULDBLOCK)
            conn_fail(c, n == -ETIMEDOUT ? ERR_TIMEOUT : ERR_RESET);
        return false;
    }
    loop_touch(l);
    c->last_io = node_now(l);
    l->turn_bytes += (size_t)n;
    net_count(l->node, NET_BYTES_IN, n);
    size_t to_own = (size_t)n < own ? (size_t)n : own, to_shared = (size_t)n - to_own;
    l->recv_used += to_shared;
    if (to_own) {
        c->in_end += (uint32_t)to_own;
        charge(c);
        if (to_own == own)
            parse_own(c);
    }
    if (to_shared)
        received(c, shared, to_shared);
    return (size_t)n == own + room;
}

void conn_read(struct node_conn *c)
{
    struct node_loop *l = c->loop;
    size_t before = l->turn_bytes;
    while (may_deliver(c) && l->turn_bytes < NET_TURN_BYTES_MAX && receive(c) &&
           l->turn_bytes - before < NET_READ_BURST_BYTES)
        continue;
    if (c->state == CONN_OPEN)
        conn_watch(c);
}
