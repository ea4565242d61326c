// SPDX-License-Identifier: Apache-2.0
// A node, assembled: a broker, a controller or both, from everything below.
//
// Life: server_create (opens and locks directories, recovers logs; blocks), server_start (loops begin to
// work; the rest happens on them), server_stop (controlled shutdown; `stopped` when it is over), then the
// owner ends the loops (node_shutdown), then server_free (closes the logs, writes the clean-stop marks).
#ifndef KRAFT_SERVER_SERVER_H
#define KRAFT_SERVER_SERVER_H

#include "core/base/node.h"
#include "core/base/uuid.h"

struct forwarder;
struct image;
struct log_sink;
struct server;
struct server_config;
struct vfs;

struct server_opts {
    struct node *node;                  // the world
    struct vfs *fs;                     // disk
    struct log_sink *log;               // may be NULL
    const struct server_config *config; // outlives the server
    unsigned data_loops;                // loops for broker listeners, at least 1
    unsigned open_files_max;            // descriptors of partitions kept open; 0 = 8192
    const char *cluster_id;             // of meta.properties; copied
    const struct uuid
        *log_dir_ids; // directory.id of each of config->log_dirs; copied; zero for one that cannot be read
    struct uuid metadata_dir_id; // directory.id of config->metadata_log_dir
    bool disk_replaced;          // this node's disk was replaced on purpose (static quorum)
    void (*running)(void *data); // serving: unfenced, or, without a broker role, the quorum is up; may be
                                 // NULL; any thread
    void (*stopped)(void *data); // server_stop is over; any thread
    void *data;                  // first argument
};

int server_create(const struct server_opts *opts, struct server **out, struct errmsg *msg);
int server_start(struct server *s, struct errmsg *msg); // opens the listeners. Errors: those of node_listen
void server_stop(struct server *s);                     // any thread; once
void server_free(struct server *s);

// A loop for small tasks of the program (signals).
struct node_loop *server_signal_loop(const struct server *s);

// For the parts of the assembly.
struct log_sink *server_log(const struct server *s);
struct forwarder *server_forwarder(const struct server *s);
const struct server_config *server_configuration(const struct server *s);
// Port that a listener got, by name (tests listen on port 0). 0: no such listener.
uint16_t server_listener_port(const struct server *s, const char *name);

#endif
