// SPDX-License-Identifier: Apache-2.0
// From a frame of a peer to libraft's receive callback: strict checks first, then the repairs that the
// library needs.
//
// What fails a check closes the connection and never reaches the library (rule 7). An AppendEntries message
// is cut in front of each configuration entry (rule 8), freed of entries that our snapshot holds and of a
// commit index that would fall (rule 9); a vote request finds us as a voter if we are a member at all (rule
// 10).
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "raft/quorum_impl.h"

// The entries of one message, checked; their prefixes and batches are copied to one block of the library's
// when they go in.
struct incoming {
    struct entry_batch *entries; // count of them; arena
    uint32_t count;
    raft_term term;
    raft_index prev_index;
    raft_term prev_term;
    raft_index leader_commit;
};

void quorum__deliver(struct quorum *q, struct raft_message *m, raft_id from)
{
    char address[RAFT_ADDRESS_BYTES];
    quorum_raft_address(from, address);
    m->server_id = from;
    m->server_address = address;
    quorum__enter(q);
    q->recv(&q->io, m);
    quorum__leave(q);
}

// ---- AppendEntries
// --------------------------------------------------------------------------------------------- What is there
// already under the same index and term must be the same batch, and what follows our log must fit its end.
static bool fits_log(struct quorum *q, const struct incoming *in)
{
    log_offset end = mlog_end_of_index(q->log_store, in->prev_index);
    bool matches = end >= 0 && (raft_term)mlog_epoch_of_index(q->log_store, in->prev_index) == in->prev_term;
    if (in->prev_index == 0 && q->log_store->base.index == 0)
        matches = true, end = 0;
    if (matches && in->count && in->entries[0].base != end)
        return false;
    for (uint32_t i = 0; i < in->count; i++) {
        const struct mlog_entry *e = mlog_entry_at(q->log_store, in->prev_index + 1 + i);
        if (e && e->epoch == in->entries[i].epoch &&
            (e->offset != in->entries[i].base || e->bytes != in->entries[i].bytes.len ||
             e->type != in->entries[i].type))
            return false;
    }
    return true;
}

static bool parse_entries(struct quorum *q, const struct wire_append *w, struct incoming *in,
                          struct arena *arena)
{
    struct slice rest = w->batches;
    struct errmsg msg = {{0}};
    leader_epoch epoch = (leader_epoch)w->prev_term;
    in->entries = arena_zalloc(arena, (w->count + 1) * sizeof *in->entries);
    for (uint32_t i = 0; i < w->count; i++) {
        struct entry_batch *e = &in->entries[i];
        if (entry_batch_parse(rest, e, &msg) != 0) {
            log_warn(q->log, "raft", "a batch of a member is not good", "why=\"%s\"", msg.text);
            return false;
        }
        in->count = i + 1;
        if (e->epoch < epoch || (raft_term)e->epoch > w->term || e->epoch == 0 ||
            (i > 0 && e->base != in->entries[i - 1].base + in->entries[i - 1].offsets))
            return false;
        epoch = e->epoch;
        rest = slice_of(rest.data + e->bytes.len, rest.len - e->bytes.len);
    }
    return rest.len == 0;
}

