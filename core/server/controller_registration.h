// SPDX-License-Identifier: Apache-2.0
// A controller makes itself known to the cluster: its endpoints and features (ControllerRegistration,
// KIP-919).
#ifndef KRAFT_SERVER_CONTROLLER_REGISTRATION_H
#define KRAFT_SERVER_CONTROLLER_REGISTRATION_H

#include "core/base/node.h"
#include "core/base/uuid.h"
#include "core/config/endpoint.h"

struct controller_channel;
struct controller_registration;
struct image;
struct log_sink;

struct controller_registration_opts {
    struct node *node;                      // the world
    struct node_loop *loop;                 // controller loop
    struct log_sink *log;                   // may be NULL
    struct controller_channel *channel;     // on that loop; outlives this
    node_id id;                             // node.id
    const struct config_endpoint *endpoint; // as others reach it; constant
};

struct controller_registration *
controller_registration_create(const struct controller_registration_opts *opts);
// A newer image: registers when it does not hold this start of the process.
void controller_registration_image(struct controller_registration *r, const struct image *image);
void controller_registration_free(struct controller_registration *r);

#endif
