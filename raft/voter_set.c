// SPDX-License-Identifier: Apache-2.0
// Voter sets: lookup, libraft's form, and the two encodings (whole, and as a KRAFT_VOTERS record).
#include "raft/voter_set.h"

#include <stdio.h>
#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/protocol/codec.h"
#include "core/protocol/gen/voters_record.h"
#include "raft/cursor.h"

#define TAG_VOTER_RAFT_ID 10000          // of a voter: u64 Raft id
#define TAG_CONFIGURATION 10000          // of the record: voter_set_encode of all servers
#define VOTER_ARENA_BYTES_MAX (1u << 20) // what a record may make us reserve

raft_id quorum_raft_id(node_id id, struct uuid directory_id, bool dynamic)
{
    if (!dynamic)
        return (raft_id)id + 1;
    uint32_t fold = (uint32_t)hash_bytes(directory_id.b, sizeof directory_id.b);
    return ((raft_id)((uint32_t)id) << 32) | (fold ? fold : 1);
}

void quorum_raft_address(raft_id id, char out[RAFT_ADDRESS_BYTES])
{
    (void)snprintf(out, RAFT_ADDRESS_BYTES, "%016llx", id);
}

struct voter_set *voter_set_new(uint32_t count)
{
    struct voter_set *s = mem_zalloc(sizeof *s + count * sizeof s->servers[0]);
    s->refs = 1;
    s->count = count;
    return s;
}

struct voter_set *voter_set_ref(struct voter_set *s)
{
    s->refs++;
    return s;
}

void voter_set_unref(struct voter_set *s)
{
    if (s && --s->refs == 0)
        mem_free(s);
}

const struct quorum_server *voter_set_find(const struct voter_set *s, raft_id id)
{
    for (uint32_t i = 0; s && i < s->count; i++) {
        if (s->servers[i].id == id)
            return &s->servers[i];
    }
    return NULL;
}

const struct quorum_server *voter_set_find_node(const struct voter_set *s, node_id node)
{
    for (uint32_t i = 0; s && i < s->count; i++) {
        if (s->servers[i].voter.id == node)
            return &s->servers[i];
    }
    return NULL;
}

uint32_t voter_set_voters(const struct voter_set *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; s && i < s->count; i++)
        n += s->servers[i].role == RAFT_VOTER;
    return n;
}

bool voter_set_equal_config(const struct voter_set *s, const struct raft_configuration *c)
{
    if (!s || s->count != c->n)
        return false;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->servers[i].id != c->servers[i].id || s->servers[i].role != c->servers[i].role)
            return false;
    }
    return true;
}

void voter_set_to_configuration(const struct voter_set *s, struct raft_configuration *out)
{
    raft_configuration_init(out);
    for (uint32_t i = 0; i < s->count; i++) {
        char address[RAFT_ADDRESS_BYTES];
        quorum_raft_address(s->servers[i].id, address);
        MUST(raft_configuration_add(out, s->servers[i].id, address, s->servers[i].role) == 0);
    }
}

struct voter_set *voter_set_from_configuration(const struct raft_configuration *c,
                                               const struct voter_set *known,
                                               const struct quorum_server *extra)
{
    struct voter_set *s = voter_set_new(c->n);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct quorum_server *from = voter_set_find(known, c->servers[i].id);
        if (!from && extra && extra->id == c->servers[i].id)
            from = extra;
        if (from)
            s->servers[i].voter = from->voter;
        else
            s->servers[i].voter.id = -1;
        s->servers[i].id = c->servers[i].id;
        s->servers[i].role = c->servers[i].role;
    }
    return s;
}

static bool known_role(int role)
{
    return role == RAFT_VOTER || role == RAFT_STANDBY || role == RAFT_SPARE;
}

static bool set_is_sane(const struct voter_set *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->servers[i].id == 0 || !known_role(s->servers[i].role))
            return false;
        for (uint32_t k = 0; k < i; k++) {
            if (s->servers[k].id == s->servers[i].id)
                return false;
        }
    }
    return true;
}

