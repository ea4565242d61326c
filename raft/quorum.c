// SPDX-License-Identifier: Apache-2.0
// The quorum's heart: creation, the bracket around every call into libraft, and telling the owner what came
// of it.
#include "raft/quorum.h"

#include "core/base/mem.h"
#include "core/metadata/image.h"
#include "core/metadata/replay.h"
#include "raft/quorum_impl.h"

#define ELECTION_TIMEOUT_MS_DEFAULT 1000
#define RESERVE_BYTES_DEFAULT (16ull << 20)
#define OUTSTANDING_BYTES_DEFAULT (2u << 20)

// ---- configurations of the log
// ---------------------------------------------------------------------------------
struct voter_set *quorum__voters(const struct quorum *q)
{
    return q->sets_count ? q->sets[q->sets_count - 1].set : NULL;
}

const struct set_at *quorum__change_at(const struct quorum *q, raft_index upto)
{
    for (uint32_t i = q->sets_count; i > 0; i--) {
        if (q->sets[i - 1].change && q->sets[i - 1].index <= upto)
            return &q->sets[i - 1];
    }
    return NULL;
}

const struct set_at *quorum__set_at(const struct quorum *q, raft_index upto)
{
    for (uint32_t i = q->sets_count; i > 0; i--) {
        if (q->sets[i - 1].index <= upto)
            return &q->sets[i - 1];
    }
    return NULL;
}

void quorum__sets_push(struct quorum *q, raft_index index, bool change, struct voter_set *set)
{
    if (q->sets_count == q->sets_cap) {
        q->sets_cap = q->sets_cap ? q->sets_cap * 2 : 8;
        q->sets = mem_realloc(q->sets, q->sets_cap * sizeof *q->sets);
    }
    struct voter_set *known = quorum__voters(q);
    struct voter_set *now = change || !known ? voter_set_ref(set) : voter_set_with_endpoints(known, set);
    q->sets[q->sets_count++] = (struct set_at){index, change, now};
    q->voters_changed = true;
}

void quorum__sets_cut(struct quorum *q, raft_index from)
{
    while (q->sets_count > 1 && q->sets[q->sets_count - 1].index >= from) {
        voter_set_unref(q->sets[--q->sets_count].set);
        q->voters_changed = true;
    }
}

// Keeps the newest at or below `upto` and all after it. A configuration entry stays findable.
void quorum__sets_trim(struct quorum *q, raft_index upto)
{
    uint32_t keep = 0;
    for (uint32_t i = 0; i < q->sets_count; i++) {
        if (q->sets[i].index <= upto && q->sets[i].change)
            keep = i;
    }
    for (uint32_t i = 0; i < keep; i++)
        voter_set_unref(q->sets[i].set);
    if (keep)
        memmove(q->sets, q->sets + keep, (q->sets_count - keep) * sizeof *q->sets);
    q->sets_count -= keep;
}

void quorum__sets_reset(struct quorum *q, raft_index index, struct voter_set *set)
{
    while (q->sets_count)
        voter_set_unref(q->sets[--q->sets_count].set);
    quorum__sets_push(q, index, true, set);
}

// ---- the bracket
// -----------------------------------------------------------------------------------------------
void quorum__enter(struct quorum *q)
{
    MUST(q->depth == 0);
    q->depth = 1;
    mlog_hold(q->log_store, true);
}

static void check_leadership(struct quorum *q)
{
    raft_id leader = 0;
    const char *address;
    raft_leader(&q->raft, &leader, &address);
    if (q->raft.state == RAFT_LEADER)
        leader = q->self; // the library says nobody while it transfers
    else if (q->heard_term != q->raft.current_term)
        leader = 0; // the one it names led an older term
    bool turned = q->seen_state != q->raft.state || q->seen_term != q->raft.current_term;
    if (turned) {
        log_info(q->log, "raft", "state of the quorum member", "state=%s term=%llu",
                 raft_state_name(q->raft.state), q->raft.current_term);
        q->active = false;
        q->barrier_term = 0;
        quorum__take_over_stop(q);
    }
    q->seen_state = q->raft.state;
    q->seen_term = q->raft.current_term;
    q->seen_leader = leader;
    if (q->raft.state == RAFT_LEADER && q->barrier_term == q->raft.current_term && q->barrier_index != 0 &&
        q->raft.last_applied >= q->barrier_index)
        q->active = !q->closing;
}

