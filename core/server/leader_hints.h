// SPDX-License-Identifier: Apache-2.0
// Leader hints (KIP-951): the endpoints of the leaders that Produce and Fetch answers name.
#ifndef KRAFT_SERVER_LEADER_HINTS_H
#define KRAFT_SERVER_LEADER_HINTS_H

#include "core/metadata/image.h"
#include "core/server/request.h"

// Brokers to name in an answer, each once.
struct leader_hints {
    broker_id *ids; // in the request's arena
    int32_t count;  // number of them
    int32_t cap;    // room
};
// Does this error tell the client to look for another leader?
bool leader_hints_wanted(int16_t error);
// Remembers the leader for the answer's endpoints, if it is alive on the client's listener. -1: nothing.
void leader_hints_add(struct request *rq, struct leader_hints *h, broker_id leader);
// The newest leader and epoch of a partition by the image; -1, -1 where it has none.
void leader_hints_of(const struct image_partition *p, broker_id *leader, leader_epoch *epoch);

#endif
