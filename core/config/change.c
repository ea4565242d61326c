// SPDX-License-Identifier: Apache-2.0
// Judges changes of configs before a record is written: a bad value in the log would stop every later start.
#include "core/config/resolve.h"

#include <stdio.h>

#include "core/base/strbuf.h"
#include "core/config/check.h"

#define NAME_BYTES_MAX 128 // longest name of a broker key that bounds a group key

static const char *kind_name(enum config_kind kind)
{
    switch (kind) {
    case CONFIG_KIND_TOPIC:
        return "topic";
    case CONFIG_KIND_GROUP:
        return "group";
    case CONFIG_KIND_CLIENT_METRICS:
        return "client metrics";
    default:
        return "broker";
    }
}

int config_check_entry(enum config_kind kind, bool cluster_default, struct slice name, struct slice value,
                       struct errmsg *msg)
{
    const struct config_key *key = config_find(kind, name);
    if (!key) {
        const char *near = config_nearest(kind, name);
        return err_set(msg, ERR_NOTFOUND, "Unknown %s config name: " SLICE_FMT "%s%s", kind_name(kind),
                       SLICE_ARG(name), near ? "; did you mean " : "", near ? near : "");
    }
    if (config_is_read_only(key)) {
        return err_set(msg, ERR_INVALID, "Cannot update %s dynamically; set it in the file and restart",
                       key->name);
    }
    if (kind == CONFIG_KIND_BROKER && cluster_default && key->dynamic == CONFIG_PER_BROKER) {
        return err_set(msg, ERR_INVALID, "Cannot update %s at default cluster level; name a broker",
                       key->name);
    }
    if (slice_is_null(value)) {
        return 0;
    }
    return config_check(key, value, msg);
}

// ---- what must hold between keys

struct pairs {
    const struct config_pair *at; // entries
    size_t count;                 // of them
};

static struct slice pairs_get(const void *data, struct slice key)
{
    const struct pairs *p = data;
    for (size_t i = 0; i < p->count; i++) {
        if (slice_equal(p->at[i].name, key)) {
            return p->at[i].value;
        }
    }
    return SLICE_NULL;
}

static int check_topic(const struct config_chain *chain, struct errmsg *msg)
{
    int64_t min_lag = config_resolve_long(chain, CONFIG_KIND_TOPIC, "min.compaction.lag.ms");
    int64_t max_lag = config_resolve_long(chain, CONFIG_KIND_TOPIC, "max.compaction.lag.ms");
    if (min_lag > max_lag) {
        return err_set(
            msg, ERR_INVALID,
            "conflict topic config setting min.compaction.lag.ms (%lld) > max.compaction.lag.ms (%lld)",
            (long long)min_lag, (long long)max_lag);
    }
    if (config_resolve_bool(chain, CONFIG_KIND_TOPIC, "remote.storage.enable") &&
        !config_resolve_bool(chain, CONFIG_KIND_BROKER, "remote.log.storage.system.enable")) {
        return err_set(
            msg, ERR_INVALID,
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with "
            "remote log storage.");
    }
    return 0;
}

// A group key lies within the broker's group.TYPE.min.X and group.TYPE.max.X, where there are such.
static int check_group_bound(const struct config_chain *chain, const struct config_key *key,
                             struct slice value, bool lower, struct errmsg *msg)
{
    char name[NAME_BYTES_MAX];
    const char *dot = strchr(key->name, '.');
    int64_t n;
    if (!dot || !config_read_long(value, &n) ||
        snprintf(name, sizeof name, "group.%.*s.%s.%s", (int)(dot - key->name), key->name,
                 lower ? "min" : "max", dot + 1) >= (int)sizeof name ||
        !config_find(CONFIG_KIND_BROKER, slice_str(name))) {
        return 0;
    }
    int64_t bound = config_resolve_long(chain, CONFIG_KIND_BROKER, name);
    if (lower ? n >= bound : n <= bound) {
        return 0;
    }
    return err_set(msg, ERR_INVALID, "%s must be %s %s (%lld), not %lld", key->name,
                   lower ? "greater than or equal to" : "less than or equal to", name, (long long)bound,
                   (long long)n);
}

int config_check_resource(enum config_kind kind, bool cluster_default, const struct config_pair *pairs,
                          size_t count, const struct config_chain *chain, struct errmsg *msg)
{
    struct pairs own = {pairs, count};
    struct config_chain with = *chain;
    with.resource = (struct config_layer){pairs_get, &own};
    for (size_t i = 0; i < count; i++) {
        int rc = config_check_entry(kind, cluster_default, pairs[i].name, pairs[i].value, msg);
        const struct config_key *key = config_find(kind, pairs[i].name);
        if (!rc && kind == CONFIG_KIND_GROUP) {
            rc = check_group_bound(&with, key, pairs[i].value, true, msg);
            rc = rc ? rc : check_group_bound(&with, key, pairs[i].value, false, msg);
        }
        int64_t n;
        if (!rc && kind == CONFIG_KIND_BROKER && strcmp(key->name, "log.retention.ms") == 0 &&
            config_read_long(pairs[i].value, &n) && (n == 0 || n < -1)) {
            rc = err_set(msg, ERR_INVALID, "log.retention.ms must be -1 (no limit) or 1 and more");
        }
        if (rc) {
            return rc;
        }
    }
    return kind == CONFIG_KIND_TOPIC ? check_topic(&with, msg) : 0;
}

// ---- lists

static bool list_has_slice(struct slice list, struct slice element)
{
    struct slice one;
    while (config_list_next(&list, &one)) {
        if (slice_equal(one, element)) {
            return true;
        }
    }
    return false;
}

struct slice config_list_change(struct slice list, struct slice change, bool append, struct arena *arena)
{
    struct strbuf out;
    struct slice rest = list, one;
    strbuf_init(&out);
    while (config_list_next(&rest, &one)) {
        if (append || !list_has_slice(change, one)) {
            strbuf_printf(&out, "%s" SLICE_FMT, out.len ? "," : "", SLICE_ARG(one));
        }
    }
    rest = change;
    while (append && config_list_next(&rest, &one)) {
        if (!list_has_slice(strbuf_slice(&out), one)) {
            strbuf_printf(&out, "%s" SLICE_FMT, out.len ? "," : "", SLICE_ARG(one));
        }
    }
    struct slice kept = slice_of(arena_dup(arena, strbuf_text(&out), out.len + 1), out.len);
    strbuf_fini(&out);
    return kept;
}