// End offset of what is applied and synced here (rule 19): never lower than before.
static void advance_high_watermark(struct quorum *q)
{
    raft_index index =
        q->raft.last_applied < q->log_store->synced_index ? q->raft.last_applied : q->log_store->synced_index;
    log_offset end = mlog_end_of_index(q->log_store, index);
    if (end > q->high_watermark) {
        q->high_watermark = end;
        quorum__publish_soon(q);
    }
}

// Idle no-ops count as well: they fill log and memory like anything else.
static void count_applied(struct quorum *q)
{
    if (q->counted < q->log_store->base.index)
        q->counted = q->log_store->base.index;
    while (q->counted < q->raft.last_applied) {
        const struct mlog_entry *e = mlog_entry_at(q->log_store, ++q->counted);
        q->bytes_since_snapshot += e ? e->bytes : 0;
    }
}

void quorum__leave(struct quorum *q)
{
    MUST(q->depth == 1);
    if (!q->raft.snapshot.installing)
        MUST(raft_last_index(&q->raft) == mlog_last_index(q->log_store));
    MUST(q->term_to_store == 0);
    quorum__image_catch_up(q);
    count_applied(q);
    mlog_hold(q->log_store, false);
    q->depth = 0;
    check_leadership(q);
    quorum__proposals_settle(q);
    quorum__change_settle(q);
    quorum__timeout_now_settle(q);
    advance_high_watermark(q);
    if (q->voters_changed) {
        transport_update(q);
        quorum__publish_soon(q);
    }
    if (q->told_active != q->active || q->told_leader != q->seen_leader || q->told_term != q->seen_term)
        quorum__publish_soon(q);
    if (q->raft.state == RAFT_LEADER && q->barrier_term != q->raft.current_term && !q->closing)
        quorum__barrier(q); // a bracket of its own
    if (q->closing)
        quorum__close_settle(q);
}

void quorum__note_space(struct quorum *q)
{
    uint64_t total;
    if (q->opts.fs->ops->space(q->opts.fs, q->dir, &q->free_bytes, &total) != 0)
        q->free_bytes = UINT64_MAX;
    uint64_t kib = q->free_bytes / 1024;
    q->io.capacity = kib > UINT16_MAX ? UINT16_MAX : (unsigned short)kib;
}

// ---- telling the owner
// -----------------------------------------------------------------------------------------
static node_id node_of(const struct quorum *q, raft_id id)
{
    if (id == 0)
        return -1;
    if (id == q->self)
        return q->opts.id;
    const struct quorum_server *s = voter_set_find(quorum__voters(q), id);
    const struct peer *p = transport_peer((struct quorum *)(uintptr_t)q, id);
    return s ? s->voter.id : p ? p->node_id : -1;
}

static void tell_image(struct quorum *q)
{
    if (q->told_image == q->image || image_offset(q->image) < 0)
        return;
    image_unref(q->told_image);
    q->told_image = image_ref(q->image);
    if (q->opts.hooks.on_image)
        q->opts.hooks.on_image(q->opts.hooks.data, q->told_image, image_offset(q->told_image) + 1,
                               image_epoch(q->told_image));
}

static void answer_all(struct quorum *q)
{
    struct list done;
    list_init(&done);
    list_splice_tail(&done, &q->answers);
    for (struct list_node *n; (n = list_pop(&done)) != NULL;) {
        struct proposal *p = LIST_ENTRY(n, struct proposal, link);
        if (p->cb)
            p->cb(p->data, p->err, p->base);
        mem_free(p);
    }
    list_splice_tail(&done, &q->change_answers);
    for (struct list_node *n; (n = list_pop(&done)) != NULL;) {
        struct change_answer *a = LIST_ENTRY(n, struct change_answer, link);
        if (a->cb)
            a->cb(a->data, a->err, a->why);
        mem_free(a);
    }
}

