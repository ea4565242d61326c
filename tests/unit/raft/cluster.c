// SPDX-License-Identifier: Apache-2.0
// The quorum under test: starts and stops its members, proposes, and compares what they say at every step.
//
// Longer than other files because every check of a step reads the same members.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/metadata/image.h"
#include "core/metadata/snapshot.h"
#include "core/protocol/metadata_record.h"
#include "core/record/batch.h"
#include "raft/quorum_impl.h"
#include "tests/unit/raft/cluster.h"

#define CLUSTER_ID "4L6g3nShT-eMCtK--X86sw"

// ---- checks
// ----------------------------------------------------------------------------------------------------
static void check_batch(struct cluster *c, const struct server *s, const uint8_t *b)
{
    log_offset base = batch_base_offset(b);
    size_t lo = 0, hi = c->batches_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (c->batches[mid].base < base)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < c->batches_count && c->batches[lo].base == base) {
        if (c->batches[lo].crc != batch_crc(b) || c->batches[lo].epoch != batch_leader_epoch(b))
            fail_msg("server %u: other bytes at committed offset %lld", s->number, (long long)base);
        return;
    }
    if (lo > 0 && c->batches[lo - 1].next > base)
        fail_msg("server %u: offsets overlap at %lld", s->number, (long long)base);
    if (c->batches_count == c->batches_cap) {
        c->batches_cap = c->batches_cap ? c->batches_cap * 2 : 256;
        c->batches = realloc(c->batches, c->batches_cap * sizeof *c->batches);
    }
    memmove(c->batches + lo + 1, c->batches + lo, (c->batches_count - lo) * sizeof *c->batches);
    c->batches[lo] = (struct seen_batch){base, batch_next_offset(b), batch_crc(b), batch_leader_epoch(b)};
    c->batches_count++;
}

// Committed bytes of this server against everyone's: the same batch at every offset, offsets dense.
static void check_log(struct server *s)
{
    const struct set_at *change = quorum__change_at(s->q, s->q->raft.last_applied);
    if (change && s->q->raft.configuration_committed_index < change->index)
        fail_msg("server %u: the configuration at index %llu is not noted as committed", s->number,
                 change->index);
    log_offset hw = quorum_high_watermark(s->q);
    if (hw < s->high_watermark)
        fail_msg("server %u: high watermark fell from %lld to %lld", s->number, (long long)s->high_watermark,
                 (long long)hw);
    s->high_watermark = hw;
    if (s->checked < quorum_log_start(s->q))
        s->checked = quorum_log_start(s->q);
    while (s->checked < hw) {
        struct rope r;
        rope_init(&r);
        int err = quorum_read(s->q, s->checked, 65536, &r);
        if (err)
            fail_msg("server %u: read at %lld: %s", s->number, (long long)s->checked, err_text(err));
        size_t len = r.len;
        uint8_t *bytes = malloc(len);
        assert_int_equal(rope_flatten(&r, bytes), 0);
        rope_clear(&r);
        struct batch_iter it = batch_iter_of(slice_of(bytes, len));
        while (batch_iter_next(&it)) {
            if (s->checked != batch_base_offset(it.batch))
                fail_msg("server %u: gap before offset %lld", s->number,
                         (long long)batch_base_offset(it.batch));
            check_batch(s->c, s, it.batch);
            s->checked = batch_next_offset(it.batch);
        }
        free(bytes);
    }
}

static void check_image(struct server *s, const struct image *img, log_offset end)
{
    struct cluster *c = s->c;
    if (image_offset(img) + 1 != end)
        fail_msg("server %u: image of another offset", s->number);
    if (c->bytes_proposed > 500000 && end % 64 != 0)
        return;
    struct image_hash h = image_hash_of(img);
    for (size_t i = c->images_count; i > 0 && i + 400 > c->images_count; i--) {
        if (c->images[i - 1].end != end)
            continue;
        if (c->images[i - 1].low != h.low || c->images[i - 1].high != h.high)
            fail_msg("server %u: another image at offset %lld", s->number, (long long)end);
        return;
    }
    if (c->images_count == c->images_cap) {
        c->images_cap = c->images_cap ? c->images_cap * 2 : 256;
        c->images = realloc(c->images, c->images_cap * sizeof *c->images);
    }
    c->images[c->images_count++] = (struct seen_image){end, h.low, h.high};
}

