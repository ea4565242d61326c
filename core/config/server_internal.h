// SPDX-License-Identifier: Apache-2.0
// What the files that make a node's configuration share; for core/config only.
#ifndef KRAFT_CONFIG_SERVER_INTERNAL_H
#define KRAFT_CONFIG_SERVER_INTERNAL_H

#include "core/config/server_config.h"

// Values as given, else the default; every one has been checked by its key before.
struct slice config__text(const struct server_config *c,
                          const char *name); // null: neither given nor a default
int64_t config__long(const struct server_config *c, const char *name);
bool config__bool(const struct server_config *c, const char *name);
bool config__given(const struct server_config *c, const char *name);
const char *config__keep(struct server_config *c, struct slice text); // NUL-terminated copy in c->arena

// Listeners, advertised listeners, the controller's, the inter-broker one. ERR_INVALID.
int config__make_listeners(struct server_config *c, struct errmsg *msg);

#endif
