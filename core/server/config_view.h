// SPDX-License-Identifier: Apache-2.0
// Configuration as the image and the file together say it: the chains of core/config/resolve.h over an image,
// and the validator that the controller's decider asks.
#ifndef KRAFT_SERVER_CONFIG_VIEW_H
#define KRAFT_SERVER_CONFIG_VIEW_H

#include "core/config/resolve.h"
#include "core/controller/controller.h"

struct server_config;

// What the layers of a chain point to; lives as long as the chain is used.
struct config_view {
    const struct image *image;          // borrowed
    const struct image_config *self;    // the resource's own entries; may be NULL
    const struct image_config *broker;  // of this broker; may be NULL
    const struct image_config *cluster; // defaults of all brokers; may be NULL
    char broker_name[16];               // decimal node id
};
// Chain for a resource (`type` = enum config_resource_type) as broker `id` sees it. For a broker resource
// `self` is not a layer of its own.
void config_view_chain(struct config_view *v, const struct image *image, const struct config_values *file,
                       node_id id, int8_t type, struct slice name, struct config_chain *out);

// A validator over this node's file and any image. Free with mem_free.
struct config_validator *config_view_validator(const struct server_config *config);

#endif