// One message of the library's for entries [first, first + n): one block, every batch pointing to it.
static void deliver_part(struct quorum *q, const struct incoming *in, uint32_t first, uint32_t n,
                         raft_id from, raft_index leader_commit)
{
    struct raft_message m = {.type = RAFT_APPEND_ENTRIES};
    struct raft_append_entries *a = &m.append_entries;
    a->term = in->term;
    a->prev_log_index = in->prev_index + first;
    a->prev_log_term = first ? (raft_term)in->entries[first - 1].epoch : in->prev_term;
    a->leader_commit = leader_commit;
    if (a->prev_log_index + n < q->raft.commit_index && a->leader_commit > q->raft.commit_index)
        a->leader_commit = q->raft.commit_index; // an old message must not lower the commit index
    a->n_entries = n;
    if (n) {
        size_t total = 0, at = 0;
        for (uint32_t i = 0; i < n; i++)
            total +=
                (entry_prefix_bytes(&in->entries[first + i]) + in->entries[first + i].bytes.len + 7) / 8 * 8;
        uint8_t *block = raft_malloc(total);
        a->entries = raft_calloc(n, sizeof *a->entries);
        MUST(block && a->entries);
        for (uint32_t i = 0; i < n; i++) {
            const struct entry_batch *e = &in->entries[first + i];
            size_t prefix = entry_prefix_bytes(e);
            entry_prefix_write(e, block + at);
            memcpy(block + at + prefix, e->bytes.data, e->bytes.len);
            a->entries[i] = (struct raft_entry){.term = (raft_term)e->epoch,
                                                .type = e->type,
                                                .buf = {block + at, prefix + e->bytes.len},
                                                .batch = block};
            at += (prefix + e->bytes.len + 7) / 8 * 8;
        }
    }
    quorum__deliver(q, &m, from);
}

// Rule 9: entries up to our snapshot are committed; the message begins at the snapshot then.
static void skip_compacted(struct quorum *q, struct incoming *in)
{
    raft_index snapshot = q->raft.trail.snapshot.index;
    if (q->raft.snapshot.installing || in->prev_index > q->raft.trail.offset || in->prev_index >= snapshot)
        return;
    raft_index have = in->prev_index + in->count;
    uint32_t drop = have <= snapshot ? in->count : (uint32_t)(snapshot - in->prev_index);
    in->entries += drop;
    in->count -= drop;
    in->prev_index = snapshot;
    in->prev_term = q->raft.trail.snapshot.term;
}

static void deliver_append(struct quorum *q, struct incoming *in, raft_id from)
{
    uint32_t at = 0;
    do {
        uint32_t n = at < in->count ? 1 : 0;
        while (at + n < in->count && in->entries[at + n].type != RAFT_CHANGE)
            n++;
        raft_index change = n && in->entries[at].type == RAFT_CHANGE ? in->prev_index + 1 + at : 0;
        raft_index pending = q->raft.configuration_uncommitted_index;
        if (change && pending != 0 &&
            pending < change) { // its leader appended it only after that one was committed
            raft_index commit = in->leader_commit > pending ? in->leader_commit : pending;
            deliver_part(q, in, at, 0, from, commit);
        }
        deliver_part(q, in, at, n, from, in->leader_commit);
        at += n;
    } while (at < in->count && !q->close_begun);
}

static int receive_append(struct quorum *q, struct link *l, struct slice body)
{
    struct wire_append w;
    if (!wire_get_append(body, &w))
        return ERR_MALFORMED;
    if (w.prev_index == 0 && w.term < q->raft.current_term)
        return 0; // the library's answer to an old term would read as a success with an index that it never
                  // set
    struct arena arena;
    arena_init(&arena);
    struct incoming all = {.term = w.term,
                           .prev_index = w.prev_index,
                           .prev_term = w.prev_term,
                           .leader_commit = w.leader_commit};
    int err = parse_entries(q, &w, &all, &arena) ? 0 : ERR_MALFORMED;
    struct incoming in = all;
    if (!err && w.term >= q->raft.current_term) {
        q->heard_leader_at = node_clock(q->opts.node);
        q->heard_term = w.term;
        skip_compacted(q, &in);
        if (!q->raft.snapshot.installing && !fits_log(q, &in))
            err = ERR_MALFORMED;
    }
    if (!err)
        deliver_append(q, &in, l->peer->id);
    for (uint32_t i = 0; i < all.count; i++)
        voter_set_unref(all.entries[i].voters);
    arena_fini(&arena);
    return err;
}

// ---- votes
// ----------------------------------------------------------------------------------------------------- Our
// entry of the library's configuration; NULL: we are no member.
static struct raft_server *own_server(struct quorum *q)
{
    for (unsigned i = 0; i < q->raft.configuration.n; i++) {
        if (q->raft.configuration.servers[i].id == q->self)
            return &q->raft.configuration.servers[i];
    }
    return NULL;
}

