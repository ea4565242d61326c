// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding of what passes over a quorum connection.
#include "raft/message.h"

#include <limits.h>
#include "raft/cursor.h"
#include "raft/limits.h"

#define TERM_MAX ((raft_term)INT32_MAX / 2) // a term is a leader epoch; what is above was never counted up to
#define INDEX_MAX ((raft_index)1 << 62)     // far above any log, far below an overflow

// ---- writing
// ---------------------------------------------------------------------------------------------------
static void begin(struct strbuf *b, enum wire_kind kind)
{
    strbuf_init(b);
    put_u32(b, 0); // length, set at the end
    put_u8(b, (uint8_t)kind);
}

// `more` bytes of the frame follow in the rope.
static void end(struct strbuf *b, struct rope *out, size_t more)
{
    bytes_store_be32(b->data, (uint32_t)(b->len - 4 + more));
    rope_write(out, b->data, b->len);
    strbuf_fini(b);
}

void manifest_encode(const struct manifest *m, uint8_t out[MANIFEST_BYTES])
{
    bytes_store_be64(out, (uint64_t)m->end_offset);
    bytes_store_be32(out + 8, (uint32_t)m->epoch);
    bytes_store_be64(out + 12, m->size);
}

static void put_manifest(struct strbuf *b, const struct manifest *m)
{
    uint8_t t[MANIFEST_BYTES];
    manifest_encode(m, t);
    strbuf_add(b, t, sizeof t);
}

void wire_put_hello(struct rope *out, enum wire_kind kind, const struct wire_hello *h)
{
    struct strbuf b;
    begin(&b, kind);
    put_u16(&b, h->protocol);
    put_text16(&b, h->cluster_id);
    put_u32(&b, (uint32_t)h->node);
    strbuf_add(&b, h->directory.b, 16);
    put_u64(&b, h->id);
    put_u64(&b, h->expected);
    put_u8(&b, (uint8_t)((h->dynamic ? 1 : 0) | (h->replaced ? 2 : 0)));
    end(&b, out, 0);
}

void wire_put_refused(struct rope *out, enum refuse_reason reason, const char *words)
{
    struct strbuf b;
    begin(&b, WIRE_REFUSED);
    put_u8(&b, (uint8_t)reason);
    put_text16(&b, words);
    end(&b, out, 0);
}

void wire_put_append(struct rope *out, const struct wire_append *a, const struct slice *batches)
{
    struct strbuf b;
    size_t more = 0;
    for (uint32_t i = 0; i < a->count; i++)
        more += batches[i].len;
    begin(&b, WIRE_APPEND);
    put_u64(&b, a->term);
    put_u64(&b, a->prev_index);
    put_u64(&b, a->prev_term);
    put_u64(&b, a->leader_commit);
    put_u32(&b, a->count);
    end(&b, out, more);
    for (uint32_t i = 0; i < a->count; i++)
        rope_write(out, batches[i].data, batches[i].len);
}

void wire_put_install(struct rope *out, const struct wire_install *i)
{
    struct strbuf b;
    begin(&b, WIRE_INSTALL);
    put_u64(&b, i->term);
    put_u64(&b, i->last_index);
    put_u64(&b, i->last_term);
    put_u64(&b, i->conf_index);
    put_manifest(&b, &i->manifest);
    voter_set_encode(i->voters, &b);
    end(&b, out, 0);
}

void wire_put_snapshot_read(struct rope *out, const struct wire_snapshot_read *r)
{
    struct strbuf b;
    begin(&b, WIRE_SNAPSHOT_READ);
    put_u64(&b, (uint64_t)r->file.end_offset);
    put_u32(&b, (uint32_t)r->file.epoch);
    put_u64(&b, r->pos);
    put_u32(&b, r->bytes_max);
    end(&b, out, 0);
}

void wire_put_snapshot_data(struct rope *out, const struct manifest *file, uint64_t pos, size_t bytes)
{
    struct strbuf b;
    begin(&b, WIRE_SNAPSHOT_DATA);
    put_u64(&b, (uint64_t)file->end_offset);
    put_u32(&b, (uint32_t)file->epoch);
    put_u64(&b, pos);
    put_u64(&b, file->size);
    end(&b, out, bytes);
}

