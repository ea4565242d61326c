// SPDX-License-Identifier: Apache-2.0
// kraft-dump log: offset, time and transaction indexes, and producer snapshots.
#include <stdio.h>
#include <stdlib.h>

#include "core/base/bytes.h"
#include "core/protocol/gen/aborted_txn.h"
#include "core/protocol/gen/producer_snapshot.h"
#include "core/record/crc32c.h"
#include "tools/kraft-dump/dump.h"

#define OFFSET_ENTRY_BYTES 8 // relative offset int32, position int32
#define TIME_ENTRY_BYTES 12  // timestamp int64, relative offset int32
#define TXN_ENTRY_BYTES 34   // version int16, then AbortedTxn

static int bad(const struct dump_file *f, size_t position, const char *what)
{
    fflush(stdout);
    fprintf(stderr, "kraft-dump: %s: position %zu: %s\n", f->path, position, what);
    return DUMP_BAD;
}

// Base offset of a segment: the file's name.
static long long base_of(const struct dump_file *f)
{
    return strtoll(dump_base_name(f->path), NULL, 10);
}

static void print_json(json_t *json)
{
    json_dumpf(json, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(json);
}

// Zeros behind the last entry are room that is not yet used.
static bool is_zero(const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (p[i])
            return false;
    return true;
}

int dump_offset_index(const struct dump_file *f, const struct dump_log_options *opts)
{
    int status = DUMP_OK;
    long long last = -1, last_position = -1;
    for (size_t at = 0; at + OFFSET_ENTRY_BYTES <= f->bytes.len; at += OFFSET_ENTRY_BYTES) {
        const uint8_t *p = f->bytes.data + at;
        if (at > 0 && is_zero(p, OFFSET_ENTRY_BYTES))
            break;
        long long offset = base_of(f) + (int32_t)bytes_load_be32(p),
                  position = (int32_t)bytes_load_be32(p + 4);
        if (offset <= last || position <= last_position)
            status = bad(f, at, "the entry does not rise");
        last = offset;
        last_position = position;
        if (offset < opts->from || offset > opts->to)
            continue;
        if (opts->json)
            print_json(json_pack("{s:s, s:I, s:I}", "file", f->path, "offset", (json_int_t)offset, "position",
                                 (json_int_t)position));
        else
            printf("offset: %lld position: %lld\n", offset, position);
    }
    return f->bytes.len % OFFSET_ENTRY_BYTES ? bad(f, f->bytes.len, "the size is no multiple of 8") : status;
}

int dump_time_index(const struct dump_file *f, const struct dump_log_options *opts)
{
    int status = DUMP_OK;
    long long last = -1, last_time = INT64_MIN;
    for (size_t at = 0; at + TIME_ENTRY_BYTES <= f->bytes.len; at += TIME_ENTRY_BYTES) {
        const uint8_t *p = f->bytes.data + at;
        if (is_zero(p, TIME_ENTRY_BYTES))
            break;
        long long timestamp = (int64_t)bytes_load_be64(p),
                  offset = base_of(f) + (int32_t)bytes_load_be32(p + 8);
        if (timestamp < last_time || offset <= last)
            status = bad(f, at, "the entry does not rise");
        last_time = timestamp;
        last = offset;
        if (offset < opts->from || offset > opts->to)
            continue;
        if (opts->json)
            print_json(json_pack("{s:s, s:I, s:I}", "file", f->path, "timestamp", (json_int_t)timestamp,
                                 "offset", (json_int_t)offset));
        else
            printf("timestamp: %lld offset: %lld\n", timestamp, offset);
    }
    return f->bytes.len % TIME_ENTRY_BYTES ? bad(f, f->bytes.len, "the size is no multiple of 12") : status;
}

int dump_txn_index(const struct dump_file *f, const struct dump_log_options *opts)
{
    for (size_t at = 0; at + TXN_ENTRY_BYTES <= f->bytes.len; at += TXN_ENTRY_BYTES) {
        struct kp_aborted_txn t;
        struct kp_reader r;
        kp_reader_init(&r, slice_of(f->bytes.data + at + 2, TXN_ENTRY_BYTES - 2), NULL, NULL);
        if (bytes_load_be16(f->bytes.data + at) != 0 || kp_aborted_txn_decode(&t, &r, 0))
            return bad(f, at, "an entry of an unknown version");
        if (opts->json)
            print_json(json_pack("{s:s, s:I, s:I, s:I, s:I}", "file", f->path, "producer_id",
                                 (json_int_t)t.producer_id, "first_offset", (json_int_t)t.first_offset,
                                 "last_offset", (json_int_t)t.last_offset, "last_stable_offset",
                                 (json_int_t)t.last_stable_offset));
        else
            printf("producerId: %lld firstOffset: %lld lastOffset: %lld lastStableOffset: %lld\n",
                   (long long)t.producer_id, (long long)t.first_offset, (long long)t.last_offset,
                   (long long)t.last_stable_offset);
    }
    return f->bytes.len % TXN_ENTRY_BYTES ? bad(f, f->bytes.len, "the size is no multiple of 34") : DUMP_OK;
}

static void print_producer(const struct dump_file *f, const struct dump_log_options *opts,
                           const struct kp_producer_snapshot_producer_entry *e)
{
    if (opts->json)
        print_json(json_pack("{s:s, s:I, s:i, s:i, s:I, s:i, s:I, s:i, s:I}", "file", f->path, "producer_id",
                             (json_int_t)e->producer_id, "producer_epoch", e->epoch, "last_sequence",
                             e->last_sequence, "last_offset", (json_int_t)e->last_offset, "offset_delta",
                             e->offset_delta, "timestamp", (json_int_t)e->timestamp, "coordinator_epoch",
                             e->coordinator_epoch, "current_txn_first_offset",
                             (json_int_t)e->current_txn_first_offset));
    else
        printf("producerId: %lld producerEpoch: %d lastSequence: %d lastOffset: %lld offsetDelta: %d "
               "timestamp: %lld "
               "coordinatorEpoch: %d currentTxnFirstOffset: %lld\n",
               (long long)e->producer_id, e->epoch, e->last_sequence, (long long)e->last_offset,
               e->offset_delta, (long long)e->timestamp, e->coordinator_epoch,
               (long long)e->current_txn_first_offset);
}

int dump_producer_snapshot(const struct dump_file *f, const struct dump_log_options *opts)
{
    struct kp_producer_snapshot s;
    struct kp_reader r;
    struct arena arena;
    struct errmsg err = {{0}};
    int status = DUMP_OK;
    if (f->bytes.len < 6)
        return bad(f, 0, "too short for a producer snapshot");
    int version = (int16_t)bytes_load_be16(f->bytes.data);
    arena_init(&arena);
    kp_reader_init(&r, slice_of(f->bytes.data + 2, f->bytes.len - 2), &arena, &err);
    if (kp_producer_snapshot_decode(&s, &r, (int16_t)version)) {
        status = bad(f, 0, err.text);
    } else {
        if (s.crc != crc32c(f->bytes.data + 6, f->bytes.len - 6))
            status = bad(f, 2, "the checksum does not fit");
        for (int32_t i = 0; i < s.producer_entries_count; i++)
            print_producer(f, opts, &s.producer_entries[i]);
    }
    arena_fini(&arena);
    return status;
}