static bool leader_is_silent(struct quorum *q)
{
    return q->raft.state == RAFT_FOLLOWER && raft_role(&q->raft) != RAFT_VOTER &&
           node_clock(q->opts.node) - q->heard_leader_at > q->raft.election_timeout * 1000ull;
}

// Rule 10: for the length of the call a member counts as a voter, and one without a vote forgets a silent
// leader.
static void receive_vote(struct quorum *q, struct raft_message *m, raft_id from)
{
    struct raft *r = &q->raft;
    char address[RAFT_ADDRESS_BYTES];
    struct raft_server *own = own_server(q);
    int role = own ? own->role : RAFT_VOTER;
    bool silent = leader_is_silent(q);
    raft_id leader = silent ? r->follower_state.current_leader.id : 0;
    raft_term term = r->current_term;
    raft_index conf = r->configuration_committed_index, pending = r->configuration_uncommitted_index;
    quorum_raft_address(from, address);
    m->server_id = from;
    m->server_address = address;
    if (role != RAFT_VOTER)
        own->role = RAFT_VOTER;
    if (silent)
        r->follower_state.current_leader.id = 0;
    quorum__enter(q);
    q->recv(&q->io, m);
    own = own_server(q);
    if (role != RAFT_VOTER && own && conf == r->configuration_committed_index &&
        pending == r->configuration_uncommitted_index)
        own->role = role;
    if (leader && r->state == RAFT_FOLLOWER && r->follower_state.current_leader.id == 0 &&
        r->current_term == term)
        r->follower_state.current_leader.id = leader;
    quorum__leave(q);
}

// ---- the rest
// --------------------------------------------------------------------------------------------------
static void note_answer(struct quorum *q, struct peer *p, const struct raft_append_entries_result *r)
{
    p->last_contact = node_wall(q->opts.node);
    p->capacity = r->capacity;
    p->answered = true;
    if (r->rejected == 0 && r->last_log_index >= mlog_last_index(q->log_store))
        p->last_caught_up = p->last_contact;
}

static int receive_small(struct quorum *q, struct link *l, enum wire_kind kind, struct slice body)
{
    struct raft_message m;
    memset(&m, 0, sizeof m);
    if (!wire_get_small(kind, body, &m))
        return ERR_MALFORMED;
    raft_id from = l->peer->id;
    if (kind == WIRE_VOTE) {
        if (m.request_vote.candidate_id != from)
            return ERR_MALFORMED;
        receive_vote(q, &m, from);
        return 0;
    }
    if (kind == WIRE_APPEND_RESULT) {
        if (q->raft.state == RAFT_LEADER && m.append_entries_result.term == q->raft.current_term &&
            m.append_entries_result.rejected == 0 &&
            m.append_entries_result.last_log_index > mlog_last_index(q->log_store))
            return ERR_MALFORMED; // acknowledges what does not exist
        note_answer(q, l->peer, &m.append_entries_result);
    }
    quorum__deliver(q, &m, from);
    return 0;
}

int quorum__receive(struct quorum *q, struct link *l, enum wire_kind kind, struct slice body)
{
    struct wire_install offer;
    struct wire_snapshot_read read;
    struct wire_snapshot_data data;
    switch (kind) {
    case WIRE_APPEND:
        return receive_append(q, l, body);
    case WIRE_APPEND_RESULT:
    case WIRE_VOTE:
    case WIRE_VOTE_RESULT:
    case WIRE_TIMEOUT_NOW:
        return receive_small(q, l, kind, body);
    case WIRE_INSTALL:
        return wire_get_install(body, &offer) ? quorum__fetch_offer(q, l, &offer) : ERR_MALFORMED;
    case WIRE_SNAPSHOT_READ:
        return wire_get_snapshot_read(body, &read) ? quorum__serve_snapshot(q, l, &read) : ERR_MALFORMED;
    case WIRE_SNAPSHOT_DATA:
        return wire_get_snapshot_data(body, &data) ? quorum__fetch_data(q, l, &data) : ERR_MALFORMED;
    default:
        return ERR_MALFORMED;
    }
}
