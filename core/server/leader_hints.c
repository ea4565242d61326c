// SPDX-License-Identifier: Apache-2.0
// Leader hints (KIP-951).
#include "core/server/leader_hints.h"

#include "core/protocol/gen/errors.h"
#include "core/server/cluster_view.h"

bool leader_hints_wanted(int16_t error)
{
    return error == KE_NOT_LEADER_OR_FOLLOWER || error == KE_FENCED_LEADER_EPOCH;
}

void leader_hints_add(struct request *rq, struct leader_hints *h, broker_id leader)
{
    const struct image *image = request_image(rq);
    if (leader < 0 || image == NULL || !cluster_view_alive(image, leader, rq->ctx->listener_name)) {
        return;
    }
    for (int32_t i = 0; i < h->count; i++) {
        if (h->ids[i] == leader) {
            return;
        }
    }
    if (h->count == h->cap) {
        int32_t cap = h->cap == 0 ? 8 : h->cap * 2;
        broker_id *ids = arena_alloc(&rq->arena, (size_t)cap * sizeof *ids);
        if (h->count > 0) {
            memcpy(ids, h->ids, (size_t)h->count * sizeof *ids);
        }
        h->ids = ids;
        h->cap = cap;
    }
    h->ids[h->count++] = leader;
}

void leader_hints_of(const struct image_partition *p, broker_id *leader, leader_epoch *epoch)
{
    *leader = p != NULL ? p->leader : -1;
    *epoch = p != NULL ? p->epoch : -1;
}
