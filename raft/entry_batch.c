// SPDX-License-Identifier: Apache-2.0
// Recognising and making the batches that are Raft entries.
#include "raft/entry_batch.h"

#include "core/base/arena.h"
#include "core/base/mem.h"
#include "core/protocol/gen/kraft_version_record.h"
#include "core/protocol/gen/leader_change_message.h"
#include "core/protocol/gen/metadata_records.h"
#include "core/record/batch.h"
#include "raft/cursor.h"
#include "raft/limits.h"

// ---- recognising
// -----------------------------------------------------------------------------------------------
static bool is_noop_value(struct slice v)
{
    return v.len >= 2 && v.data && v.data[0] == 1 && v.data[1] == METADATA_NO_OP;
}

static int control_entry(struct entry_batch *e, const struct record *first, struct errmsg *msg)
{
    bool configuration = false;
    switch (control_type_of(first->key)) {
    case CONTROL_LEADER_CHANGE:
        e->type = RAFT_BARRIER;
        return 0;
    case CONTROL_KRAFT_VOTERS:
        e->voters = voter_set_decode_record(first->value, &configuration);
        if (!e->voters || (configuration && voter_set_voters(e->voters) == 0)) {
            voter_set_unref(e->voters);
            e->voters = NULL;
            return err_set(msg, ERR_MALFORMED, "KRAFT_VOTERS record at offset %lld is malformed",
                           (long long)e->base);
        }
        e->type = configuration ? RAFT_CHANGE : RAFT_COMMAND;
        e->carries_voters = !configuration;
        return 0;
    case CONTROL_KRAFT_VERSION:
        e->type = RAFT_COMMAND;
        return 0;
    default:
        return err_set(msg, ERR_MALFORMED,
                       "a control batch at offset %lld that does not belong in the metadata log",
                       (long long)e->base);
    }
}

static int find_type(struct entry_batch *e, struct errmsg *msg)
{
    struct record_iter it;
    struct record first;
    record_iter_init(&it, e->bytes.data, NULL, NULL);
    int err = record_iter_next(&it, &first, msg);
    if (err)
        err = err == ERR_NOTFOUND
                  ? err_set(msg, ERR_MALFORMED, "an empty batch at offset %lld", (long long)e->base)
                  : err;
    else if (batch_is_control(e->bytes.data))
        err = control_entry(e, &first, msg);
    else
        e->type = e->offsets == 1 && is_noop_value(first.value) ? RAFT_BARRIER : RAFT_COMMAND;
    record_iter_fini(&it);
    return err;
}

int entry_batch_parse(struct slice bytes, struct entry_batch *out, struct errmsg *msg)
{
    size_t size = 0;
    memset(out, 0, sizeof *out);
    int err = batch_parse(bytes, &size, msg);
    if (size > QUORUM_BATCH_BYTES_MAX + 65536)
        return err_set(msg, ERR_CORRUPT, "a batch of %zu bytes is over the limit", size);
    if (err)
        return err;
    err = batch_check_crc(bytes.data, msg);
    if (err)
        return err;
    const uint8_t *b = bytes.data;
    if (batch_count(b) < 1 || batch_last_offset_delta(b) != batch_count(b) - 1 || batch_base_offset(b) < 0 ||
        batch_leader_epoch(b) < 0 || batch_codec(b) != CODEC_NONE)
        return err_set(msg, ERR_MALFORMED, "the batch at offset %lld is not one of a metadata log",
                       (long long)batch_base_offset(b));
    out->bytes = slice_of(b, size);
    out->epoch = batch_leader_epoch(b);
    out->base = batch_base_offset(b);
    out->offsets = (uint32_t)batch_count(b);
    return find_type(out, msg);
}

size_t entry_prefix_bytes(const struct entry_batch *e)
{
    if (e->type == RAFT_BARRIER)
        return 8;
    if (e->type != RAFT_CHANGE)
        return 0;
    size_t n = 1 + 8;
    for (uint32_t i = 0; i < e->voters->count; i++)
        n += 8 + RAFT_ADDRESS_BYTES + 1; // id, address with its NUL, role
    return (n + 7) / 8 * 8;
}

void entry_prefix_write(const struct entry_batch *e, uint8_t *out)
{
    if (e->type == RAFT_BARRIER)
        memset(out, 0, 8);
    if (e->type != RAFT_CHANGE)
        return;
    struct raft_configuration conf;
    struct raft_buffer buf;
    voter_set_to_configuration(e->voters, &conf);
    MUST(raft_configuration_encode(&conf, &buf) == 0);
    MUST(buf.len == entry_prefix_bytes(e));
    memcpy(out, buf.base, buf.len);
    raft_free(buf.base);
    raft_configuration_close(&conf);
}

size_t entry_configuration_bytes(const uint8_t *data, size_t len)
{
    if (len < 9)
        return 0;
    uint64_t n = bytes_load_le64(data + 1);
    if (n > QUORUM_SERVERS_MAX)
        return 0;
    size_t at = 9;
    for (uint64_t i = 0; i < n; i++) {
        if (len - at < 8)
            return 0;
        at += 8;
        const uint8_t *nul = len > at ? memchr(data + at, 0, len - at) : NULL;
        if (!nul || (size_t)(nul - data) + 2 > len)
            return 0;
        at = (size_t)(nul - data) + 2;
    }
    size_t padded = (at + 7) / 8 * 8;
    return padded <= len ? padded : 0;
}