void wire_put_small(struct rope *out, const struct raft_message *m)
{
    struct strbuf b;
    switch (m->type) {
    case RAFT_APPEND_ENTRIES_RESULT:
        begin(&b, WIRE_APPEND_RESULT);
        put_u8(&b, m->append_entries_result.version);
        put_u64(&b, m->append_entries_result.term);
        put_u64(&b, m->append_entries_result.rejected);
        put_u64(&b, m->append_entries_result.last_log_index);
        put_u16(&b, m->append_entries_result.features);
        put_u16(&b, m->append_entries_result.capacity);
        break;
    case RAFT_REQUEST_VOTE:
        begin(&b, WIRE_VOTE);
        put_u8(&b, m->request_vote.version);
        put_u64(&b, m->request_vote.term);
        put_u64(&b, m->request_vote.candidate_id);
        put_u64(&b, m->request_vote.last_log_index);
        put_u64(&b, m->request_vote.last_log_term);
        put_u8(&b, (uint8_t)((m->request_vote.disrupt_leader ? 1 : 0) | (m->request_vote.pre_vote ? 2 : 0)));
        break;
    case RAFT_REQUEST_VOTE_RESULT:
        begin(&b, WIRE_VOTE_RESULT);
        put_u8(&b, m->request_vote_result.version);
        put_u64(&b, m->request_vote_result.term);
        put_u8(&b, (uint8_t)((m->request_vote_result.vote_granted ? 1 : 0) |
                             (m->request_vote_result.pre_vote ? 2 : 0)));
        put_u16(&b, m->request_vote_result.features);
        put_u16(&b, m->request_vote_result.capacity);
        break;
    case RAFT_TIMEOUT_NOW:
        begin(&b, WIRE_TIMEOUT_NOW);
        put_u64(&b, m->timeout_now.term);
        put_u64(&b, m->timeout_now.last_log_index);
        put_u64(&b, m->timeout_now.last_log_term);
        break;
    default:
        UNREACHABLE("a message of another kind");
    }
    end(&b, out, 0);
}

// ---- reading
// ---------------------------------------------------------------------------------------------------
static raft_term get_term(struct cursor *c, bool zero_allowed)
{
    raft_term t = cursor_u64(c);
    if (t > TERM_MAX || (t == 0 && !zero_allowed))
        c->bad = true;
    return t;
}

static raft_index get_index(struct cursor *c)
{
    raft_index i = cursor_u64(c);
    if (i > INDEX_MAX)
        c->bad = true;
    return i;
}

static uint8_t get_flags(struct cursor *c, uint8_t known)
{
    uint8_t f = cursor_u8(c);
    if (f & ~known)
        c->bad = true;
    return f;
}

static struct manifest get_file(struct cursor *c, bool with_size)
{
    struct manifest m = {0};
    m.end_offset = (log_offset)cursor_u64(c);
    m.epoch = (leader_epoch)cursor_u32(c);
    if (with_size)
        m.size = cursor_u64(c);
    if (m.end_offset < 0 || m.epoch < 0 || m.size > (uint64_t)INT64_MAX)
        c->bad = true;
    return m;
}

bool manifest_decode(struct slice bytes, struct manifest *out)
{
    struct cursor c = cursor_of(bytes);
    *out = get_file(&c, true);
    return cursor_done(&c);
}

bool wire_get_hello(struct slice body, struct wire_hello *out)
{
    struct cursor c = cursor_of(body);
    memset(out, 0, sizeof *out);
    if (body.len > RAFT_HELLO_BYTES_MAX)
        return false;
    out->protocol = cursor_u16(&c);
    if (!c.bad && out->protocol != WIRE_PROTOCOL)
        return true; // the rest may look different; the caller refuses by the number
    cursor_text16(&c, out->cluster_id, sizeof out->cluster_id);
    out->node = (node_id)cursor_u32(&c);
    const uint8_t *dir = cursor_take(&c, 16);
    if (dir)
        memcpy(out->directory.b, dir, 16);
    out->id = cursor_u64(&c);
    out->expected = cursor_u64(&c);
    uint8_t flags = get_flags(&c, 3);
    out->dynamic = (flags & 1) != 0;
    out->replaced = (flags & 2) != 0;
    return cursor_done(&c) && out->id != 0 && out->node >= 0;
}

bool wire_get_refused(struct slice body, struct wire_refused *out)
{
    struct cursor c = cursor_of(body);
    out->reason = cursor_u8(&c);
    cursor_text16(&c, out->words, sizeof out->words);
    return cursor_done(&c);
}

