// SPDX-License-Identifier: Apache-2.0
// What other verbs use of kraft-admin configs.
#ifndef KRAFT_TOOLS_ADMIN_CONFIGS_H
#define KRAFT_TOOLS_ADMIN_CONFIGS_H

#include "tools/kraft-admin/admin.h"

#define CONFIG_RESOURCE_TOPIC 2
#define CONFIG_RESOURCE_BROKER 4
#define CONFIG_RESOURCE_CLIENT_METRICS 16
#define CONFIG_RESOURCE_GROUP 32

// Sets the KEY=VALUE of each option `set` and takes back the KEY of each option `unset`. Heeds --dry-run.
// ADMIN_OK or an exit code.
int configs_change(struct admin *a, int8_t type, const char *name, const char *set, const char *unset);

// Puts the configs that are set on the topic itself into `out`. ADMIN_OK or an exit code.
int configs_of_topic(struct admin *a, struct slice topic, json_t *out);

#endif
