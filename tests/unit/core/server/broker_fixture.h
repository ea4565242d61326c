// SPDX-License-Identifier: Apache-2.0
// A broker in the simulated world, and a client that talks to it in frames: verbs for the tests.
//
// The broker (node id 1) has an image of its own making: topic "t" with two partitions and "flushed" with
// one, all led by it, and "elsewhere", led by broker 2. The client is another host; each connection has its
// replies in order.
#ifndef KRAFT_TESTS_BROKER_FIXTURE_H
#define KRAFT_TESTS_BROKER_FIXTURE_H

#include "core/base/arena.h"
#include "core/metadata/image.h"
#include "core/protocol/codec.h"
#include "core/metadata/record_list.h"
#include "core/server/broker.h"
#include "tests/sim/world/world.h"

#define FIXTURE_PORT 9092
#define FIXTURE_REPLIES_MAX 256

struct client {
    struct fixture *f;                         // whose
    struct node_conn *conn;                    // NULL: not connected or closed
    bool closed;                               // the broker closed it
    struct slice replies[FIXTURE_REPLIES_MAX]; // frames that came, malloc'd
    unsigned replies_count, replies_taken;     // number of them; how many the test has looked at
    int32_t correlation;                       // of the last request
};

struct fixture {
    struct world *world;                 // time, network, disks
    struct world_host *host;             // of the broker
    struct world_host *client_host;      // of the clients
    struct broker broker;                // under test
    struct request_listener listener;    // its listener
    struct request_loop *loops[1];       // its request loop
    struct node_listener *listening;     // its port
    const struct image *image;           // what was published last; one reference
    void (*fill)(struct record_list *l); // of the change under way
    struct arena arena;                  // decoded replies; lives until fixture_stop
    struct broker_ops ops;               // actions that the broker asks for
    int64_t next_producer_id;            // what ops hands out
    unsigned dirs_count;                 // log directories
    bool disk_failed;                    // the test broke the disk: a clean stop may fail
    unsigned created_topics;             // topics that auto creation was asked for
    struct client clients[4];            // connections
};

void fixture_start(struct fixture *f, uint64_t seed);
void fixture_start_with(struct fixture *f, uint64_t seed,
                        unsigned dirs_count);        // so many log directories, 1 or 2
void fixture_stop(struct fixture *f);                // clean stop and end
void fixture_restart(struct fixture *f, bool clean); // the same disk; unclean: the process dies
// The image moves on by the records that `fill` adds. At the next offset.
void fixture_change(struct fixture *f, void (*fill)(struct record_list *l));
// The machine dies: the disk loses what was not synced, as the seed decides; then it starts again.
void fixture_lose_power(struct fixture *f);
struct client *fixture_connect(struct fixture *f, unsigned number);

// Sends a request (body encoded by its type) and does not wait.
void client_send(struct client *c, int16_t api, int16_t version, const void *body);
void client_send_bytes(struct client *c, struct slice header_and_body);
// Next reply, decoded into a new message of the arena; waits up to a virtual minute and fails the test if
// none comes.
void *client_receive(struct client *c, int16_t api, int16_t version);
bool client_has_reply(struct client *c); // without waiting
void *client_call(struct client *c, int16_t api, int16_t version, const void *body);

// One batch of `count` records with value "v<n>". Lives in the arena.
struct slice fixture_batch(struct fixture *f, int32_t count, int64_t producer_id, int32_t sequence);
// Produces one batch to t-`partition`; answers error and base offset.
int16_t client_produce(struct client *c, const char *topic, partition_id partition, int16_t acks,
                       struct slice batch, log_offset *base);
struct kp_fetch_response; // core/protocol/gen/fetch_response.h
// Sessionless fetch of t-0.
struct kp_fetch_response *client_fetch(struct client *c, log_offset offset, int32_t max_wait_ms);
void client_send_fetch(struct client *c, log_offset offset, int32_t max_wait_ms, int32_t min_bytes);
void client_send_produce(struct client *c, const char *topic, partition_id partition, int16_t acks,
                         struct slice batch);

#endif