void voter_set_encode(const struct voter_set *s, struct strbuf *out)
{
    put_u32(out, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct quorum_server *v = &s->servers[i];
        put_u64(out, v->id);
        put_u8(out, (uint8_t)v->role);
        put_u32(out, (uint32_t)v->voter.id);
        strbuf_add(out, v->voter.directory_id.b, 16);
        put_u16(out, (uint16_t)v->voter.kraft_version_min);
        put_u16(out, (uint16_t)v->voter.kraft_version_max);
        put_u8(out, (uint8_t)v->voter.endpoints_count);
        for (uint32_t k = 0; k < v->voter.endpoints_count; k++) {
            put_text16(out, v->voter.endpoints[k].name);
            put_text16(out, v->voter.endpoints[k].host);
            put_u16(out, v->voter.endpoints[k].port);
        }
    }
}

static void decode_server(struct cursor *c, struct quorum_server *v)
{
    v->id = cursor_u64(c);
    v->role = cursor_u8(c);
    v->voter.id = (node_id)cursor_u32(c);
    const uint8_t *dir = cursor_take(c, 16);
    if (dir)
        memcpy(v->voter.directory_id.b, dir, 16);
    v->voter.kraft_version_min = (int16_t)cursor_u16(c);
    v->voter.kraft_version_max = (int16_t)cursor_u16(c);
    v->voter.endpoints_count = cursor_u8(c);
    if (v->voter.endpoints_count > QUORUM_ENDPOINTS_MAX) {
        c->bad = true;
        v->voter.endpoints_count = 0;
    }
    for (uint32_t k = 0; k < v->voter.endpoints_count; k++) {
        cursor_text16(c, v->voter.endpoints[k].name, QUORUM_LISTENER_BYTES);
        cursor_text16(c, v->voter.endpoints[k].host, QUORUM_HOST_BYTES);
        v->voter.endpoints[k].port = cursor_u16(c);
    }
}

struct voter_set *voter_set_decode(struct slice bytes)
{
    struct cursor c = cursor_of(bytes);
    uint32_t n = cursor_u32(&c);
    if (c.bad || n > QUORUM_SERVERS_MAX)
        return NULL;
    struct voter_set *s = voter_set_new(n);
    for (uint32_t i = 0; i < n; i++)
        decode_server(&c, &s->servers[i]);
    if (!cursor_done(&c) || !set_is_sane(s)) {
        voter_set_unref(s);
        return NULL;
    }
    return s;
}

// One voter of the record; its arrays and tags live in `arena`.
static void fill_record_voter(struct kp_voters_record_voter *r, const struct quorum_server *v,
                              struct arena *arena)
{
    kp_voters_record_voter_init(r);
    r->voter_id = v->voter.id;
    r->voter_directory_id = v->voter.directory_id;
    r->endpoints_count = (int32_t)v->voter.endpoints_count;
    r->endpoints = arena_zalloc(arena, (v->voter.endpoints_count + 1) * sizeof *r->endpoints);
    for (uint32_t k = 0; k < v->voter.endpoints_count; k++) {
        kp_voters_record_endpoint_init(&r->endpoints[k]);
        r->endpoints[k].name = slice_str(v->voter.endpoints[k].name);
        r->endpoints[k].host = slice_str(v->voter.endpoints[k].host);
        r->endpoints[k].port = v->voter.endpoints[k].port;
    }
    r->kraft_version_feature.min_supported_version = v->voter.kraft_version_min;
    r->kraft_version_feature.max_supported_version = v->voter.kraft_version_max;
    uint8_t *id = arena_alloc(arena, 8);
    bytes_store_be64(id, v->id);
    struct kp_unknown_tag *tag = arena_zalloc(arena, sizeof *tag);
    *tag = (struct kp_unknown_tag){NULL, TAG_VOTER_RAFT_ID, slice_of(id, 8)};
    r->unknown_tags.first = tag;
}

