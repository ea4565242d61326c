// SPDX-License-Identifier: Apache-2.0
// Random ids; a file of its own, so that programs without a node need no node interface to link.
#include "core/base/uuid.h"

#include "core/base/node.h"

struct uuid uuid_random(struct node *n)
{
    struct uuid id;
    uint8_t bytes[16];
    do
        node_random(n, bytes, sizeof bytes);
    while (!uuid_from_random(bytes, &id));
    return id;
}
