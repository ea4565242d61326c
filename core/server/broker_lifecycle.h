// SPDX-License-Identifier: Apache-2.0
// A broker's life as the cluster sees it: register, catch up, unfence, heartbeat, controlled shutdown
// (KIP-631).
//
//   STARTING --registered--> CATCHING_UP --own registration replayed, heartbeat says unfenced--> RUNNING
//      ^                          |                                                                |
//      +--- not registered any more (unregistered, or another epoch) ------------------------------+
//   any --broker_lifecycle_shut_down--> STOPPING --controller lets go, or the time is over--> STOPPED
//
// Belongs to the broker loop, so that a busy data path never looks dead. Failures of the line are the
// channel's business; a registration that never succeeds ends the node
// (initial.broker.registration.timeout.ms).
#ifndef KRAFT_SERVER_BROKER_LIFECYCLE_H
#define KRAFT_SERVER_BROKER_LIFECYCLE_H

#include "core/base/node.h"
#include "core/base/uuid.h"
#include "core/config/endpoint.h"

struct broker_lifecycle;
struct controller_channel;
struct log_sink;

struct broker_lifecycle_opts {
    struct node *node;                                  // the world
    struct node_loop *loop;                             // broker loop
    struct log_sink *log;                               // may be NULL
    struct controller_channel *channel;                 // heartbeat line; outlives this
    node_id id;                                         // node.id
    const char *cluster_id;                             // text form
    const char *rack;                                   // NULL none
    const struct config_endpoint *listeners;            // advertised; constant
    uint32_t listeners_count;                           // of them
    const struct uuid *log_dirs;                        // ids of the online directories; constant
    uint32_t log_dirs_count;                            // of them
    broker_epoch previous_epoch;                        // of the last clean stop; -1 none
    uint32_t heartbeat_ms;                              // broker.heartbeat.interval.ms
    uint32_t registration_timeout_ms;                   // initial.broker.registration.timeout.ms
    void (*registered)(void *data, broker_epoch epoch); // a registration was accepted
    void (*running)(void *data);                        // unfenced for the first time
    void (*stopped)(void *data);                        // controlled shutdown is over
    void *data;                                         // first argument
};

struct broker_lifecycle *broker_lifecycle_start(const struct broker_lifecycle_opts *opts);
// The broker has replayed and published the metadata log up to and including this offset.
void broker_lifecycle_replayed(struct broker_lifecycle *lc, log_offset offset);
// Another broker is stopping and waits until all have replayed up to here: says so now instead of with the
// next heartbeat.
void broker_lifecycle_hurry(struct broker_lifecycle *lc);
void broker_lifecycle_dir_offline(struct broker_lifecycle *lc,
                                  struct uuid dir); // told with every heartbeat from now on
struct uuid broker_lifecycle_incarnation(const struct broker_lifecycle *lc);
broker_epoch broker_lifecycle_epoch(const struct broker_lifecycle *lc); // -1 before the first registration
// Hands over leaderships and leaves; `stopped` comes once, also when nobody answers for a while.
void broker_lifecycle_shut_down(struct broker_lifecycle *lc);
void broker_lifecycle_free(struct broker_lifecycle *lc); // after `stopped`, or with a failed node

#endif