void voter_set_encode_record(const struct voter_set *s, bool configuration, struct strbuf *out)
{
    struct arena arena;
    arena_init(&arena);
    struct kp_voters_record r;
    kp_voters_record_init(&r);
    r.voters = arena_zalloc(&arena, (s->count + 1) * sizeof *r.voters);
    r.voters_count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->servers[i].role == RAFT_VOTER)
            fill_record_voter(&r.voters[r.voters_count++], &s->servers[i], &arena);
    }
    struct strbuf whole;
    strbuf_init(&whole);
    struct kp_unknown_tag tag = {NULL, TAG_CONFIGURATION, SLICE_NULL};
    if (configuration) {
        voter_set_encode(s, &whole);
        tag.bytes = strbuf_slice(&whole);
        r.unknown_tags.first = &tag;
    }
    size_t size = kp_voters_record_size(&r, 0);
    uint8_t *bytes = arena_alloc(&arena, size);
    MUST(kp_message_encode_into(&kp_voters_record_type, &r, bytes, 0) == 0);
    strbuf_add(out, bytes, size);
    strbuf_fini(&whole);
    arena_fini(&arena);
}

static bool copy_text(char *out, size_t size, struct slice s)
{
    if (s.len >= size || (s.len && memchr(s.data, 0, s.len)))
        return false;
    memcpy(out, s.len ? s.data : (const uint8_t *)"", s.len);
    out[s.len] = 0;
    return true;
}

static bool take_record_voter(const struct kp_voters_record_voter *r, struct quorum_server *v)
{
    v->role = RAFT_VOTER;
    v->voter.id = r->voter_id;
    v->voter.directory_id = r->voter_directory_id;
    v->voter.kraft_version_min = r->kraft_version_feature.min_supported_version;
    v->voter.kraft_version_max = r->kraft_version_feature.max_supported_version;
    v->id = quorum_raft_id(r->voter_id, r->voter_directory_id, true);
    for (const struct kp_unknown_tag *t = r->unknown_tags.first; t; t = t->next) {
        if (t->tag == TAG_VOTER_RAFT_ID && t->bytes.len == 8)
            v->id = bytes_load_be64(t->bytes.data);
    }
    for (int32_t k = 0; k < r->endpoints_count && k < QUORUM_ENDPOINTS_MAX; k++) {
        struct quorum_endpoint *e = &v->voter.endpoints[v->voter.endpoints_count++];
        if (!copy_text(e->name, sizeof e->name, r->endpoints[k].name) ||
            !copy_text(e->host, sizeof e->host, r->endpoints[k].host))
            return false;
        e->port = r->endpoints[k].port;
    }
    return true;
}

static struct voter_set *decode_plain_voters(const struct kp_voters_record *r)
{
    if (r->voters_count < 0 || r->voters_count > QUORUM_SERVERS_MAX)
        return NULL;
    struct voter_set *s = voter_set_new((uint32_t)r->voters_count);
    bool ok = true;
    for (uint32_t i = 0; ok && i < s->count; i++)
        ok = take_record_voter(&r->voters[i], &s->servers[i]);
    if (ok && set_is_sane(s))
        return s;
    voter_set_unref(s);
    return NULL;
}

struct voter_set *voter_set_decode_record(struct slice value, bool *configuration)
{
    struct arena arena;
    arena_init(&arena);
    arena.limit = VOTER_ARENA_BYTES_MAX;
    struct kp_reader reader;
    kp_reader_init(&reader, value, &arena, NULL);
    struct kp_voters_record r;
    struct voter_set *s = NULL;
    *configuration = false;
    if (kp_voters_record_decode(&r, &reader, 0) == 0) {
        const struct kp_unknown_tag *tag = r.unknown_tags.first;
        while (tag && tag->tag != TAG_CONFIGURATION)
            tag = tag->next;
        *configuration = tag != NULL;
        s = tag ? voter_set_decode(tag->bytes) : decode_plain_voters(&r);
    }
    arena_fini(&arena);
    return s;
}

struct voter_set *voter_set_with_endpoints(const struct voter_set *base, const struct voter_set *newer)
{
    struct voter_set *s = voter_set_new(base->count);
    for (uint32_t i = 0; i < base->count; i++) {
        s->servers[i] = base->servers[i];
        const struct quorum_server *n = voter_set_find(newer, base->servers[i].id);
        if (n)
            s->servers[i].voter = n->voter;
    }
    return s;
}
