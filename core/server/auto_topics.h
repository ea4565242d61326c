// SPDX-License-Identifier: Apache-2.0
// Topics that are made because somebody asked for them (auto.create.topics.enable, internal topics).
#ifndef KRAFT_SERVER_AUTO_TOPICS_H
#define KRAFT_SERVER_AUTO_TOPICS_H

#include "core/server/broker.h"

struct forwarder;
struct server_config;

// broker_ops.auto_create_topics: CreateTopics with this broker's defaults, forwarded in the client's name.
void auto_topics_create(struct forwarder *fw, const struct server_config *config, struct request *rq,
                        const struct slice *names, unsigned count,
                        void (*done)(struct request *rq, const int16_t *errors, unsigned count));

#endif
