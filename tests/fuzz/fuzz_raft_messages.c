// SPDX-License-Identifier: Apache-2.0
// Fuzz target: frames of a quorum connection: hand-shake, Raft messages, chunks of snapshots, and the batches
// inside.
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "raft/entry_batch.h"
#include "raft/message.h"
#include "tests/fuzz/fuzz.h"

// What libraft is given for an entry: the prefix must be what it says, and be recognised again.
static void check_entry(const struct entry_batch *e)
{
    size_t n = entry_prefix_bytes(e);
    uint8_t *bytes = mem_alloc(n + e->bytes.len);
    entry_prefix_write(e, bytes);
    memcpy(bytes + n, e->bytes.data, e->bytes.len);
    if (e->type == RAFT_CHANGE) {
        MUST(entry_configuration_bytes(bytes, n + e->bytes.len) == n);
        struct raft_configuration conf;
        struct raft_buffer buf = {bytes, n + e->bytes.len};
        MUST(raft_configuration_decode(&buf, &conf) == 0);
        MUST(voter_set_equal_config(e->voters, &conf));
        raft_configuration_close(&conf);
    }
    mem_free(bytes);
}

static void check_append(struct slice body)
{
    struct wire_append a;
    if (!wire_get_append(body, &a))
        return;
    struct slice rest = a.batches;
    for (uint32_t i = 0; i < a.count; i++) {
        struct entry_batch e;
        if (entry_batch_parse(rest, &e, NULL) != 0)
            return;
        check_entry(&e);
        voter_set_unref(e.voters);
        rest = slice_of(rest.data + e.bytes.len, rest.len - e.bytes.len);
    }
}

// What was read is written again to the same bytes.
static void check_again(struct rope *frame, struct slice body)
{
    uint8_t *bytes = mem_alloc(frame->len);
    MUST(rope_flatten(frame, bytes) == 0);
    MUST(frame->len == body.len + 5 && memcmp(bytes + 5, body.data, body.len) == 0);
    mem_free(bytes);
    rope_clear(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    enum wire_kind kind = (enum wire_kind)data[0];
    struct slice body = slice_of(data + 1, size - 1);
    struct rope frame;
    struct wire_hello hello;
    struct wire_refused refused;
    struct wire_install install;
    struct wire_snapshot_read read;
    struct wire_snapshot_data chunk;
    struct raft_message small;
    rope_init(&frame);
    memset(&small, 0, sizeof small);
    switch (kind) {
    case WIRE_HELLO:
    case WIRE_WELCOME:
        if (wire_get_hello(body, &hello) && hello.protocol == WIRE_PROTOCOL) {
            wire_put_hello(&frame, kind, &hello);
            check_again(&frame, body);
        }
        break;
    case WIRE_REFUSED:
        (void)wire_get_refused(body, &refused);
        break;
    case WIRE_APPEND:
        check_append(body);
        break;
    case WIRE_INSTALL:
        if (wire_get_install(body, &install)) {
            wire_put_install(&frame, &install);
            check_again(&frame, body);
            voter_set_unref(install.voters);
        }
        break;
    case WIRE_SNAPSHOT_READ:
        if (wire_get_snapshot_read(body, &read)) {
            wire_put_snapshot_read(&frame, &read);
            check_again(&frame, body);
        }
        break;
    case WIRE_SNAPSHOT_DATA:
        (void)wire_get_snapshot_data(body, &chunk);
        break;
    default:
        if (wire_get_small(kind, body, &small)) {
            wire_put_small(&frame, &small);
            check_again(&frame, body);
        }
        break;
    }
    return 0;
}
