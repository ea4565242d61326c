// SPDX-License-Identifier: Apache-2.0
// What the operator set: properties file, then environment, then command line; the later one wins.
#ifndef KRAFT_CONFIG_VALUES_H
#define KRAFT_CONFIG_VALUES_H

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/base/hmap.h"
#include "core/base/slice.h"

enum config_origin {
    CONFIG_FROM_FILE,        // server.properties
    CONFIG_FROM_ENVIRONMENT, // KAFKA_ or KRAFT_ variables
    CONFIG_FROM_OVERRIDE,    // --override key=value
};

struct config_entry {
    struct slice key;          // as given
    struct slice value;        // as given; NUL-terminated
    enum config_origin origin; // where from
    uint32_t line;             // line in the file; 0 elsewhere
};

// Fixed once the server runs; then any thread may read it.
struct config_values {
    struct arena arena;          // holds all bytes
    struct hmap by_key;          // key -> struct config_entry *
    struct config_entry **items; // in order of appearance
    size_t count, cap;           // entries, room
};

void config_values_init(struct config_values *v);
void config_values_fini(struct config_values *v);
// Adds or replaces; copies both.
void config_values_set(struct config_values *v, struct slice key, struct slice value,
                       enum config_origin origin, uint32_t line);
// Adds what a properties file says. ERR_INVALID as properties_parse.
int config_values_add_file(struct config_values *v, struct slice text, struct errmsg *msg);
// Adds KAFKA_ and KRAFT_ variables: the rest of the name in lower case, "_" for ".", "__" for "_", "___" for
// "-". Variables that Kafka's scripts use for themselves (KAFKA_HEAP_OPTS, ...) and names that are no key and
// near none are left out.
void config_values_add_environment(struct config_values *v, char *const *environment);
// Adds "key=value" of the command line. ERR_INVALID without "=".
int config_values_add_override(struct config_values *v, const char *text, struct errmsg *msg);
const struct config_entry *config_values_find(const struct config_values *v,
                                              struct slice key);                // NULL: not set
struct slice config_values_get(const struct config_values *v, const char *key); // null: not set

#endif
