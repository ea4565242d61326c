// SPDX-License-Identifier: Apache-2.0
// Tells the active controller which log directory holds which replica (AssignReplicasToDirs, KIP-858).
#ifndef KRAFT_SERVER_DIR_ASSIGNMENTS_H
#define KRAFT_SERVER_DIR_ASSIGNMENTS_H

#include "core/server/broker.h"

struct controller_channel;
struct dir_assignments;

// On the broker loop, which it belongs to.
struct dir_assignments *dir_assignments_create(struct broker *b, struct node_loop *loop,
                                               struct controller_channel *ch);
void dir_assignments_free(struct dir_assignments *d);
// broker_ops.assign_replica_dir. Any thread. Said again until the controller has taken it.
void dir_assignments_add(struct dir_assignments *d, struct uuid topic_id, partition_id partition,
                         struct uuid dir);

#endif