static void publish(struct node_task *t)
{
    struct quorum *q = LIST_ENTRY(t, struct quorum, publish_task);
    q->publish_posted = false;
    if (q->stopped) {
        answer_all(q);
        if (q->opts.hooks.stopped)
            q->opts.hooks.stopped(q->opts.hooks.data); // may free the quorum
        return;
    }
    tell_image(q);
    if (q->told_high_watermark != q->high_watermark) {
        q->told_high_watermark = q->high_watermark;
        if (q->opts.hooks.on_high_watermark)
            q->opts.hooks.on_high_watermark(q->opts.hooks.data, q->high_watermark);
    }
    answer_all(q);
    if (q->voters_changed) {
        q->voters_changed = false;
        if (q->opts.hooks.on_voters)
            q->opts.hooks.on_voters(q->opts.hooks.data);
    }
    if (!q->told_any || q->told_active != q->active || q->told_leader != q->seen_leader ||
        q->told_term != q->seen_term) {
        q->told_any = true;
        q->told_active = q->active;
        q->told_leader = q->seen_leader;
        q->told_term = q->seen_term;
        if (q->opts.hooks.on_leadership)
            q->opts.hooks.on_leadership(q->opts.hooks.data, q->active, node_of(q, q->seen_leader),
                                        (leader_epoch)q->seen_term);
    }
}

void quorum__publish_soon(struct quorum *q)
{
    if (q->publish_posted)
        return;
    q->publish_posted = true;
    q->publish_task.run = publish;
    node_loop_post(q->opts.loop, &q->publish_task);
}

// ---- creation
// --------------------------------------------------------------------------------------------------
static void *heap_alloc(void *data, size_t size)
{
    return (void)data, mem_alloc(size);
}
static void heap_free(void *data, void *p)
{
    (void)data, mem_free(p);
}
static void *heap_calloc(void *data, size_t n, size_t size)
{
    return (void)data, mem_calloc(n, size);
}
static void *heap_realloc(void *data, void *p, size_t size)
{
    return (void)data, mem_realloc(p, size);
}
static void *heap_aligned(void *data, size_t align, size_t size)
{
    return (void)data, mem_aligned(align, size);
}
static void heap_aligned_free(void *data, size_t align, void *p)
{
    (void)data, (void)align, mem_free(p);
}

// Memory of libraft comes from ours. The same for every quorum of the process; libraft keeps the pointer and
// never writes to it.
static void use_our_heap(void)
{
    static const struct raft_heap heap = {NULL,         heap_alloc,   heap_free,        heap_calloc,
                                          heap_realloc, heap_aligned, heap_aligned_free};
    raft_heap_set((struct raft_heap *)(uintptr_t)&heap);
}

static int check_options(const struct quorum_opts *o, struct errmsg *msg)
{
    if (o->id < 0)
        return err_set(msg, ERR_INVALID, "node.id must not be negative");
    if (o->static_voters_count > QUORUM_SERVERS_MAX)
        return err_set(msg, ERR_INVALID, "more than %d voters", QUORUM_SERVERS_MAX);
    if (o->election_timeout_ms != 0 && o->election_timeout_ms < 20)
        return err_set(msg, ERR_INVALID, "controller.quorum.election.timeout.ms must be at least 20");
    if (strlen(o->cluster_id) >= WIRE_CLUSTER_BYTES)
        return err_set(msg, ERR_INVALID, "the cluster id is too long");
    return 0;
}

static struct quorum *quorum_new(const struct quorum_opts *o)
{
    struct quorum *q = mem_zalloc(sizeof *q);
    q->opts = *o;
    q->dir = mem_strdup(o->dir);
    q->cluster_id = mem_strdup(o->cluster_id);
    q->dynamic = o->static_voters == NULL;
    q->self = quorum_raft_id(o->id, o->directory_id, q->dynamic);
    quorum_raft_address(q->self, q->address);
    q->log = o->log;
    q->state.voted = -1;
    q->told_leader = 0;
    q->high_watermark = q->told_high_watermark = -1;
    list_init(&q->appends);
    list_init(&q->proposals);
    list_init(&q->answers);
    list_init(&q->change_answers);
    arena_init(&q->bootstrap_arena);
    arena_init(&q->replay_arena);
    transport_init(q);
    return q;
}