// ---- hooks
// -----------------------------------------------------------------------------------------------------
static void on_image(void *data, struct image *image, log_offset end, leader_epoch epoch)
{
    struct server *s = data;
    (void)epoch;
    if (end < s->image_end)
        fail_msg("server %u: image went back from %lld to %lld", s->number, (long long)s->image_end,
                 (long long)end);
    s->image_end = end;
    check_image(s, image, end);
    if (s->q)
        check_log(s);
}

static void on_leadership(void *data, bool active, node_id leader, leader_epoch term)
{
    struct server *s = data;
    struct cluster *c = s->c;
    if (c->loud)
        printf("%8.3f server %u: active=%d leader=%d term=%d\n", (double)world_now(c->w) / 1e6, s->number,
               active, leader, term);
    if (term < s->term)
        fail_msg("server %u: term went back from %d to %d", s->number, (int)s->term, (int)term);
    s->active = active;
    s->leader = leader;
    s->term = term;
    if (leader >= 0 && !active && leader != (node_id)s->number && c->leader_of_term[term] != 0 &&
        c->leader_of_term[term] != leader + 1)
        fail_msg("server %u: node %d is said to lead term %d of another", s->number, (int)leader, (int)term);
    if (active) {
        assert_true(term < 4096);
        if (c->leader_of_term[term] != 0 && c->leader_of_term[term] != (int)s->number + 1)
            fail_msg("two leaders in term %d", (int)term);
        c->leader_of_term[term] = (int)s->number + 1;
        if (s->image_end < mlog_end_of_index(s->q->log_store, s->q->barrier_index))
            fail_msg("server %u: active before the image of its own barrier", s->number);
        assert_int_equal(leader, s->number);
    }
}

static void on_stopped(void *data)
{
    struct server *s = data;
    s->stopped = true;
    quorum_destroy(s->q);
    s->q = NULL;
}

// ---- members
// ---------------------------------------------------------------------------------------------------
struct quorum_voter cluster_voter(const struct cluster *c, unsigned i)
{
    struct quorum_voter v = {.id = (node_id)i, .endpoints_count = 1, .kraft_version_max = 1};
    if (c->opts.dynamic)
        v.directory_id = c->servers[i].directory;
    (void)snprintf(v.endpoints[0].name, sizeof v.endpoints[0].name, "CONTROLLER");
    (void)snprintf(v.endpoints[0].host, sizeof v.endpoints[0].host, "c%u", i);
    v.endpoints[0].port = CLUSTER_PORT;
    return v;
}

static void format(struct server *s)
{
    struct cluster *c = s->c;
    struct quorum_voter voters[CLUSTER_MAX];
    struct errmsg msg = {{0}};
    uint8_t value[64];
    struct metadata_record r;
    metadata_record_init(&r, METADATA_FEATURE_LEVEL, 0);
    r.body.feature_level.name = slice_str("metadata.version");
    r.body.feature_level.feature_level = 27;
    size_t size = metadata_record_size(&r);
    assert_true(size <= sizeof value);
    assert_int_equal(metadata_record_encode_into(&r, value), 0);
    struct slice bootstrap = slice_of(value, size);
    for (unsigned i = 0; i < c->opts.voters; i++)
        voters[i] = cluster_voter(c, i);
    struct raft_format f = {.dynamic = c->opts.dynamic,
                            .voters = voters,
                            .voters_count =
                                c->opts.dynamic && s->number < c->opts.voters ? c->opts.voters : 0,
                            .values = &bootstrap,
                            .values_count = 1,
                            .now = 1};
    struct vfs *fs = world_host_fs(s->host);
    (void)fs->ops->mkdir(fs, "data");
    int err = raft_format_write(fs, CLUSTER_DIR, &f, &msg);
    if (err)
        fail_msg("format: %s", msg.text);
    assert_int_equal(fs->ops->sync_fs(fs, "data"), 0);
    s->formatted = true;
}

static int accept_magic(struct node_conn *conn, void *data)
{
    struct server *s = data;
    return s->q ? quorum_accept(s->q, conn) : ERR_STATE;
}

