// SPDX-License-Identifier: Apache-2.0
// Finds the value that holds, its source, and all synonyms, strongest first.
#include "core/config/resolve.h"

#include <stdio.h>

#include "core/base/assert.h"
#include "core/config/check.h"

#define NAMES_MAX CONFIG_BROKER_KEYS_MAX

// Broker keys that speak of one thing in several units, strongest first
// (DynamicBrokerConfig.brokerConfigSynonyms).
static const char *const families[][NAMES_MAX] = {
    {"log.roll.ms", "log.roll.hours"},
    {"log.roll.jitter.ms", "log.roll.jitter.hours"},
    {"log.retention.ms", "log.retention.minutes", "log.retention.hours"},
};

// Broker keys whose values stand behind `key`, by name; the key itself is among them where it is a broker
// key.
static int names_of(const struct config_key *key, struct slice name, struct slice out[NAMES_MAX])
{
    int n = 0;
    if (key->kind != CONFIG_KIND_BROKER) {
        for (; n < CONFIG_BROKER_KEYS_MAX && key->broker_keys[n]; n++) {
            out[n] = slice_str(key->broker_keys[n]);
        }
        return n;
    }
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        for (int k = 0; k < NAMES_MAX && families[i][k]; k++) {
            if (strcmp(families[i][k], key->name) == 0) {
                for (; n < NAMES_MAX && families[i][n]; n++) {
                    out[n] = slice_str(families[i][n]);
                }
                return n;
            }
        }
    }
    out[n++] = name;
    if (!slice_equal_str(name, key->name)) {
        out[n++] = slice_str(key->name); // without the listener's prefix
    } else if (strcmp(key->name, "log.flush.interval.ms") == 0) {
        out[n++] = SLICE_LIT("log.flush.scheduler.interval.ms");
    }
    return n;
}

static struct slice layer_get(const struct config_layer *layer, struct slice key)
{
    return layer->get ? layer->get(layer->data, key) : SLICE_NULL;
}

static struct slice source_get(const struct config_chain *chain, enum config_source source, struct slice name)
{
    switch (source) {
    case CONFIG_SOURCE_DYNAMIC_BROKER:
        return layer_get(&chain->broker, name);
    case CONFIG_SOURCE_DYNAMIC_CLUSTER:
        return layer_get(&chain->cluster, name);
    case CONFIG_SOURCE_FILE: {
        const struct config_entry *e = chain->file ? config_values_find(chain->file, name) : NULL;
        return e ? e->value : SLICE_NULL;
    }
    case CONFIG_SOURCE_DEFAULT: {
        const struct config_key *k = config_find(CONFIG_KIND_BROKER, name);
        return k && slice_equal_str(name, k->name) ? slice_str(k->value) : SLICE_NULL;
    }
    default:
        return SLICE_NULL;
    }
}

static enum config_source own_source(const struct config_key *key)
{
    return key->kind == CONFIG_KIND_TOPIC   ? CONFIG_SOURCE_TOPIC
           : key->kind == CONFIG_KIND_GROUP ? CONFIG_SOURCE_GROUP
                                            : CONFIG_SOURCE_CLIENT_METRICS;
}

static void add(struct config_answer *out, struct slice name, struct slice value, enum config_source source)
{
    MUST(out->synonyms_count < CONFIG_SYNONYMS_MAX);
    out->synonyms[out->synonyms_count++] = (struct config_synonym){name, value, source};
}

static bool ends_with(struct slice s, const char *tail)
{
    size_t n = strlen(tail);
    return s.len >= n && memcmp(s.data + s.len - n, tail, n) == 0;
}

// Milliseconds in the unit of a broker key, where the key asked for counts in milliseconds.
static int64_t unit_of(const struct config_key *key, struct slice name)
{
    if (key->kind == CONFIG_KIND_BROKER || !ends_with(slice_str(key->name), ".ms")) {
        return 1;
    }
    return ends_with(name, ".hours") ? 3600000 : ends_with(name, ".minutes") ? 60000 : 1;
}

// A synonym's number in the unit of `key`; all below zero mean "no limit" where units differ.
static bool number_of(const struct config_key *key, const struct config_synonym *s, int64_t *out)
{
    int64_t unit = unit_of(key, s->name), n;
    if (!config_read_long(s->value, &n)) {
        return false;
    }
    if (unit != 1 && n < 0) {
        n = -1;
    } else if (__builtin_mul_overflow(n, unit, &n)) {
        n = INT64_MAX;
    }
    *out = n;
    return true;
}

