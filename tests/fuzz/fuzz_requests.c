// SPDX-License-Identifier: Apache-2.0
// Fuzz target: frames as a client sends them: request header, which chooses API and version, then the
// message.
#include "core/protocol/header.h"
#include "tests/fuzz/fuzz_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct kp_api_info *api;
    struct kp_request_header h;
    struct kp_reader r;
    struct arena arena;
    struct errmsg err;
    arena_init(&arena);
    kp_reader_init(&r, slice_of(data, size), &arena, &err);
    if (kp_header_read_request(&r, &h, &api) == 0) {
        const struct kp_message_type *t = kp_message_of_api(api->key, KP_REQUEST);
        if (kp_message_has_version(t, h.request_api_version))
            fuzz_message(t, h.request_api_version, slice_of(r.pos, kp_reader_left(&r)));
    }
    arena_fini(&arena);
    return 0;
}
