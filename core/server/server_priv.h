// SPDX-License-Identifier: Apache-2.0
// The assembly's state; private to server*.c.
//
// Threads: fields of the broker half belong to the broker loop, those of the controller half to the
// controller loop; what is set before the loops begin to work is constant afterwards; atomics and the mailbox
// cross.
#ifndef KRAFT_SERVER_SERVER_PRIV_H
#define KRAFT_SERVER_SERVER_PRIV_H

#include <stdatomic.h>
#include "core/base/logline.h"
#include "core/base/mutex.h"
#include "core/config/server_config.h"
#include "core/server/broker.h"
#include "core/server/broker_lifecycle.h"
#include "core/server/controller_channel.h"
#include "core/server/controller_membership.h"
#include "core/server/controller_node.h"
#include "core/server/controller_registration.h"
#include "core/server/dir_assignments.h"
#include "core/server/forward.h"
#include "core/server/metadata_follower.h"
#include "core/server/producer_ids.h"
#include "core/server/server.h"
#include "storage/file_cache.h"
#include "storage/vfs.h"

#define SERVER_ENDPOINTS_MAX 40 // places to look for controllers: voters, bootstrap servers, this node

// A listener and what its connections are handed.
struct server_listener {
    struct request_listener request;      // first member: what request_accept gets
    struct server *server;                // whose
    const struct config_endpoint *config; // name, host, port
    struct node_listener *socket;         // NULL until it is open
    struct request_loop **loops;          // of its connections
};

struct server {
    struct server_opts opts;            // as given, with copies
    const struct server_config *config; // opts.config
    char *cluster_id;                   // copy
    struct uuid *log_dir_ids;           // copy
    struct node *node;                  // opts.node
    struct log_sink *log;               // opts.log

    // loops, pools, listeners
    struct node_loop **data_loops;                           // of broker listeners
    unsigned data_loops_count;                               // of them
    struct node_loop *broker_loop;                           // lifecycle and metadata; NULL without the role
    struct node_loop *controller_loop;                       // NULL without the role
    struct node_pool *pool_short, *pool_long;                // jobs that may block
    struct node_pool *pool_raft;                             // log of the quorum
    struct server_listener *listeners;                       // of config->listeners
    uint32_t listeners_count;                                // of them
    atomic_bool broker_accepts;                              // unfenced for the first time
    atomic_bool controller_accepts;                          // the quorum runs
    struct vfs_file *metadata_lock;                          // of a metadata directory that no log_dir locks
    struct controller_endpoint places[SERVER_ENDPOINTS_MAX]; // where controllers may be
    unsigned places_count;                                   // of them

    // broker half
    struct broker broker;                                        // the data path
    bool broker_ready;                                           // broker_init has succeeded
    struct controller_channel *heartbeats, *forwards, *metadata; // lines to the active controller
    struct forwarder *forwarder;                                 // admin requests
    struct producer_ids *producer_ids;                           // blocks
    struct dir_assignments *dirs;                                // which replica is where
    struct broker_lifecycle *lifecycle;                          // registration and heartbeats
    struct metadata_follower *follower;                          // without the controller role
    struct log_dir *metadata_dir;       // of the follower; the server's own when `metadata_dir_owned`
    bool metadata_dir_owned;            // it is no entry of log.dirs
    struct file_cache *metadata_files;  // of an owned one
    struct config_endpoint *advertised; // with the ports that were got
    struct image *published;            // by broker_publish; NULL before the first one
    struct uuid *lifecycle_dirs;        // ids of the directories that were online at the start
    bool leaving;                       // the controlled shutdown has begun
    struct uuid offline_dirs[64];       // that failed before the lifecycle began
    uint32_t offline_dirs_count;        // of them

    // images on their way from the controller loop
    struct mutex mail_lock;     // guards `mail`
    struct image *mail;         // newest; NULL: taken
    struct node_task mail_task; // to the broker loop
    atomic_bool mail_posted;    // it is under way

    struct node_task leader_task; // another leader: to the broker loop
    atomic_bool leader_posted;    // it is under way
    _Atomic node_id leader;       // whom it tells of

    // controller half
    struct controller_opts controller_opts;           // decider's
    struct config_validator *validator;               // of config changes
    struct request_loop controller_requests;          // connections of the controller listener
    struct request_loop *controller_requests_list[1]; // the same as a list
    struct controller_node *controller;               // quorum and queue
    struct controller_channel *registrations;         // on the controller loop
    struct controller_registration *registration;     // this controller's
    struct controller_membership *membership;         // its place in a dynamic quorum
    struct config_endpoint controller_endpoint;       // as others reach it, with the port that was got

    // start and stop
    struct node_task start_broker, start_controller, stop_broker, stop_controller; // the steps
    _Atomic node_id active_controller;                                             // as last seen; -1
    bool controller_announced; // `running` was called for a controller-only node
};

// Steps on their loops.
void server_broker_start(struct server *s);
void server_broker_stop(struct server *s); // then server_controller_stop or `stopped`
void server_controller_start(struct server *s);
void server_controller_stop(struct server *s);                   // then `stopped`
void server_broker_follow(struct server *s, node_id active);     // on the broker loop
void server_broker_image(struct server *s, struct image *image); // on the broker loop
const struct broker_ops *server_broker_ops(void);
broker_epoch server_previous_epoch(struct server *s); // of the last clean stop; -1 none
// `found`: see controller_channel.h; its data is the server.
struct controller_channel *server_open_channel(struct server *s, struct node_loop *loop, const char *name,
                                               uint32_t answer_ms, void (*found)(void *data, node_id active));

#endif
