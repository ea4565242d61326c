// SPDX-License-Identifier: Apache-2.0
// Fuzz target: record batches of a peer: walked, iterated through every codec, validated and repacked.
//
// The first byte chooses what the topic asks; with its lowest bit the checksum is put right, so that the rest
// is reached.
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "core/record/validate.h"
#include "tests/fuzz/fuzz.h"

#define UNPACKED_BYTES_MAX (4U << 20) // so that a bomb costs the target no time

static void iterate(const uint8_t *batch)
{
    struct record_limits limits = {.unpacked_bytes_max = UNPACKED_BYTES_MAX,
                                   .record_bytes_max = UNPACKED_BYTES_MAX};
    struct record_iter it;
    struct record r;
    int32_t count = 0;
    record_iter_init(&it, batch, NULL, &limits);
    while (record_iter_next(&it, &r, NULL) == 0) {
        struct slice headers = r.headers;
        struct record_header h;
        int32_t seen = 0;
        while (record_header_next(&headers, &h)) {
            seen++;
        }
        MUST(seen == r.headers_count);
        count++;
    }
    MUST(count <= batch_count(batch));
    record_iter_fini(&it);
}

static void validate(uint8_t *data, size_t len, uint8_t choice)
{
    struct validate_rules rules = {.producer_codec = (choice & 2) != 0,
                                   .codec = (enum codec)((choice >> 2) % CODEC_COUNT),
                                   .level = CODEC_LEVEL_DEFAULT,
                                   .timestamp = choice & 32 ? TIMESTAMP_APPEND : TIMESTAMP_CREATE,
                                   .before_ms_max = INT64_MAX,
                                   .after_ms_max = INT64_MAX,
                                   .compacted = (choice & 64) != 0,
                                   .batch_bytes_max = 1U << 20,
                                   .unpacked_bytes_max = UNPACKED_BYTES_MAX,
                                   .zstd_allowed = (choice & 128) == 0,
                                   .now = 1700000000000};
    struct validate_result *out = mem_zalloc(sizeof *out);
    validate_produce(data, len, &rules, NULL, out);
    if (out->verdict == VALIDATE_OK) {
        const uint8_t *b = out->rewritten ? out->rewritten->data : data;
        MUST(batch_check_crc(b, NULL) == 0);
        MUST(batch_size(b) == out->size);
        struct record_iter it;
        struct record r;
        record_iter_init(&it, b, NULL, NULL);
        for (int32_t i = 0; i < out->count; i++) {
            MUST(record_iter_next(&it, &r, NULL) == 0); // what was found good can be read
            MUST(r.offset_delta == i);
        }
        MUST(record_iter_next(&it, &r, NULL) == ERR_NOTFOUND);
        record_iter_fini(&it);
    }
    if (out->rewritten) {
        chunk_unref(out->rewritten);
    }
    mem_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    uint8_t choice = data[0];
    size_t len = size - 1, whole;
    uint8_t *copy = mem_alloc(len + 1);
    memcpy(copy, data + 1, len);
    if ((choice & 1) && batch_parse(slice_of(copy, len), &whole, NULL) == 0) {
        batch_set_base_offset(copy, 0);
        batch_seal(copy);
    }
    struct batch_iter it = batch_iter_of(slice_of(copy, len));
    while (batch_iter_next(&it)) {
        iterate(it.batch);
    }
    (void)batch_check_run(slice_of(copy, len), 0, &whole, NULL);
    validate(copy, len, choice);
    mem_free(copy);
    return 0;
}
