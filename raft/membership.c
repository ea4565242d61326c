// SPDX-License-Identifier: Apache-2.0
// Adding, removing and moving voters, one change at a time (rule 21), and handing leadership over.
//
//   add:    ADD (a server without log or vote) -> PROMOTE (caught up, then a voter) -> done
//                                                   | did not catch up: UNDO (taken out again) -> ERR_TIMEOUT
//   remove: REMOVE -> done; the active controller hands leadership over instead, its successor removes it
//   when asked again endpoints: a KRAFT_VOTERS batch that is no configuration entry
//
// Each step is over when libraft has no change pending and no configuration entry is uncommitted; leadership
// lost: outcome unknown.
#include <stdarg.h>
#include <stdio.h>
#include "core/base/mem.h"
#include "raft/quorum_impl.h"

static void answer(struct quorum *q, quorum_change_cb cb, void *data, int err, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
static void answer(struct quorum *q, quorum_change_cb cb, void *data, int err, const char *fmt, ...)
{
    struct change_answer *a = mem_zalloc(sizeof *a);
    va_list args;
    a->cb = cb;
    a->data = data;
    a->err = err;
    va_start(args, fmt);
    (void)vsnprintf(a->why, sizeof a->why, fmt, args);
    va_end(args);
    list_add_tail(&q->change_answers, &a->link);
    quorum__publish_soon(q);
}

void quorum__change_answer(struct quorum *q, int err, const char *why)
{
    struct change *c = &q->change;
    c->step = CHANGE_NONE;
    answer(q, c->cb, c->data, err, "%s", why);
}

static int translate(int rv)
{
    switch (rv) {
    case 0:
        return 0;
    case RAFT_NOTLEADER:
        return ERR_NOTLEADER;
    case RAFT_CANTCHANGE:
        return ERR_BUSY;
    case RAFT_DUPLICATEID:
    case RAFT_DUPLICATEADDRESS:
        return ERR_EXISTS;
    case RAFT_NOTFOUND:
        return ERR_NOTFOUND;
    case RAFT_NOSPACE:
        return ERR_NOSPACE;
    default:
        return ERR_STATE;
    }
}

static bool library_is_changing(const struct quorum *q)
{
    return q->raft.legacy.change != NULL || q->raft.configuration_uncommitted_index != 0;
}

// Calls libraft for the step; false: answered already.
static bool step(struct quorum *q, enum change_step next)
{
    struct change *c = &q->change;
    char address[RAFT_ADDRESS_BYTES];
    int rv = RAFT_INVALID;
    quorum_raft_address(c->server.id, address);
    memset(&c->request, 0, sizeof c->request);
    c->step = next;
    quorum__enter(q);
    if (next == CHANGE_ADD)
        rv = raft_add(&q->raft, &c->request, c->server.id, address, NULL);
    else if (next == CHANGE_PROMOTE)
        rv = raft_assign(&q->raft, &c->request, c->server.id, RAFT_VOTER, NULL);
    else
        rv = raft_remove(&q->raft, &c->request, c->server.id, NULL);
    if (rv && next == CHANGE_PROMOTE && q->raft.legacy.change == &c->request)
        q->raft.legacy.change = NULL; // the library leaves it behind
    if (rv)
        c->step = CHANGE_NONE;
    quorum__leave(q);
    if (rv)
        answer(q, c->cb, c->data, translate(rv), "%s", raft_strerror(rv));
    return rv == 0;
}

static void step_is_over(struct quorum *q)
{
    struct change *c = &q->change;
    const struct quorum_server *now = voter_set_find(quorum__voters(q), c->server.id);
    switch (c->step) {
    case CHANGE_ADD:
        (void)step(q, CHANGE_PROMOTE);
        return;
    case CHANGE_PROMOTE:
        if (now && now->role == RAFT_VOTER)
            quorum__change_answer(q, 0, "added");
        else
            (void)step(q, CHANGE_UNDO);
        return;
    case CHANGE_UNDO:
        quorum__change_answer(q, ERR_TIMEOUT,
                              "the new voter did not catch up with the log; it was taken out again");
        return;
    case CHANGE_REMOVE:
        quorum__change_answer(q, now ? ERR_STATE : 0, now ? "it is still a member" : "removed");
        return;
    case CHANGE_ENDPOINTS:
    case CHANGE_NONE:
        return;
    }
}

void quorum__change_settle(struct quorum *q)
{
    struct change *c = &q->change;
    if (c->step == CHANGE_NONE || c->step == CHANGE_ENDPOINTS || q->depth)
        return;
    if (q->raft.state != RAFT_LEADER) {
        quorum__change_answer(
            q, ERR_CANCELED, "leadership was lost meanwhile: the quorum's description tells what came of it");
        return;
    }
    if (!library_is_changing(q))
        step_is_over(q);
}

// What every change asks for. False: answered.
static bool may_change(struct quorum *q, quorum_change_cb cb, void *data)
{
    if (!q->dynamic)
        answer(q, cb, data, ERR_STATE,
               "the voters of a static quorum (controller.quorum.voters) cannot be changed while it runs");
    else if (!q->active || q->closing)
        answer(q, cb, data, ERR_NOTLEADER, "this controller is not the active one");
    else if (q->change.step != CHANGE_NONE || library_is_changing(q) || raft_transferee(&q->raft) != 0)
        answer(q, cb, data, ERR_BUSY, "another change of the voters is under way");
    else
        return true;
    return false;
}

static void begin(struct quorum *q, const struct quorum_voter *v, quorum_change_cb cb, void *data)
{
    q->change.server = (struct quorum_server){
        .id = quorum_raft_id(v->id, v->directory_id, true), .role = RAFT_SPARE, .voter = *v};
    q->change.cb = cb;
    q->change.data = data;
}

void quorum_add_voter(struct quorum *q, const struct quorum_voter *voter, quorum_change_cb cb, void *data)
{
    if (!may_change(q, cb, data))
        return;
    const struct quorum_server *same = voter_set_find_node(quorum__voters(q), voter->id);
    raft_id id = quorum_raft_id(voter->id, voter->directory_id, true);
    if (same && same->role == RAFT_VOTER) {
        answer(q, cb, data, ERR_EXISTS, "node %d is a voter already%s", (int)voter->id,
               same->id == id ? "" : " (with another directory id: remove that one first)");
        return;
    }
    if (voter->id < 0 || voter->endpoints_count == 0 || voter->endpoints[0].port == 0) {
        answer(q, cb, data, ERR_INVALID, "a voter needs a node id and an endpoint");
        return;
    }
    if (quorum__voters(q)->count >= QUORUM_SERVERS_MAX) {
        answer(q, cb, data, ERR_TOO_LARGE, "the quorum has %d members already", QUORUM_SERVERS_MAX);
        return;
    }
    begin(q, voter, cb, data);
    if (same && same->id == id)
        (void)step(q, CHANGE_PROMOTE); // left over from an attempt that was cut off
    else
        (void)step(q, CHANGE_ADD);
}

void quorum_remove_voter(struct quorum *q, node_id id, struct uuid directory_id, quorum_change_cb cb,
                         void *data)
{
    if (!may_change(q, cb, data))
        return;
    const struct voter_set *set = quorum__voters(q);
    const struct quorum_server *s = voter_set_find(set, quorum_raft_id(id, directory_id, true));
    if (!s) {
        answer(q, cb, data, ERR_NOTFOUND, "node %d with that directory id is not a voter", (int)id);
    } else if (s->role == RAFT_VOTER && voter_set_voters(set) == 1) {
        answer(q, cb, data, ERR_STATE, "node %d is the last voter: add another one first", (int)id);
    } else if (s->id == q->self) {
        (void)quorum_transfer_leadership(q, -1);
        answer(q, cb, data, ERR_NOTLEADER,
               "node %d is the active controller: it hands over first; ask the new one again", (int)id);
    } else {
        begin(q, &s->voter, cb, data);
        (void)step(q, CHANGE_REMOVE);
    }
}

// ---- endpoints
// -------------------------------------------------------------------------------------------------
struct endpoint_change {
    struct quorum *q;    // owner
    quorum_change_cb cb; // answer
    void *data;          // its argument
};

static void endpoints_done(void *data, int err, log_offset base)
{
    struct endpoint_change *e = data;
    (void)base;
    answer(e->q, e->cb, e->data, err, "%s", err ? "leadership was lost meanwhile" : "updated");
    mem_free(e);
}

void quorum_update_voter(struct quorum *q, const struct quorum_voter *voter, quorum_change_cb cb, void *data)
{
    if (!may_change(q, cb, data))
        return;
    struct voter_set *set = quorum__voters(q);
    const struct quorum_server *s = voter_set_find(set, quorum_raft_id(voter->id, voter->directory_id, true));
    if (!s) {
        answer(q, cb, data, ERR_NOTFOUND, "node %d with that directory id is not a voter", (int)voter->id);
        return;
    }
    struct voter_set *one = voter_set_new(1);
    one->servers[0] = (struct quorum_server){.id = s->id, .role = s->role, .voter = *voter};
    struct voter_set *next = voter_set_with_endpoints(set, one);
    struct entry_origin o = {.base = q->log_store->end,
                             .epoch = (leader_epoch)q->raft.current_term,
                             .now = node_wall(q->opts.node),
                             .leader = q->opts.id,
                             .voters = next};
    size_t size;
    uint8_t *batch = entry_make_endpoints(&o, &size);
    struct endpoint_change *e = mem_zalloc(sizeof *e);
    *e = (struct endpoint_change){q, cb, data};
    int err = quorum__submit_batch(q, batch, size, endpoints_done, e);
    if (err) {
        mem_free(e);
        answer(q, cb, data, err, "%s", err_text(err));
    }
    voter_set_unref(one);
    voter_set_unref(next);
}

// ---- leadership
// ------------------------------------------------------------------------------------------------
// The most advanced voter that is connected, other than `but`; 0: none.
static raft_id most_advanced(struct quorum *q, raft_id but)
{
    raft_id id = 0;
    raft_index best = 0;
    const struct voter_set *set = quorum__voters(q);
    for (uint32_t i = 0; set && i < set->count; i++) {
        raft_index match = 0;
        const struct quorum_server *s = &set->servers[i];
        const struct peer *p = transport_peer(q, s->id);
        if (s->role != RAFT_VOTER || s->id == but || !p || !transport_connected(p) ||
            raft_match_index(&q->raft, s->id, &match) != 0)
            continue;
        if (id == 0 || match > best) {
            id = s->id;
            best = match;
        }
    }
    return id;
}

static int transfer_to(struct quorum *q, raft_id id)
{
    if (q->raft.state != RAFT_LEADER)
        return ERR_NOTLEADER;
    if (q->raft.transfer != NULL || raft_transferee(&q->raft) != 0)
        return ERR_BUSY;
    memset(&q->transfer, 0, sizeof q->transfer);
    quorum__enter(q);
    int rv = raft_transfer(&q->raft, &q->transfer, id, NULL);
    quorum__leave(q);
    return translate(rv);
}

int quorum_transfer_leadership(struct quorum *q, node_id to)
{
    if (q->raft.state != RAFT_LEADER)
        return ERR_NOTLEADER;
    raft_id id;
    if (to >= 0) {
        const struct quorum_server *s = voter_set_find_node(quorum__voters(q), to);
        if (!s || s->role != RAFT_VOTER || s->id == q->self)
            return ERR_NOTFOUND;
        id = s->id;
    } else {
        id = most_advanced(q, q->replaced_peer);
    }
    return id ? transfer_to(q, id) : ERR_NOTFOUND;
}

void quorum__replaced_settle(struct quorum *q)
{
    if (q->replaced_peer == 0)
        return;
    if (q->raft.state != RAFT_LEADER) {
        q->replaced_peer = 0; // whoever leads next begins with an open mind
        return;
    }
    raft_id id = most_advanced(q, q->replaced_peer);
    if (id != 0 && transfer_to(q, id) == 0)
        log_info(q->log, "raft", "another voter shall lead: one came back on a replaced disk", "id=%016llx",
                 (unsigned long long)q->replaced_peer);
}

// ---- description
// -----------------------------------------------------------------------------------------------
static void describe_one(struct quorum *q, const struct quorum_server *s, struct quorum_member *m)
{
    const struct peer *p = transport_peer(q, s->id);
    raft_index match = 0;
    *m = (struct quorum_member){.voter = s->voter,
                                .is_voter = s->role == RAFT_VOTER,
                                .log_end_offset = -1,
                                .last_fetch_ms = -1,
                                .last_caught_up_ms = -1};
    if (s->id == q->self) {
        m->log_end_offset = q->log_store->synced_end;
        m->last_fetch_ms = m->last_caught_up_ms = node_wall(q->opts.node);
        return;
    }
    if (q->raft.state != RAFT_LEADER)
        return;
    if (raft_match_index(&q->raft, s->id, &match) == 0 && match > 0)
        m->log_end_offset = mlog_end_of_index(q->log_store, match);
    if (p) {
        m->last_fetch_ms = p->last_contact;
        m->last_caught_up_ms = p->last_caught_up;
    }
}

void quorum_describe(const struct quorum *cq, struct quorum_description *out)
{
    struct quorum *q = (struct quorum *)(uintptr_t)cq;
    const struct voter_set *set = quorum__voters(q);
    out->leader = quorum_leader(q);
    out->term = quorum_term(q);
    out->high_watermark = quorum_high_watermark(q);
    out->kraft_version = q->dynamic ? 1 : 0;
    out->members_count = 0;
    for (uint32_t i = 0; set && i < set->count && out->members_count < QUORUM_SERVERS_MAX; i++) {
        uint32_t at = out->members_count++;
        while (at > 0 && out->members[at - 1].voter.id > set->servers[i].voter.id) {
            out->members[at] = out->members[at - 1];
            at--;
        }
        describe_one(q, &set->servers[i], &out->members[at]);
    }
}
