// SPDX-License-Identifier: Apache-2.0
// The one table of configuration keys: name, type, default, what is allowed, when it may change, what it
// means.
//
// Parser, checks, DescribeConfigs and the manual come from it. Names, types and defaults are those of Apache
// Kafka 4.4; keys of our own begin with "kraft.".
#ifndef KRAFT_CONFIG_KEY_H
#define KRAFT_CONFIG_KEY_H

#include "core/base/err.h"
#include "core/base/slice.h"

// Numbers of the DescribeConfigs response (ConfigType).
enum config_type {
    CONFIG_BOOLEAN = 1,
    CONFIG_STRING = 2,
    CONFIG_INT = 3,
    CONFIG_SHORT = 4,
    CONFIG_LONG = 5,
    CONFIG_DOUBLE = 6,
    CONFIG_LIST = 7,
    CONFIG_CLASS = 8,
    CONFIG_PASSWORD = 9,
};

// Whose key it is. The first four are resources of DescribeConfigs, by its numbers; the last two are not
// configs but quotas.
enum config_kind {
    CONFIG_KIND_TOPIC = 2,
    CONFIG_KIND_BROKER = 4,
    CONFIG_KIND_CLIENT_METRICS = 16,
    CONFIG_KIND_GROUP = 32,
    CONFIG_KIND_QUOTA_CLIENT = 100, // entities user and client-id
    CONFIG_KIND_QUOTA_IP = 101,     // entity ip
};

enum config_importance { CONFIG_HIGH, CONFIG_MEDIUM, CONFIG_LOW };

// When a broker key may change at run time.
enum config_dynamic {
    CONFIG_READ_ONLY,    // file only
    CONFIG_PER_BROKER,   // for one broker
    CONFIG_CLUSTER_WIDE, // for one broker or as the cluster's default
};

enum config_flag {
    CONFIG_INTERNAL = 1, // not listed and not documented by Kafka
    CONFIG_REQUIRED = 2, // has no default and must be given
    CONFIG_OBEYED = 4,   // this release acts on it; without it the key is known, checked and has no effect
    CONFIG_OURS = 8,     // Kafka has no such key
};

#define CONFIG_BROKER_KEYS_MAX                                                                               \
    3 // longest list of broker keys behind a topic key: retention in ms, minutes and hours

struct config_key {
    const char *name;  // as in files
    const char *value; // default in text form; NULL: none
    const char *valid; // what is allowed, see core/config/check.h; NULL: all values of the type
    const char *doc;   // one sentence; NULL where the key has no effect
    const char *broker_keys[CONFIG_BROKER_KEYS_MAX]; // topic and group keys: the broker keys behind them,
                                                     // strongest first
    uint8_t kind;                                    // enum config_kind
    uint8_t type;                                    // enum config_type
    uint8_t importance;                              // enum config_importance
    uint8_t dynamic;                                 // enum config_dynamic; broker keys only
    uint8_t flags;                                   // enum config_flag
};

// A key by name; NULL where there is none. A broker key may have the prefix "listener.name.NAME." where Kafka
// allows one, and then "MECHANISM." before the sasl keys; the key without prefix is given.
const struct config_key *config_find(enum config_kind kind, struct slice name);

// All keys of a kind, sorted by name: config_key_at(kind, 0 .. config_key_count(kind) - 1).
size_t config_key_count(enum config_kind kind);
const struct config_key *config_key_at(enum config_kind kind, size_t index);

static inline bool config_is_sensitive(const struct config_key *k)
{
    return k->type == CONFIG_PASSWORD;
}
static inline bool config_is_read_only(const struct config_key *k)
{
    return k->kind == CONFIG_KIND_BROKER && k->dynamic == CONFIG_READ_ONLY;
}

// The known key whose name is nearest to a mistyped one; NULL where none is near.
const char *config_nearest(enum config_kind kind, struct slice name);
// For a key that Kafka 4.0 removed: one sentence that says what to do instead; NULL for others.
const char *config_removed(struct slice name);

#endif