// ---- making
// ----------------------------------------------------------------------------------------------------
static void leader_change_value(const struct entry_origin *o, struct strbuf *out)
{
    struct arena arena;
    arena_init(&arena);
    struct kp_leader_change_message m;
    kp_leader_change_message_init(&m);
    m.leader_id = o->leader;
    uint32_t n = o->voters ? o->voters->count : 0;
    m.voters = arena_zalloc(&arena, (n + 1) * sizeof *m.voters);
    m.voters_count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (o->voters->servers[i].role != RAFT_VOTER)
            continue;
        kp_leader_change_message_voter_init(&m.voters[m.voters_count]);
        m.voters[m.voters_count++].voter_id = o->voters->servers[i].voter.id;
    }
    struct kp_leader_change_message_voter self; // who else granted is known to libraft alone
    kp_leader_change_message_voter_init(&self);
    self.voter_id = o->leader;
    m.granting_voters = &self;
    m.granting_voters_count = 1;
    size_t size = kp_leader_change_message_size(&m, 0);
    uint8_t *bytes = arena_alloc(&arena, size);
    MUST(kp_message_encode_into(&kp_leader_change_message_type, &m, bytes, 0) == 0);
    strbuf_add(out, bytes, size);
    arena_fini(&arena);
}

void entry_kraft_version_value(int16_t level, struct strbuf *out)
{
    struct kp_kraft_version_record m;
    kp_kraft_version_record_init(&m);
    m.kraft_version = level;
    uint8_t bytes[64];
    size_t size = kp_kraft_version_record_size(&m, 0);
    MUST(size <= sizeof bytes && kp_message_encode_into(&kp_kraft_version_record_type, &m, bytes, 0) == 0);
    strbuf_add(out, bytes, size);
}

static void begin(struct builder *b, const struct entry_origin *o, bool control)
{
    struct builder_options opts = BUILDER_OPTIONS_DEFAULT;
    opts.base_offset = o->base;
    opts.epoch = o->epoch;
    opts.control = control;
    builder_init(b, &opts);
}

static uint8_t *finish(struct builder *b, size_t *size, bool for_library)
{
    struct slice out;
    struct errmsg msg;
    MUST(builder_finish(b, &out, &msg) == 0);
    uint8_t *copy;
    if (for_library) {
        copy = raft_malloc(out.len);
        MUST(copy != NULL);
        memcpy(copy, out.data, out.len);
    } else {
        copy = mem_dup(out.data, out.len);
    }
    *size = out.len;
    builder_fini(b);
    return copy;
}

static void add_control(struct builder *b, const struct entry_origin *o, enum control_type type,
                        struct strbuf *value)
{
    builder_append_control(b, o->now, type, strbuf_slice(value));
    strbuf_clear(value);
}

uint8_t *entry_make_barrier(const struct entry_origin *o, size_t *size)
{
    struct builder b;
    begin(&b, o, o->first_of_term);
    if (!o->first_of_term) {
        static const uint8_t noop[] = {1, METADATA_NO_OP, 0,
                                       0}; // frame 1, record 20, version 0, no tagged fields
        builder_append(&b, o->now, SLICE_NULL, slice_of(noop, sizeof noop), NULL, 0);
        return finish(&b, size, false);
    }
    struct strbuf value;
    strbuf_init(&value);
    leader_change_value(o, &value);
    add_control(&b, o, CONTROL_LEADER_CHANGE, &value);
    if (o->first_of_log) {
        entry_kraft_version_value(1, &value);
        add_control(&b, o, CONTROL_KRAFT_VERSION, &value);
        voter_set_encode_record(o->voters, false, &value);
        add_control(&b, o, CONTROL_KRAFT_VOTERS, &value);
    }
    strbuf_fini(&value);
    return finish(&b, size, false);
}

static uint8_t *make_voters(const struct entry_origin *o, bool configuration, size_t *size)
{
    struct builder b;
    struct strbuf value;
    strbuf_init(&value);
    begin(&b, o, true);
    voter_set_encode_record(o->voters, configuration, &value);
    add_control(&b, o, CONTROL_KRAFT_VOTERS, &value);
    strbuf_fini(&value);
    return finish(&b, size, !configuration);
}

uint8_t *entry_make_change(const struct entry_origin *o, size_t *size)
{
    return make_voters(o, true, size);
}

uint8_t *entry_make_endpoints(const struct entry_origin *o, size_t *size)
{
    return make_voters(o, false, size);
}

uint8_t *entry_make_command(const struct slice *values, uint32_t count, log_offset base, leader_epoch epoch,
                            time_ms now, size_t *size)
{
    struct entry_origin o = {.base = base, .epoch = epoch, .now = now};
    struct builder b;
    begin(&b, &o, false);
    for (uint32_t i = 0; i < count; i++) {
        builder_append(&b, now, SLICE_NULL, values[i], NULL, 0);
        if (builder_size(&b) > QUORUM_BATCH_BYTES_MAX) {
            builder_fini(&b);
            *size = 0;
            return NULL;
        }
    }
    return finish(&b, size, true);
}
