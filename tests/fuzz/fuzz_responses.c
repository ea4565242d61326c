// SPDX-License-Identifier: Apache-2.0
// Fuzz target: answers as a server sends them, and every other message: two bytes choose the message (place
// in the list of all types), the third the version, the rest is the message.
#include "tests/fuzz/fuzz_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    const struct kp_message_type *t =
        kp_message_types[(data[0] << 8 | data[1]) % (int)kp_message_types_count];
    int version = t->min_version + data[2] % (t->max_version - t->min_version + 1);
    fuzz_message(t, version, slice_of(data + 3, size - 3));
    return 0;
}
