// SPDX-License-Identifier: Apache-2.0
// kraft-dump log: segments and metadata snapshots, batch by batch.
#include <stdio.h>

#include "tools/kraft-dump/dump.h"

struct segment {
    const struct dump_file *file;        // what is shown
    const struct dump_log_options *opts; // how
    enum dump_decoder decoder;           // never DECODE_AUTO
    struct codec_cache *cache;           // for unpacking
    struct arena arena;                  // decoded records, one at a time
    int status;                          // DUMP_BAD after damage
};

static const char *yes_no(bool b)
{
    return b ? "true" : "false";
}

static json_t *batch_json(const struct segment *s, const uint8_t *b, size_t position, bool valid)
{
    json_t *json = json_pack(
        "{s:s, s:I, s:I, s:I, s:i, s:I, s:I, s:s, s:s, s:I, s:i, s:I, s:i, s:i, s:i, s:b, s:b, s:b}", "file",
        s->file->path, "position", (json_int_t)position, "base_offset", (json_int_t)batch_base_offset(b),
        "last_offset", (json_int_t)batch_last_offset(b), "count", batch_count(b), "size",
        (json_int_t)batch_size(b), "crc", (json_int_t)batch_crc(b), "codec", codec_name(batch_codec(b)),
        "timestamp_type", batch_is_append_time(b) ? "LogAppendTime" : "CreateTime", "max_timestamp",
        (json_int_t)batch_max_timestamp(b), "leader_epoch", batch_leader_epoch(b), "producer_id",
        (json_int_t)batch_producer_id(b), "producer_epoch", batch_producer_epoch(b), "base_sequence",
        batch_base_sequence(b), "last_sequence", batch_last_sequence(b), "transactional",
        batch_is_transactional(b), "control", batch_is_control(b), "valid", valid);
    if (batch_has_delete_horizon(b))
        json_object_set_new(json, "delete_horizon_ms", json_integer(batch_base_timestamp(b)));
    return json;
}

static void print_batch(const uint8_t *b, size_t position, bool valid)
{
    printf(
        "baseOffset: %lld lastOffset: %lld count: %d baseSequence: %d lastSequence: %d producerId: %lld "
        "producerEpoch: %d partitionLeaderEpoch: %d isTransactional: %s isControl: %s position: %zu %s: %lld "
        "size: %zu magic: %d codec: %s crc: %u valid: %s",
        (long long)batch_base_offset(b), (long long)batch_last_offset(b), batch_count(b),
        batch_base_sequence(b), batch_last_sequence(b), (long long)batch_producer_id(b),
        batch_producer_epoch(b), batch_leader_epoch(b), yes_no(batch_is_transactional(b)),
        yes_no(batch_is_control(b)), position, batch_is_append_time(b) ? "LogAppendTime" : "CreateTime",
        (long long)batch_max_timestamp(b), batch_size(b), batch_magic(b), codec_name(batch_codec(b)),
        batch_crc(b), yes_no(valid));
    if (batch_has_delete_horizon(b))
        printf(" deleteHorizonMs: %lld", (long long)batch_base_timestamp(b));
    putchar('\n');
}

static json_t *headers_json(const struct record *r)
{
    struct slice left = r->headers;
    struct record_header h;
    json_t *headers = json_array();
    while (record_header_next(&left, &h))
        json_array_append_new(
            headers, json_pack("{s:o, s:o}", "key", dump_data_json(h.key), "value", dump_data_json(h.value)));
    return headers;
}

static void print_json_part(const char *name, const json_t *part)
{
    printf(" %s: ", name);
    json_dumpf(part, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
}

static void one_record(struct segment *s, const uint8_t *b, const struct record *r, json_t *rows)
{
    struct dump_decoded d = dump_decode(s->decoder, batch_is_control(b), r, &s->arena);
    json_t *headers = headers_json(r);
    if (d.bad)
        s->status = DUMP_BAD;
    if (rows) {
        json_array_append_new(rows,
                              json_pack("{s:I, s:I, s:i, s:O, s:O, s:O}", "offset", (json_int_t)r->offset,
                                        "timestamp", (json_int_t)r->timestamp, "sequence", r->sequence, "key",
                                        d.key, "value", d.value, "headers", headers));
    } else {
        printf("| offset: %lld timestamp: %lld keySize: %lld valueSize: %lld", (long long)r->offset,
               (long long)r->timestamp, slice_is_null(r->key) ? -1 : (long long)r->key.len,
               slice_is_null(r->value) ? -1 : (long long)r->value.len);
        if (r->sequence >= 0)
            printf(" sequence: %d", r->sequence);
        if (r->headers_count > 0)
            print_json_part("headers", headers);
        print_json_part("key", d.key);
        print_json_part("value", d.value);
        putchar('\n');
    }
    json_decref(headers);
    json_decref(d.key);
    json_decref(d.value);
    arena_reset(&s->arena);
}

static void damage(struct segment *s, size_t position, const char *what)
{
    s->status = DUMP_BAD;
    fflush(stdout);
    fprintf(stderr, "kraft-dump: %s: position %zu: %s\n", s->file->path, position, what);
}

static void all_records(struct segment *s, const uint8_t *b, size_t position, json_t *rows)
{
    struct record_iter it;
    struct record r;
    struct errmsg err = {{0}};
    int rc;
    record_iter_init(&it, b, s->cache, NULL);
    while ((rc = record_iter_next(&it, &r, &err)) == 0)
        one_record(s, b, &r, rows);
    record_iter_fini(&it);
    if (rc != ERR_NOTFOUND)
        damage(s, position, err.text);
}

static void one_batch(struct segment *s, const uint8_t *b, size_t position)
{
    struct errmsg err = {{0}};
    bool valid = batch_check_crc(b, &err) == 0;
    if (!valid)
        damage(s, position, err.text);
    if (s->opts->json) {
        json_t *json = batch_json(s, b, position, valid);
        if (s->opts->records && valid) {
            json_t *rows = json_array();
            all_records(s, b, position, rows);
            json_object_set_new(json, "records", rows);
        }
        json_dumpf(json, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(json);
        return;
    }
    print_batch(b, position, valid);
    if (s->opts->records && valid)
        all_records(s, b, position, NULL);
}

int dump_segment(const struct dump_file *f, const struct dump_log_options *opts)
{
    struct segment s = {.file = f, .opts = opts, .cache = codec_cache_create()};
    s.decoder = opts->decoder == DECODE_AUTO ? dump_decoder_of(f->path) : opts->decoder;
    arena_init(&s.arena);
    struct batch_iter it = batch_iter_of(f->bytes);
    while (batch_iter_next(&it))
        if (batch_last_offset(it.batch) >= opts->from && batch_base_offset(it.batch) <= opts->to)
            one_batch(&s, it.batch, (size_t)(it.batch - f->bytes.data));
    if (it.rest.len > 0) {
        char what[120];
        snprintf(what, sizeof(what), "%s, %zu bytes to the end of the file",
                 it.err == ERR_AGAIN ? "an incomplete batch" : "no batch starts here", it.rest.len);
        damage(&s, f->bytes.len - it.rest.len, what);
    }
    arena_fini(&s.arena);
    codec_cache_destroy(s.cache);
    return s.status;
}
