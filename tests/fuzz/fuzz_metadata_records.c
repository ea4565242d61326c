// SPDX-License-Identifier: Apache-2.0
// Fuzz target: values of records in the cluster metadata log: frame, type, version, body.
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/protocol/metadata_record.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct metadata_record m;
    struct arena arena;
    struct errmsg err;
    arena_init(&arena);
    if (metadata_record_decode(&m, slice_of(data, size), &arena, &err) == 0) {
        size_t len = metadata_record_size(&m);
        uint8_t *bytes = mem_alloc(len);
        MUST(metadata_record_encode_into(&m, bytes) == 0);
        MUST(metadata_record_decode(&m, slice_of(bytes, len), &arena, &err) == 0);
        mem_free(bytes);
    }
    arena_fini(&arena);
    return 0;
}
