// SPDX-License-Identifier: Apache-2.0
// Collects what the operator set, from file, environment and command line.
#include "core/config/values.h"

#include <ctype.h>

#include "core/base/mem.h"
#include "core/base/properties.h"
#include "core/base/strbuf.h"
#include "core/config/key.h"

void config_values_init(struct config_values *v)
{
    *v = (struct config_values){.count = 0};
    arena_init(&v->arena);
    hmap_init(&v->by_key, HMAP_SLICE);
}

void config_values_fini(struct config_values *v)
{
    hmap_fini(&v->by_key);
    mem_free(v->items);
    arena_fini(&v->arena);
    v->items = NULL;
    v->count = v->cap = 0;
}

static struct slice keep(struct config_values *v, struct slice s)
{
    char *copy = arena_alloc(&v->arena, s.len + 1);
    if (s.len > 0) {
        memcpy(copy, s.data, s.len);
    }
    copy[s.len] = '\0';
    return slice_of(copy, s.len);
}

void config_values_set(struct config_values *v, struct slice key, struct slice value,
                       enum config_origin origin, uint32_t line)
{
    struct config_entry *e = hmap_get(&v->by_key, key);
    if (!e) {
        e = arena_zalloc(&v->arena, sizeof *e);
        e->key = keep(v, key);
        (void)hmap_put(&v->by_key, e->key, e);
        if (v->count == v->cap) {
            v->cap = v->cap ? v->cap * 2 : 32;
            v->items = mem_realloc(v->items, v->cap * sizeof(struct config_entry *));
        }
        v->items[v->count++] = e;
    }
    e->value = keep(v, value);
    e->origin = origin;
    e->line = line;
}

int config_values_add_file(struct config_values *v, struct slice text, struct errmsg *msg)
{
    struct properties p;
    properties_init(&p);
    int rc = properties_parse(&p, text, msg);
    for (size_t i = 0; rc == 0 && i < p.count; i++) {
        config_values_set(v, p.items[i].key, p.items[i].value, CONFIG_FROM_FILE, p.items[i].line);
    }
    properties_fini(&p);
    return rc;
}

// Variables of Kafka's start scripts and images, and of Kubernetes: not configuration.
static bool is_script_variable(const char *name, size_t len)
{
    static const char *const names[] = {
        "KAFKA_VERSION",       "KAFKA_HEAP_OPTS",
        "KAFKA_LOG4J_OPTS",    "KAFKA_OPTS",
        "KAFKA_JMX_OPTS",      "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_GC_LOG_OPTS",   "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_LOG4J_LOGGERS", "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_CLUSTER_ID",    "KAFKA_JMX_PORT",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0) {
            return true;
        }
    }
    return false;
}

// "LOG_RETENTION_MS" -> "log.retention.ms"; "__" is '_', "___" is '-'.
static void key_of_variable(const char *name, size_t len, struct strbuf *out)
{
    strbuf_clear(out);
    for (size_t i = 0; i < len;) {
        size_t run = 0;
        while (run < 3 && i + run < len && name[i + run] == '_') {
            run++;
        }
        if (run == 0) {
            strbuf_add_char(out, (char)tolower((unsigned char)name[i]));
            i++;
        } else {
            strbuf_add_char(out, run == 1 ? '.' : run == 2 ? '_' : '-');
            i += run;
        }
    }
}

void config_values_add_environment(struct config_values *v, char *const *environment)
{
    struct strbuf key;
    strbuf_init(&key);
    // Two rounds, so that KRAFT_ wins over KAFKA_ whatever the order of the variables.
    for (int round = 0; round < 2; round++) {
        const char *prefix = round == 0 ? "KAFKA_" : "KRAFT_";
        for (size_t i = 0; environment && environment[i]; i++) {
            const char *name = environment[i], *equals = strchr(name, '=');
            if (!equals || strncmp(name, prefix, 6) != 0 || equals == name + 6 ||
                is_script_variable(name, (size_t)(equals - name))) {
                continue;
            }
            key_of_variable(name + 6, (size_t)(equals - name) - 6, &key);
            struct slice k = strbuf_slice(&key);
            if (round == 1 && !config_find(CONFIG_KIND_BROKER, k)) {
                // A key of our own: KRAFT_NETWORK_LOOPS is kraft.network.loops.
                struct strbuf own;
                strbuf_init(&own);
                strbuf_printf(&own, "kraft.%s", strbuf_text(&key));
                if (config_find(CONFIG_KIND_BROKER, strbuf_slice(&own))) {
                    config_values_set(v, strbuf_slice(&own), slice_str(equals + 1), CONFIG_FROM_ENVIRONMENT,
                                      0);
                    strbuf_fini(&own);
                    continue;
                }
                strbuf_fini(&own);
            }
            if (config_find(CONFIG_KIND_BROKER, k) || config_removed(k) ||
                config_nearest(CONFIG_KIND_BROKER, k)) {
                config_values_set(v, k, slice_str(equals + 1), CONFIG_FROM_ENVIRONMENT, 0);
            }
        }
    }
    strbuf_fini(&key);
}

int config_values_add_override(struct config_values *v, const char *text, struct errmsg *msg)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        return err_set(msg, ERR_INVALID, "--override needs key=value, not \"%s\"", text);
    }
    config_values_set(v, slice_of(text, (size_t)(equals - text)), slice_str(equals + 1), CONFIG_FROM_OVERRIDE,
                      0);
    return 0;
}

const struct config_entry *config_values_find(const struct config_values *v, struct slice key)
{
    return hmap_get(&v->by_key, key);
}

struct slice config_values_get(const struct config_values *v, const char *key)
{
    const struct config_entry *e = config_values_find(v, slice_str(key));
    return e ? e->value : SLICE_NULL;
}
