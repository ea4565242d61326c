// SPDX-License-Identifier: Apache-2.0
// What AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter share: a change of the voters that is answered when
// it is done.
#ifndef KRAFT_SERVER_QUORUM_CHANGE_H
#define KRAFT_SERVER_QUORUM_CHANGE_H

#include "core/protocol/gen/errors.h"
#include "core/server/controller_node.h"

enum quorum_change_kind { CHANGE_ADD, CHANGE_REMOVE, CHANGE_UPDATE };

// Kafka's error for the outcome of a change (quorum_change_cb).
enum kafka_error quorum_change_error(int err, enum quorum_change_kind kind);
// Adds an endpoint of a request to a voter. False: it does not fit, or has no host.
bool quorum_change_add_endpoint(struct quorum_voter *voter, struct slice name, struct slice host,
                                uint16_t port);

#endif