static void start_inside(void *data)
{
    struct server *s = data;
    struct cluster *c = s->c;
    struct node *n = world_host_node(s->host);
    struct quorum_voter voters[CLUSTER_MAX];
    struct node_listener *l;
    for (unsigned i = 0; i < c->opts.voters; i++)
        voters[i] = cluster_voter(c, i);
    s->loop = node_loop_create(n, "controller");
    if (!s->formatted)
        format(s);
    struct quorum_opts o = {
        .node = n,
        .loop = s->loop,
        .raft_log = node_pool_create(n, "raft-log", 1),
        .short_pool = node_pool_create(n, "short", 2),
        .fs = world_host_fs(s->host),
        .dir = CLUSTER_DIR,
        .cluster_id = CLUSTER_ID,
        .id = (node_id)s->number,
        .directory_id = s->directory,
        .static_voters = c->opts.dynamic ? NULL : voters,
        .static_voters_count = c->opts.voters,
        .election_timeout_ms = c->opts.election_ms,
        .snapshot_bytes = c->opts.snapshot_bytes,
        .snapshot_fetch_bytes = c->opts.fetch_bytes,
        .retention_bytes = c->opts.retention_bytes,
        .segment_bytes = c->opts.segment_bytes,
        .trailing_bytes = c->opts.trailing_bytes,
        .append_bytes = c->opts.append_bytes,
        .log = &c->log,
        .hooks = {.data = s, .on_image = on_image, .on_leadership = on_leadership, .stopped = on_stopped}};
    o.endpoint = cluster_voter(c, s->number).endpoints[0];
    s->create_err = quorum_create(&o, &s->q, &s->why);
    if (s->create_err) {
        s->q = NULL;
        return;
    }
    struct node_listen_opts lo = {.host = "",
                                  .port = CLUSTER_PORT,
                                  .loops = &s->loop,
                                  .loops_count = 1,
                                  .limits = {.frame_bytes_max = QUORUM_FRAME_BYTES_MAX},
                                  .magic = QUORUM_MAGIC,
                                  .accept_magic = accept_magic,
                                  .data = s};
    assert_int_equal(node_listen(n, &lo, &l, NULL), 0);
}

void cluster_start(struct cluster *c, unsigned i)
{
    struct server *s = &c->servers[i];
    world_boot(s->host);
    s->active = false;
    s->image_end = -1;
    s->checked = 0;
    s->high_watermark = -1;
    s->stopped = false;
    s->q = NULL;
    if (c->loud)
        printf("%8.3f server %u: start\n", (double)world_now(c->w) / 1e6, i);
    (void)world_call(world_host_node(s->host), start_inside, s);
}

void cluster_start_all(struct cluster *c)
{
    for (unsigned i = 0; i < c->opts.voters; i++) {
        cluster_start(c, i);
        if (c->servers[i].create_err)
            fail_msg("server %u: %s", i, c->servers[i].why.text);
    }
}

void cluster_crash(struct cluster *c, unsigned i, bool machine)
{
    struct server *s = &c->servers[i];
    if (c->loud)
        printf("%8.3f server %u: crash%s\n", (double)world_now(c->w) / 1e6, i,
               machine ? " of the machine" : "");
    world_crash(s->host, machine);
    s->q = NULL;
    s->active = false;
}

static void shutdown_inside(void *data)
{
    struct server *s = data;
    quorum_shutdown(s->q);
}

static bool is_stopped(void *data)
{
    return ((struct server *)data)->stopped;
}

void cluster_stop(struct cluster *c, unsigned i)
{
    struct server *s = &c->servers[i];
    assert_true(world_call(world_host_node(s->host), shutdown_inside, s));
    if (!world_run_until(c->w, 30000, is_stopped, s))
        fail_msg("server %u does not stop", i);
    s->active = false;
    s->memory_left = world_host_memory(s->host);
    world_crash(s->host, false);
}

// ---- life
// ------------------------------------------------------------------------------------------------------
static void write_log(struct log_sink *sink, const struct log_line *line)
{
    struct cluster *c = LIST_ENTRY(sink, struct cluster, log);
    if (c->loud)
        printf("%8.3f   %s %s\n", (double)world_now(c->w) / 1e6, line->message, line->fields);
    if (strstr(line->message, "malformed message"))
        fail_msg("a message of a member is called malformed: %s", line->fields);
}

struct cluster *cluster_new(uint64_t seed, const struct cluster_opts *o)
{
    struct cluster *c = calloc(1, sizeof *c);
    c->w = world_new(seed);
    c->opts = *o;
    c->count = o->servers > o->voters ? o->servers : o->voters;
    c->log.write = write_log;
    atomic_init(&c->log.level, LOG_LEVEL_INFO);
    c->loud = getenv("KRAFT_TEST_LOUD") != NULL;
    for (unsigned i = 0; i < c->count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "c%u", i);
        c->servers[i] = (struct server){.c = c, .number = i, .host = world_host_new(c->w, name)};
        for (unsigned k = 0; k < 16; k++)
            c->servers[i].directory.b[k] = (uint8_t)(17 * (i + 1) + k);
    }
    return c;
}

