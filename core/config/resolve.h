// SPDX-License-Identifier: Apache-2.0
// Which value of a key holds, where it comes from, and what else would: the precedence of DescribeConfigs.
//
// Broker key: dynamic for this broker, dynamic default of the cluster, file, built-in default. Topic key: the
// topic's own, then the chain of its broker keys. Group key: the group's own, then the chain of its broker
// key.
#ifndef KRAFT_CONFIG_RESOLVE_H
#define KRAFT_CONFIG_RESOLVE_H

#include "core/base/arena.h"
#include "core/config/key.h"
#include "core/config/values.h"

// Numbers of the DescribeConfigs response (ConfigSource).
enum config_source {
    CONFIG_SOURCE_UNKNOWN = 0,
    CONFIG_SOURCE_TOPIC = 1,
    CONFIG_SOURCE_DYNAMIC_BROKER = 2,
    CONFIG_SOURCE_DYNAMIC_CLUSTER = 3,
    CONFIG_SOURCE_FILE = 4,
    CONFIG_SOURCE_DEFAULT = 5,
    CONFIG_SOURCE_BROKER_LOGGER = 6,
    CONFIG_SOURCE_CLIENT_METRICS = 7,
    CONFIG_SOURCE_GROUP = 8,
};

// Where dynamic values come from: one resource, by key. Answers null where it has none. The bytes live as
// long as the caller needs them.
struct config_layer {
    struct slice (*get)(const void *data, struct slice key); // NULL: the layer is empty
    const void *data;                                        // its first argument
};
struct config_chain {
    struct config_layer resource;     // the topic, group or client metrics resource itself
    struct config_layer broker;       // dynamic configs of this broker
    struct config_layer cluster;      // dynamic defaults of all brokers
    const struct config_values *file; // what the operator set; may be NULL
};

struct config_synonym {
    struct slice name;         // key
    struct slice value;        // as set there, in that key's unit; may be null
    enum config_source source; // where
};
#define CONFIG_SYNONYMS_MAX (1 + 4 * CONFIG_BROKER_KEYS_MAX)
struct config_answer {
    struct slice value;        // in the unit of the key asked for; may be null
    enum config_source source; // of the value
    int32_t synonyms_count;    // all that are set, strongest first
    struct config_synonym synonyms[CONFIG_SYNONYMS_MAX];
    char text[24]; // room for a value that was converted (hours to ms); `value` may point here
};

// The value of `key` (found by config_find; `name` is as asked, with its listener prefix where it has one).
// Fills *out; it must not be copied, since `value` may point into it.
void config_resolve(const struct config_chain *chain, const struct config_key *key, struct slice name,
                    struct config_answer *out);

// Numbers and words of a resolved value, where it is known to be good. Keys by constant name; MUST be of the
// kind and type.
int64_t config_resolve_long(const struct config_chain *chain, enum config_kind kind, const char *name);
bool config_resolve_bool(const struct config_chain *chain, enum config_kind kind, const char *name);
double config_resolve_double(const struct config_chain *chain, enum config_kind kind, const char *name);
struct slice config_resolve_text(const struct config_chain *chain, enum config_kind kind,
                                 const char *name); // trimmed; null: not set

// ---- changes

// Judges one entry of AlterConfigs or CreateTopics before a record is written: known, alterable at run time
// (for a named broker or, with `cluster_default`, for all), good value. 0, ERR_NOTFOUND (unknown key) or
// ERR_INVALID.
int config_check_entry(enum config_kind kind, bool cluster_default, struct slice name, struct slice value,
                       struct errmsg *msg);

struct config_pair {
    struct slice name;  // key
    struct slice value; // not null
};
// Judges all entries that a resource will have, together: each as above, then what must hold between them,
// over the chain (its `resource` layer is not used). 0 or an error as above.
int config_check_resource(enum config_kind kind, bool cluster_default, const struct config_pair *pairs,
                          size_t count, const struct config_chain *chain, struct errmsg *msg);

// The list that results of APPEND (`append`) or SUBTRACT of the elements of `change`; in `arena`.
struct slice config_list_change(struct slice list, struct slice change, bool append, struct arena *arena);

#endif