// Rule 1.
static void configure(struct quorum *q)
{
    unsigned election =
        q->opts.election_timeout_ms ? q->opts.election_timeout_ms : ELECTION_TIMEOUT_MS_DEFAULT;
    unsigned heartbeat = election / 10;
    raft_set_capacity_threshold(&q->raft, 0);
    raft_set_pre_vote(&q->raft, true);
    raft_set_election_timeout(&q->raft, election);
    raft_set_heartbeat_timeout(&q->raft, heartbeat);
    raft_set_max_inflight_entries(&q->raft, RAFT_INFLIGHT_ENTRIES);
    raft_set_max_catch_up_round_duration(&q->raft, RAFT_CATCH_UP_ROUND_MS);
    raft_set_snapshot_threshold(&q->raft, UINT32_MAX);
    raft_set_snapshot_trailing(&q->raft, 128);
    q->tick_ms = heartbeat;
}

static int start_library(struct quorum *q, struct errmsg *msg)
{
    quorum__io_init(q);
    quorum__fsm_init(q);
    MUST(q->self != 0);
    int rv = raft_init(&q->raft, &q->io, &q->fsm, q->self, q->address);
    if (rv)
        return err_set(msg, ERR_STATE, "libraft: %s", raft_strerror(rv));
    q->raft_live = true;
    configure(q);
    q->seen_state = RAFT_UNAVAILABLE;
    q->heard_leader_at = q->snapshot_at = node_clock(q->opts.node);
    quorum__note_space(q);
    quorum__enter(q);
    rv = raft_start(&q->raft);
    quorum__leave(q);
    return rv ? err_set(msg, ERR_STATE, "libraft: %s", raft_errmsg(&q->raft)) : 0;
}

int quorum_create(const struct quorum_opts *opts, struct quorum **out, struct errmsg *msg)
{
    int err = check_options(opts, msg);
    if (err)
        return err;
    use_our_heap();
    struct quorum *q = quorum_new(opts);
    if (!q->opts.reserve_bytes)
        q->opts.reserve_bytes = RESERVE_BYTES_DEFAULT;
    if (!q->opts.outstanding_bytes)
        q->opts.outstanding_bytes = OUTSTANDING_BYTES_DEFAULT;
    err = quorum__load(q, msg);
    if (!err)
        err = voter_memory_load(q, msg);
    if (!err)
        err = voter_memory_check(q, q->opts.id, q->opts.directory_id, q->opts.disk_replaced, msg);
    if (err) {
        q->raft_live = false;
        quorum_destroy(q);
        return err;
    }
    err = start_library(q, msg);
    if (err)
        return err; // libraft's memory cannot be given back safely; the program ends on this
    q->voters_changed = true;
    transport_update(q);
    quorum__publish_soon(q);
    *out = q;
    return 0;
}

void quorum_destroy(struct quorum *q)
{
    node_timer_stop(q->opts.loop, &q->tick_timer);
    node_timer_stop(q->opts.loop, &q->takeover_timer);
    node_timer_stop(q->opts.loop, &q->stop_timer);
    mlog_free(q->log_store);
    transport_fini(q);
    while (q->sets_count)
        voter_set_unref(q->sets[--q->sets_count].set);
    voter_set_unref(q->current_set);
    voter_set_unref(q->install_info.voters);
    for (size_t i = 0; q->load_entries && i < q->load_count; i++)
        raft_free(q->load_entries[i].buf.base);
    raft_free(q->load_entries);
    image_builder_drop(q->builder);
    image_unref(q->image);
    image_unref(q->told_image);
    image_unref(q->install_image);
    arena_fini(&q->bootstrap_arena);
    arena_fini(&q->replay_arena);
    mem_free(q->bootstrap);
    mem_free(q->sets);
    mem_free(q->snapshots);
    mem_free(q->dir);
    mem_free(q->cluster_id);
    mem_free(q);
}