struct attempt {
    struct attempt *next; // of all; freed with the cluster, since a node that dies answers nothing
    struct cluster *c;
    struct server *s;
    unsigned id;
    size_t bytes;
    int err;
    log_offset expected;
};

void cluster_free(struct cluster *c)
{
    world_free(c->w);
    for (struct attempt *a = c->attempts, *next; a; a = next) {
        next = a->next;
        free(a);
    }
    free(c->acked);
    free(c->batches);
    free(c->images);
    free(c);
}

static void check_stops(struct cluster *c)
{
    for (unsigned i = 0; i < c->count; i++) {
        if (!world_host_stopped(c->servers[i].host))
            continue;
        if (c->loud)
            printf("%8.3f server %u: stopped itself: %s\n", (double)world_now(c->w) / 1e6, i,
                   world_host_stopped(c->servers[i].host));
        if (c->stops_allowed) {
            world_host_forget_stop(c->servers[i].host);
            vfs_faulty_heal(world_host_disk(c->servers[i].host));
            c->servers[i].q = NULL;
            c->servers[i].active = false;
        } else
            fail_msg("server %u stopped itself: %s", i, world_host_stopped(c->servers[i].host));
    }
}

void cluster_run(struct cluster *c, uint64_t ms)
{
    world_run(c->w, ms);
    check_stops(c);
}

int cluster_active(const struct cluster *c)
{
    int best = -1;
    for (unsigned i = 0; i < c->count; i++) {
        if (c->servers[i].q && c->servers[i].active &&
            (best < 0 || c->servers[i].term > c->servers[best].term))
            best = (int)i;
    }
    return best;
}

static bool has_active(void *data)
{
    return cluster_active(data) >= 0;
}

bool cluster_wait_active(struct cluster *c, uint64_t ms)
{
    bool ok = world_run_until(c->w, ms, has_active, c);
    check_stops(c);
    return ok;
}

// ---- proposals
// -------------------------------------------------------------------------------------------------

static void proposal_name(unsigned id, char *resource, char *key, size_t size)
{
    (void)snprintf(resource, size, "%u", id % 64);
    (void)snprintf(key, size, "key-%u", id);
}

static void answered(void *data, int err, log_offset base)
{
    struct attempt *a = data;
    struct cluster *c = a->c;
    if (err == 0) {
        if (base != a->expected)
            fail_msg("proposal %u came to another offset", a->id);
        if (c->acked_count == c->acked_cap) {
            c->acked_cap = c->acked_cap ? c->acked_cap * 2 : 256;
            c->acked = realloc(c->acked, c->acked_cap * sizeof *c->acked);
        }
        c->acked[c->acked_count++] = (struct acked){a->id, base};
    } else {
        assert_int_equal(err, ERR_CANCELED);
        c->unknown++;
    }
}

static void propose_inside(void *data)
{
    struct attempt *a = data;
    char resource[32], key[32];
    struct metadata_record r;
    char *text = malloc(a->bytes + 1);
    memset(text, 'v', a->bytes);
    proposal_name(a->id, resource, key, sizeof key);
    metadata_record_init(&r, METADATA_CONFIG, 0);
    r.body.config.resource_type = CONFIG_RESOURCE_BROKER;
    r.body.config.resource_name = slice_str(resource);
    r.body.config.name = slice_str(key);
    r.body.config.value = slice_of(text, a->bytes);
    size_t size = metadata_record_size(&r);
    uint8_t *value = malloc(size);
    assert_int_equal(metadata_record_encode_into(&r, value), 0);
    struct slice v = slice_of(value, size);
    a->expected = quorum_next_offset(a->s->q);
    a->err = quorum_propose(a->s->q, &v, 1, answered, a);
    free(value);
    free(text);
}

int cluster_propose_bytes(struct cluster *c, size_t bytes)
{
    int leader = cluster_active(c);
    if (leader < 0)
        return ERR_NOTLEADER;
    struct server *s = &c->servers[leader];
    struct attempt *a = calloc(1, sizeof *a);
    *a = (struct attempt){c->attempts, c, s, c->proposed++, bytes, 0, 0};
    c->attempts = a;
    c->bytes_proposed += bytes;
    (void)world_call(world_host_node(s->host), propose_inside, a);
    int err = a->err;
    if (err) {
        c->failed++;
    }
    return err;
}

int cluster_propose(struct cluster *c)
{
    return cluster_propose_bytes(c, (size_t)world_between(c->w, 1, 300));
}

struct goal {
    struct cluster *c;
    size_t acked;
};

