// SPDX-License-Identifier: Apache-2.0
// Whole nodes in the simulated world: formatted, started, crashed, and a client that asks them.
//
// Hosts are named "n<id>"; broker listeners are on port 9092, controller listeners on 9093. Every node is the
// production assembly (server_create), on a disk that forgets what was not synced.
#ifndef KRAFT_TESTS_NODE_FIXTURE_H
#define KRAFT_TESTS_NODE_FIXTURE_H

#include "core/base/arena.h"
#include "core/metadata/snapshot.h"
#include "core/protocol/codec.h"
#include "core/server/server_priv.h"
#include "tests/sim/world/world.h"

#define NODES_MAX 8
#define BROKER_PORT 9092
#define CONTROLLER_PORT 9093

enum node_role { ROLE_CONTROLLER = 1, ROLE_BROKER = 2 };

struct sim_node {
    struct nodes *all;            // whose
    struct world_host *host;      // machine
    node_id id;                   // node.id
    int roles;                    // enum node_role
    struct uuid dir;              // directory.id
    struct server *server;        // running assembly; NULL: down
    struct server_config *config; // of it
    bool running;                 // `running` was called
    bool stopped;                 // `stopped` was called
    int create_error;             // of the last start
    char properties[1024];        // server.properties
};

struct nodes {
    struct world *world;             // time, network, disks
    struct sim_node node[NODES_MAX]; // in order of adding
    unsigned count;                  // of them
    struct world_host *client_host;  // of the client
    struct node_loop *client_loop;   // its loop
    struct node_conn *conn;          // its connection; NULL: none
    bool dialed;                     // the dial has an outcome
    bool answered;                   // a reply is there
    struct arena arena;              // decoded replies; until nodes_free
    struct slice reply;              // frame, malloc'd
    const char *extra;               // properties of every node added from now on; may be NULL
    char target[32];                 // host that the client dials
};

// Three controllers (1-3) and brokers from 11 on, or combined nodes; formatted, not started.
void nodes_init(struct nodes *n, uint64_t seed, unsigned controllers, unsigned brokers, bool combined,
                const char *extra);
void nodes_free(struct nodes *n);
struct sim_node *nodes_get(struct nodes *n, node_id id);

void node_start(struct sim_node *s); // boots the machine, creates and starts the server
void node_crash(struct sim_node *s,
                bool machine);     // the process dies, or the machine with what was not synced
void node_end(struct sim_node *s); // controlled shutdown, to the end
void nodes_start_all(struct nodes *n);
bool nodes_wait_running(struct nodes *n, uint64_t ms); // every started broker is unfenced
struct sim_node *nodes_active(struct nodes *n);        // the serving controller; NULL: none
bool nodes_wait_active(struct nodes *n, uint64_t ms);
struct image_hash
node_hash(struct sim_node *s); // of its newest committed (controller) or published (broker) image
log_offset node_offset(struct sim_node *s); // of that image

// One request to a node's broker listener (controller listener when it is no broker). NULL: no answer within
// `ms`. The answer is in the arena.
void *nodes_ask(struct nodes *n, struct sim_node *to, int16_t api, int16_t version, const void *body,
                uint64_t ms);
// CreateTopics of one topic; its error, or -100 without an answer.
int nodes_create_topic(struct nodes *n, struct sim_node *to, const char *name, int32_t partitions,
                       uint64_t ms);
bool node_has_topic(struct sim_node *s, const char *name); // in that image

#endif
