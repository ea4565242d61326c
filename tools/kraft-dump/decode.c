// SPDX-License-Identifier: Apache-2.0
// What keys and values of internal records mean, as JSON.
#include <stdlib.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/bytes.h"
#include "core/base/mem.h"
#include "core/protocol/json.h"
#include "core/protocol/metadata_record.h"
#include "core/record/builder.h"
#include "tools/kraft-dump/dump.h"

json_t *dump_data_json(struct slice s)
{
    if (slice_is_null(s))
        return json_null();
    json_t *text = json_stringn((const char *)s.data, s.len);
    if (text)
        return text;
    char *base64 = mem_alloc(BASE64_ENCODED_BYTES(s.len));
    base64_encode(BASE64_STANDARD, s, base64);
    text = json_pack("{s:s}", "base64", base64);
    mem_free(base64);
    return text;
}

// Does the last folder of the path begin with the name? Internal logs lie in folders such as
// __consumer_offsets-12.
static bool in_folder(const char *path, const char *name)
{
    const char *base = dump_base_name(path);
    if (base == path) {
        char *absolute = realpath(path, NULL);
        bool found = absolute && dump_base_name(absolute) != absolute && in_folder(absolute, name);
        free(absolute);
        return found;
    }
    const char *folder = base - 1;
    while (folder > path && folder[-1] != '/')
        folder--;
    size_t len = strlen(name);
    return (size_t)(base - folder) > len && strncmp(folder, name, len) == 0;
}

enum dump_decoder dump_decoder_of(const char *path)
{
    if (in_folder(path, "__cluster_metadata-"))
        return DECODE_METADATA;
    if (in_folder(path, "__consumer_offsets-"))
        return DECODE_GROUPS;
    if (in_folder(path, "__transaction_state-"))
        return DECODE_TRANSACTIONS;
    if (in_folder(path, "__share_group_state-"))
        return DECODE_SHARES;
    return DECODE_NONE;
}

// {"type": NAME, "version": V, "data": {...}}; NULL with `err` set where the bytes are not that message.
static json_t *message_json(const struct kp_message_type *t, int version, struct slice bytes,
                            struct arena *arena, struct errmsg *err)
{
    struct kp_reader r;
    void *message = arena_alloc(arena, t->size);
    kp_reader_init(&r, bytes, arena, err);
    if (kp_message_decode(t, message, &r, version))
        return NULL;
    return json_pack("{s:s, s:i, s:o}", "type", t->name, "version", version, "data",
                     kp_message_to_json(t, message, version));
}

static json_t *metadata_json(struct slice value, struct arena *arena, struct errmsg *err)
{
    struct metadata_record m;
    if (metadata_record_decode(&m, value, arena, err))
        return NULL;
    const struct kp_message_type *t = kp_message_of_metadata((uint32_t)m.type);
    return json_pack("{s:s, s:i, s:o}", "type", t->name, "version", m.version, "data",
                     kp_message_to_json(t, &m.body, m.version));
}

// The value of a control record: its first int16 is its version, which Raft's records repeat as a field.
static json_t *control_json(enum control_type type, struct slice value, struct arena *arena,
                            struct errmsg *err)
{
    static const char *const names[CONTROL_TYPE_COUNT] = {
        [CONTROL_ABORT] = "EndTxnMarker",
        [CONTROL_COMMIT] = "EndTxnMarker",
        [CONTROL_LEADER_CHANGE] = "LeaderChangeMessage",
        [CONTROL_SNAPSHOT_HEADER] = "SnapshotHeaderRecord",
        [CONTROL_SNAPSHOT_FOOTER] = "SnapshotFooterRecord",
        [CONTROL_KRAFT_VERSION] = "KRaftVersionRecord",
        [CONTROL_KRAFT_VOTERS] = "VotersRecord",
    };
    if (value.len < 2) {
        err_set(err, ERR_MALFORMED, "a control record without version");
        return NULL;
    }
    const struct kp_message_type *t = kp_message_by_name(slice_str(names[type]));
    if (type == CONTROL_ABORT || type == CONTROL_COMMIT)
        value = slice_of(value.data + 2, value.len - 2);
    return message_json(t, 0, value, arena, err);
}

static json_t *coordinator_json(enum kp_message_kind kind, int type, bool is_value, struct slice s,
                                struct arena *arena, struct errmsg *err)
{
    if (slice_is_null(s))
        return json_null();
    const struct kp_message_type *t = kp_message_of_record(kind, type, is_value);
    if (s.len < 2 || !t) {
        err_set(err, ERR_UNSUPPORTED, "record type %d is not known", type);
        return NULL;
    }
    int version = is_value ? (int16_t)bytes_load_be16(s.data) : t->min_version;
    return message_json(t, version, slice_of(s.data + 2, s.len - 2), arena, err);
}

// Replaces what could not be decoded by its bytes and the reason.
static void give_up(struct dump_decoded *d, const struct record *r, const struct errmsg *err)
{
    if (!d->key)
        d->key = dump_data_json(r->key);
    json_decref(d->value);
    d->value = json_pack("{s:s, s:o}", "error", err->text, "bytes", dump_data_json(r->value));
    d->bad = true;
}

static struct dump_decoded decode_control(const struct record *r, struct arena *arena, struct errmsg *err)
{
    static const char *const names[CONTROL_TYPE_COUNT] = {
        "ABORT",           "COMMIT",        "LEADER_CHANGE", "SNAPSHOT_HEADER",
        "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"};
    enum control_type type = control_type_of(r->key);
    struct dump_decoded d = {0};
    if (type == CONTROL_UNKNOWN) {
        err_set(err, ERR_UNSUPPORTED, "the type of this control record is not known");
        return d;
    }
    d.key = json_string(names[type]);
    d.value = control_json(type, r->value, arena, err);
    return d;
}

struct dump_decoded dump_decode(enum dump_decoder decoder, bool control, const struct record *r,
                                struct arena *arena)
{
    struct errmsg err = {{0}};
    struct dump_decoded d = {0};
    int type = r->key.len >= 2 ? (int16_t)bytes_load_be16(r->key.data) : -1;
    enum kp_message_kind kind = decoder == DECODE_GROUPS         ? KP_KIND_GROUP
                                : decoder == DECODE_TRANSACTIONS ? KP_KIND_TRANSACTION
                                                                 : KP_KIND_SHARE;
    if (control) {
        d = decode_control(r, arena, &err);
    } else if (decoder == DECODE_METADATA) {
        d.key = dump_data_json(r->key);
        d.value = metadata_json(r->value, arena, &err);
    } else if (decoder == DECODE_NONE || decoder == DECODE_AUTO) {
        d.key = dump_data_json(r->key);
        d.value = dump_data_json(r->value);
    } else {
        d.key = coordinator_json(kind, type, false, r->key, arena, &err);
        d.value = d.key ? coordinator_json(kind, type, true, r->value, arena, &err) : NULL;
    }
    if (!d.key || !d.value)
        give_up(&d, r, &err);
    return d;
}