void config_resolve(const struct config_chain *chain, const struct config_key *key, struct slice name,
                    struct config_answer *out)
{
    static const enum config_source order[] = {CONFIG_SOURCE_DYNAMIC_BROKER, CONFIG_SOURCE_DYNAMIC_CLUSTER,
                                               CONFIG_SOURCE_FILE, CONFIG_SOURCE_DEFAULT};
    struct slice names[NAMES_MAX];
    int names_count = names_of(key, name, names);
    out->synonyms_count = 0;
    out->value = SLICE_NULL;
    bool own = key->kind != CONFIG_KIND_BROKER;
    if (own) {
        struct slice value = layer_get(&chain->resource, name);
        if (!slice_is_null(value)) {
            add(out, name, value, own_source(key));
        }
    }
    for (size_t s = 0; s < sizeof order / sizeof *order; s++) {
        for (int i = 0; i < names_count; i++) {
            struct slice value = source_get(chain, order[s], names[i]);
            if (!slice_is_null(value)) {
                add(out, names[i], value, order[s]);
            }
        }
    }
    if (own && names_count == 0 && key->value) {
        add(out, name, slice_str(key->value), CONFIG_SOURCE_DEFAULT);
    }
    out->source = out->synonyms_count > 0 ? out->synonyms[0].source : CONFIG_SOURCE_DEFAULT;
    bool plain = !own && slice_equal_str(name, key->name);
    for (int32_t i = 0; i < out->synonyms_count && slice_is_null(out->value); i++) {
        const struct config_synonym *s = &out->synonyms[i];
        int64_t n;
        if (plain && !slice_equal(s->name, name)) {
            continue; // a broker key shows its own value, even where one in another unit holds
        }
        out->value = s->value;
        if (unit_of(key, s->name) != 1 && number_of(key, s, &n)) {
            int len = snprintf(out->text, sizeof out->text, "%lld", (long long)n);
            out->value = slice_of(out->text, (size_t)len);
        }
    }
}

// The strongest synonym that is a good value for the key.
static const struct config_synonym *best(const struct config_chain *chain, enum config_kind kind,
                                         const char *name, struct config_answer *answer,
                                         const struct config_key **key)
{
    *key = config_find(kind, slice_str(name));
    MUST(*key != NULL);
    config_resolve(chain, *key, slice_str((*key)->name), answer);
    for (int32_t i = 0; i < answer->synonyms_count; i++) {
        const struct config_synonym *s = &answer->synonyms[i];
        const struct config_key *own = s->source == CONFIG_SOURCE_TOPIC || s->source == CONFIG_SOURCE_GROUP ||
                                               s->source == CONFIG_SOURCE_CLIENT_METRICS
                                           ? *key
                                           : config_find(CONFIG_KIND_BROKER, s->name);
        if (own == NULL || config_check(own, s->value, NULL) == 0) {
            return s;
        }
    }
    return NULL;
}

int64_t config_resolve_long(const struct config_chain *chain, enum config_kind kind, const char *name)
{
    struct config_answer answer;
    const struct config_key *key;
    const struct config_synonym *s = best(chain, kind, name, &answer, &key);
    int64_t n = 0;
    return s && number_of(key, s, &n) ? n : -1;
}

bool config_resolve_bool(const struct config_chain *chain, enum config_kind kind, const char *name)
{
    struct config_answer answer;
    const struct config_key *key;
    const struct config_synonym *s = best(chain, kind, name, &answer, &key);
    bool b = false;
    return s && config_read_bool(s->value, &b) && b;
}

double config_resolve_double(const struct config_chain *chain, enum config_kind kind, const char *name)
{
    struct config_answer answer;
    const struct config_key *key;
    const struct config_synonym *s = best(chain, kind, name, &answer, &key);
    double d = 0;
    return s && config_read_double(s->value, &d) ? d : 0;
}

struct slice config_resolve_text(const struct config_chain *chain, enum config_kind kind, const char *name)
{
    struct config_answer answer;
    const struct config_key *key;
    const struct config_synonym *s = best(chain, kind, name, &answer, &key);
    return s ? config_trim(s->value) : SLICE_NULL;
}