static bool goal_reached(void *data)
{
    struct goal *g = data;
    return g->c->acked_count >= g->acked;
}

bool cluster_commit(struct cluster *c, unsigned n, uint64_t ms)
{
    for (unsigned i = 0; i < n; i++) {
        struct goal g = {c, c->acked_count + 1};
        if (!cluster_wait_active(c, ms))
            return false;
        if (cluster_propose(c) != 0 || !world_run_until(c->w, ms, goal_reached, &g))
            return false;
    }
    check_stops(c);
    return true;
}

void cluster_check_acked(struct cluster *c, unsigned i)
{
    struct image *img = quorum_image(c->servers[i].q);
    for (size_t k = 0; k < c->acked_count; k++) {
        char resource[32], key[32];
        proposal_name(c->acked[k].id, resource, key, sizeof key);
        if (slice_is_null(
                image_config_value(img, CONFIG_RESOURCE_BROKER, slice_str(resource), slice_str(key))))
            fail_msg("server %u: acknowledged proposal %u (offset %lld) is lost", i, c->acked[k].id,
                     (long long)c->acked[k].base);
    }
    image_unref(img);
}

static bool all_equal(void *data)
{
    struct cluster *c = data;
    int leader = cluster_active(c);
    if (leader < 0)
        return false;
    struct quorum_description d;
    quorum_describe(c->servers[leader].q, &d);
    log_offset end = quorum_log_end(c->servers[leader].q);
    for (uint32_t i = 0; i < d.members_count; i++) {
        struct server *s = &c->servers[d.members[i].voter.id];
        if (d.members[i].is_voter && s->q &&
            (quorum_log_end(s->q) != end || quorum_high_watermark(s->q) != end))
            return false;
    }
    return true;
}

void cluster_settle(struct cluster *c, uint64_t ms)
{
    world_heal(c->w);
    mono_us end = world_now(c->w) + ms * 1000;
    struct goal g = {c, c->acked_count + 1};
    do { // a leader that was cut off may still think that it leads
        if (!cluster_wait_active(c, ms))
            fail_msg("no leader %llu ms after healing", (unsigned long long)ms);
        (void)cluster_propose(c);
    } while (!world_run_until(c->w, 500, goal_reached, &g) && world_now(c->w) < end);
    if (!goal_reached(&g))
        fail_msg("nothing is committed after healing");
    if (!world_run_until(c->w, ms, all_equal, c))
        fail_msg("the members do not become equal");
    check_stops(c);
    int leader = cluster_active(c);
    struct quorum_description d;
    quorum_describe(c->servers[leader].q, &d);
    for (uint32_t i = 0; i < d.members_count; i++) {
        if (d.members[i].is_voter && c->servers[d.members[i].voter.id].q)
            cluster_check_acked(c, (unsigned)d.members[i].voter.id);
    }
}

// ---- membership
// ------------------------------------------------------------------------------------------------
struct change_call {
    struct cluster *c;
    unsigned i;
    struct quorum *q;
    bool add;
};

static void changed(void *data, int err, const char *why)
{
    struct cluster *c = data;
    c->changes_done++;
    c->change_err = err;
    (void)snprintf(c->change_why, sizeof c->change_why, "%s", why);
    if (c->loud)
        printf("%8.3f change: %s (%s)\n", (double)world_now(c->w) / 1e6, err_text(err), why);
}

static void change_inside(void *data)
{
    struct change_call *x = data;
    struct quorum_voter v = cluster_voter(x->c, x->i);
    if (x->add)
        quorum_add_voter(x->q, &v, changed, x->c);
    else
        quorum_remove_voter(x->q, v.id, v.directory_id, changed, x->c);
}

static void change(struct cluster *c, unsigned i, bool add)
{
    int leader = cluster_active(c);
    if (leader < 0)
        return;
    struct change_call x = {c, i, c->servers[leader].q, add};
    (void)world_call(world_host_node(c->servers[leader].host), change_inside, &x);
}

void cluster_add(struct cluster *c, unsigned i)
{
    change(c, i, true);
}

void cluster_remove(struct cluster *c, unsigned i)
{
    change(c, i, false);
}

struct change_goal {
    struct cluster *c;
    unsigned done;
};

static bool change_reached(void *data)
{
    struct change_goal *g = data;
    return g->c->changes_done >= g->done;
}

bool cluster_wait_change(struct cluster *c, unsigned done, uint64_t ms)
{
    struct change_goal g = {c, done};
    bool ok = world_run_until(c->w, ms, change_reached, &g);
    check_stops(c);
    return ok;
}
