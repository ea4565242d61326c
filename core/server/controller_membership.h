// SPDX-License-Identifier: Apache-2.0
// A controller keeps its own place in a dynamic quorum right: its endpoint after a move, and joining by
// itself where asked to.
//
// A voter whose endpoint in the quorum's configuration is not the one that it listens on now sends
// UpdateRaftVoter to the active controller; with controller.quorum.auto.join.enable a controller that is no
// voter sends AddRaftVoter. Both are looked at once a second and sent one at a time. On the controller loop.
#ifndef KRAFT_SERVER_CONTROLLER_MEMBERSHIP_H
#define KRAFT_SERVER_CONTROLLER_MEMBERSHIP_H

#include "core/base/node.h"
#include "core/base/uuid.h"
#include "core/config/endpoint.h"

struct controller_channel;
struct controller_membership;
struct log_sink;
struct quorum;

struct controller_membership_opts {
    struct node_loop *loop;                 // controller loop
    struct log_sink *log;                   // may be NULL
    struct quorum *quorum;                  // this node's; outlives this
    struct controller_channel *channel;     // on that loop; outlives this
    node_id id;                             // node.id
    struct uuid directory_id;               // of the metadata directory
    const char *cluster_id;                 // text form; outlives this
    const struct config_endpoint *endpoint; // where others reach this controller; constant
    bool auto_join;                         // controller.quorum.auto.join.enable
};

struct controller_membership *controller_membership_create(const struct controller_membership_opts *opts);
void controller_membership_free(struct controller_membership *m);

#endif
