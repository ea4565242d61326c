// SPDX-License-Identifier: Apache-2.0
// Producer ids of this broker: blocks from the active controller, handed out one by one (KIP-730).
#ifndef KRAFT_SERVER_PRODUCER_IDS_H
#define KRAFT_SERVER_PRODUCER_IDS_H

#include "core/server/broker.h"

struct controller_channel;
struct producer_ids;

// On the broker loop, which it belongs to.
struct producer_ids *producer_ids_create(struct broker *b, struct node_loop *loop,
                                         struct controller_channel *ch);
void producer_ids_free(struct producer_ids *p); // what waits is dropped: the node is ending
// broker_ops.next_producer_id. Any thread; `done` on the request's loop, in a later turn.
void producer_ids_next(struct producer_ids *p, struct request *rq,
                       void (*done)(struct request *rq, int16_t error, int64_t producer_id));

#endif
