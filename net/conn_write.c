// SPDX-License-Identifier: Apache-2.0
// Output: what was sent in a turn leaves in as few calls as possible.
//
// Memory pieces are gathered into one writev. A file range of some length goes by sendfile, and what stands
// before it is held back in the kernel (MSG_MORE) so that head and range leave in common packets; a short
// range is read into memory and joins the gathering. Write interest is armed only after the socket has said
// that it is full.
#include "net/world.h"

#include <errno.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/mem.h"

// What one step writes: a gathering, or one file range.
struct step {
    struct iovec iov[NET_IOV_MAX]; // the gathering
    int count;                     // pieces of it
    size_t bytes;                  // its bytes
    bool more;                     // something follows at once
    const struct rope_piece *file; // or this range; NULL: a gathering
};

static bool by_sendfile(const struct node_conn *c, const struct rope_piece *p, size_t len)
{
    return p->file && p->file->fd >= 0 && c->transport->send_file && len >= NET_SENDFILE_BYTES_MIN;
}

// Reads the next part of a file range into the loop's scratch at `used`; 0 or the file's error.
static int read_piece(struct node_conn *c, const struct rope_piece *p, size_t skip, size_t *used,
                      struct iovec *iov)
{
    struct node_loop *l = c->loop;
    if (!l->scratch)
        l->scratch = chunk_alloc(NET_READ_PIECE_BYTES_MAX);
    size_t len = p->bytes.len - skip;
    if (len > NET_READ_PIECE_BYTES_MAX - *used)
        len = NET_READ_PIECE_BYTES_MAX - *used;
    uint8_t *to = l->scratch->data + *used;
    int err = p->file->read(p->file, to, len, p->file_pos + skip);
    *iov = (struct iovec){to, len};
    *used += len;
    return err;
}

// Fills the step with what stands first. An error is that of a file that could not be read.
static int gather(struct node_conn *c, struct step *s)
{
    size_t skip = c->out_skip, used = 0;
    s->count = 0;
    s->bytes = 0;
    s->more = false;
    s->file = NULL;
    for (uint32_t i = 0; i < c->out.count && s->count < NET_IOV_MAX; i++, skip = 0) {
        const struct rope_piece *p = &c->out.pieces[i];
        size_t len = p->bytes.len - skip;
        if (!p->file) {
            s->iov[s->count++] = (struct iovec){(void *)(uintptr_t)(p->bytes.data + skip), len};
            s->bytes += len;
            continue;
        }
        if (by_sendfile(c, p, len)) {
            if (s->count == 0)
                s->file = p;
            s->more = true;
            return 0;
        }
        if (used == NET_READ_PIECE_BYTES_MAX)
            return 0; // the scratch is full
        int err = read_piece(c, p, skip, &used, &s->iov[s->count]);
        if (err)
            return err;
        size_t got = s->iov[s->count++].iov_len;
        s->bytes += got;
        if (got < len)
            return 0;
    }
    return 0;
}

// Drops bytes that have left from the front.
static void consume(struct node_conn *c, size_t bytes)
{
    struct rope *r = &c->out;
    r->len -= bytes;
    c->out_skip += bytes;
    uint32_t gone = 0;
    while (gone < r->count && c->out_skip >= r->pieces[gone].bytes.len) {
        struct rope_piece *p = &r->pieces[gone++];
        c->out_skip -= p->bytes.len;
        chunk_unref(p->chunk);
        rope_file_unref(p->file);
    }
    if (!gone)
        return;
    r->count -= gone;
    memmove(r->pieces, r->pieces + gone, r->count * sizeof *r->pieces);
    if (!r->count) {
        MUST(r->len == 0 && c->out_skip == 0);
        rope_clear(r);
    }
}

static ssize_t write_step(struct node_conn *c, const struct step *s)
{
    net_count(c->loop->node, NET_SENDS, 1);
    if (!s->file)
        return c->transport->send(c, s->iov, s->count, s->more);
    size_t len = s->file->bytes.len - c->out_skip;
    ssize_t n = c->transport->send_file(c, s->file->file->fd, s->file->file_pos + c->out_skip,
                                        len < NET_FLUSH_BYTES_MAX ? len : NET_FLUSH_BYTES_MAX);
    if (n == 0)
        return -EIO; // the file ends before the range does: what was promised cannot be sent
    return n;
}

static void marks(struct node_conn *c)
{
    size_t high = c->loop->node->opts.send_queue_bytes_high;
    if (c->out.len > high) {
        c->choked = true;
        c->above_low = true;
    } else if (c->out.len > high / 2) {
        c->above_low = true;
    } else if (c->choked) {
        c->choked = false;
        if (c->in && !c->paused && !list_is_linked(&c->resume_link))
            list_add_tail(&c->loop->resumed, &c->resume_link);
    }
    if (c->out.len == 0 && c->above_low) {
        c->above_low = false;
        if (c->state == CONN_OPEN && c->ops && c->ops->drained)
            c->ops->drained(c);
    }
}

void conn_flush(struct node_conn *c)
{
    struct node_loop *l = c->loop;
    struct step s;
    size_t written = 0;
    bool full = false;
    while (c->out.len && written < NET_FLUSH_BYTES_MAX && !full) {
        int err = gather(c, &s);
        ssize_t n = err ? -EIO : write_step(c, &s);
        if (n == -EAGAIN || n == -EWOULDBLOCK) {
            full = true;
            break;
        }
        if (n < 0) {
            if (n == -EIO)
                net_log_limited(l->node, &l->node->limit_malformed, LOG_LEVEL_ERROR,
                                "a file range could not be read for sending", "reason=\"%s\"",
                                err ? err_text(err) : "the file is shorter than the range");
            conn_fail(c, n == -EIO ? ERR_IO : n == -ETIMEDOUT ? ERR_TIMEOUT : ERR_RESET);
            return;
        }
        if (!s.file)
            full = (size_t)n < s.bytes;
        consume(c, (size_t)n);
        written += (size_t)n;
    }
    if (written) {
        c->last_io = node_now(l);
        net_count(l->node, NET_BYTES_OUT, (int64_t)written);
    }
    if (c->out.len && !full && !list_is_linked(&c->dirty_link))
        list_add_tail(&l->dirty, &c->dirty_link); // the rest in the next turn
    c->watching_write = c->out.len && full;
    marks(c);
    if (c->state == CONN_FLUSHING && !c->out.len) {
        conn_fail(c, c->reason);
        return;
    }
    if (c->state <= CONN_FLUSHING)
        conn_watch(c);
}