bool wire_get_append(struct slice body, struct wire_append *out)
{
    struct cursor c = cursor_of(body);
    out->term = get_term(&c, false);
    out->prev_index = get_index(&c);
    out->prev_term = get_term(&c, true);
    out->leader_commit = get_index(&c);
    out->count = cursor_u32(&c);
    if (c.bad || out->count > RAFT_APPEND_ENTRIES_MAX || (out->prev_index == 0) != (out->prev_term == 0) ||
        out->prev_term > out->term)
        return false;
    out->batches = slice_of(c.p, cursor_left(&c));
    return (out->count == 0) == (out->batches.len == 0);
}

bool wire_get_install(struct slice body, struct wire_install *out)
{
    struct cursor c = cursor_of(body);
    out->voters = NULL;
    out->term = get_term(&c, false);
    out->last_index = get_index(&c);
    out->last_term = get_term(&c, false);
    out->conf_index = get_index(&c);
    out->manifest = get_file(&c, true);
    if (c.bad || out->last_index == 0 || out->conf_index == 0 || out->conf_index > out->last_index ||
        out->last_term > out->term)
        return false;
    out->voters = voter_set_decode(slice_of(c.p, cursor_left(&c)));
    if (out->voters && voter_set_voters(out->voters) == 0) {
        voter_set_unref(out->voters);
        out->voters = NULL;
    }
    return out->voters != NULL;
}

bool wire_get_snapshot_read(struct slice body, struct wire_snapshot_read *out)
{
    struct cursor c = cursor_of(body);
    out->file = get_file(&c, false);
    out->pos = cursor_u64(&c);
    out->bytes_max = cursor_u32(&c);
    return cursor_done(&c) && out->pos <= (uint64_t)INT64_MAX && out->bytes_max > 0;
}

bool wire_get_snapshot_data(struct slice body, struct wire_snapshot_data *out)
{
    struct cursor c = cursor_of(body);
    struct manifest m = {0};
    m.end_offset = (log_offset)cursor_u64(&c);
    m.epoch = (leader_epoch)cursor_u32(&c);
    out->pos = cursor_u64(&c);
    m.size = cursor_u64(&c);
    out->file = m;
    if (c.bad || m.end_offset < 0 || m.epoch < 0 || m.size > (uint64_t)INT64_MAX || out->pos > m.size)
        return false;
    out->bytes = slice_of(c.p, cursor_left(&c));
    return out->bytes.len <= m.size - out->pos;
}

bool wire_get_small(enum wire_kind kind, struct slice body, struct raft_message *out)
{
    struct cursor c = cursor_of(body);
    uint8_t flags;
    switch (kind) {
    case WIRE_APPEND_RESULT:
        out->type = RAFT_APPEND_ENTRIES_RESULT;
        out->append_entries_result.version = cursor_u8(&c);
        out->append_entries_result.term = get_term(&c, false);
        out->append_entries_result.rejected = get_index(&c);
        out->append_entries_result.last_log_index = get_index(&c);
        out->append_entries_result.features = cursor_u16(&c);
        out->append_entries_result.capacity = cursor_u16(&c);
        break;
    case WIRE_VOTE:
        out->type = RAFT_REQUEST_VOTE;
        out->request_vote.version = cursor_u8(&c);
        out->request_vote.term = get_term(&c, false);
        out->request_vote.candidate_id = cursor_u64(&c);
        out->request_vote.last_log_index = get_index(&c);
        out->request_vote.last_log_term = get_term(&c, true);
        flags = get_flags(&c, 3);
        out->request_vote.disrupt_leader = (flags & 1) != 0;
        out->request_vote.pre_vote = (flags & 2) != 0;
        if (out->request_vote.candidate_id == 0)
            c.bad = true;
        break;
    case WIRE_VOTE_RESULT:
        out->type = RAFT_REQUEST_VOTE_RESULT;
        out->request_vote_result.version = cursor_u8(&c);
        out->request_vote_result.term = get_term(&c, true);
        flags = get_flags(&c, 3);
        out->request_vote_result.vote_granted = (flags & 1) != 0;
        out->request_vote_result.pre_vote = (flags & 2) != 0;
        out->request_vote_result.features = cursor_u16(&c);
        out->request_vote_result.capacity = cursor_u16(&c);
        break;
    case WIRE_TIMEOUT_NOW:
        out->type = RAFT_TIMEOUT_NOW;
        out->timeout_now.version = 0;
        out->timeout_now.term = get_term(&c, false);
        out->timeout_now.last_log_index = get_index(&c);
        out->timeout_now.last_log_term = get_term(&c, true);
        break;
    default:
        return false;
    }
    return cursor_done(&c);
}
