// SPDX-License-Identifier: Apache-2.0
// Finds keys by name, near misses of them, and advice for keys that are gone.
#include "core/config/key.h"

#include "core/config/table.h"

#define PARTS_MAX 3
#define NAME_BYTES_MAX 96 // longer names are near nothing

struct part {
    const struct config_key *keys; // sorted by name
    size_t count;                  // of them
};

// The parts of a kind in order; those not used have a count of 0.
static void parts_of(enum config_kind kind, struct part out[PARTS_MAX])
{
    memset(out, 0, sizeof(struct part) * PARTS_MAX);
    switch (kind) {
    case CONFIG_KIND_BROKER:
        out[0] = (struct part){config__broker_a, config__broker_a_count};
        out[1] = (struct part){config__broker_i, config__broker_i_count};
        out[2] = (struct part){config__broker_r, config__broker_r_count};
        break;
    case CONFIG_KIND_TOPIC:
        out[0] = (struct part){config__topic, config__topic_count};
        break;
    case CONFIG_KIND_GROUP:
        out[0] = (struct part){config__group, config__group_count};
        break;
    case CONFIG_KIND_CLIENT_METRICS:
        out[0] = (struct part){config__client_metrics, config__client_metrics_count};
        break;
    case CONFIG_KIND_QUOTA_CLIENT:
        out[0] = (struct part){config__quota_client, config__quota_client_count};
        break;
    case CONFIG_KIND_QUOTA_IP:
        out[0] = (struct part){config__quota_ip, config__quota_ip_count};
        break;
    }
}

size_t config_key_count(enum config_kind kind)
{
    struct part parts[PARTS_MAX];
    parts_of(kind, parts);
    return parts[0].count + parts[1].count + parts[2].count;
}

const struct config_key *config_key_at(enum config_kind kind, size_t index)
{
    struct part parts[PARTS_MAX];
    parts_of(kind, parts);
    for (int i = 0; i < PARTS_MAX; i++) {
        if (index < parts[i].count) {
            return &parts[i].keys[index];
        }
        index -= parts[i].count;
    }
    return NULL;
}

static const struct config_key *find_exact(enum config_kind kind, struct slice name)
{
    size_t low = 0, high = config_key_count(kind);
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct config_key *k = config_key_at(kind, middle);
        int order = slice_compare(name, slice_str(k->name));
        if (order == 0) {
            return k;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

// What follows the first '.', or null.
static struct slice after_dot(struct slice s)
{
    const uint8_t *dot = s.len > 0 ? memchr(s.data, '.', s.len) : NULL;
    return dot ? slice_of(dot + 1, s.len - (size_t)(dot + 1 - s.data)) : SLICE_NULL;
}

const struct config_key *config_find(enum config_kind kind, struct slice name)
{
    const struct config_key *k = find_exact(kind, name);
    static const char prefix[] = "listener.name.";
    size_t n = sizeof prefix - 1;
    if (k || kind != CONFIG_KIND_BROKER || name.len <= n || memcmp(name.data, prefix, n) != 0) {
        return k;
    }
    struct slice rest = after_dot(slice_of(name.data + n, name.len - n)); // past the listener's name
    if (!slice_is_null(rest)) {
        k = find_exact(kind, rest);
        if (!k) { // past the mechanism
            rest = after_dot(rest);
            k = !slice_is_null(rest) && rest.len > 5 && memcmp(rest.data, "sasl.", 5) == 0
                    ? find_exact(kind, rest)
                    : NULL;
        }
    }
    return k && (k->dynamic == CONFIG_PER_BROKER || memcmp(k->name, "s", 1) == 0 ||
                 memcmp(k->name, "max.c", 5) == 0 || memcmp(k->name, "connections.", 12) == 0)
               ? k
               : NULL;
}

// Edits that make `a` of `b` (insert, delete, replace, swap of neighbours).
static size_t distance(struct slice a, struct slice b)
{
    size_t rows[3][NAME_BYTES_MAX + 1];
    for (size_t j = 0; j <= b.len; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t best = above[j - 1] + (a.data[i - 1] != b.data[j - 1]);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1] &&
                two_above[j - 2] + 1 < best) {
                best = two_above[j - 2] + 1;
            }
            row[j] = best;
        }
    }
    return rows[a.len % 3][b.len];
}

const char *config_nearest(enum config_kind kind, struct slice name)
{
    const char *best = NULL;
    if (name.len == 0 || name.len > NAME_BYTES_MAX) {
        return NULL;
    }
    size_t limit = name.len / 4 < 4 ? name.len / 4 : 4;
    size_t best_distance = limit + 1;
    for (size_t i = 0; i < config_key_count(kind); i++) {
        struct slice known = slice_str(config_key_at(kind, i)->name);
        size_t gap = known.len > name.len ? known.len - name.len : name.len - known.len;
        if (gap >= best_distance || known.len > NAME_BYTES_MAX) {
            continue;
        }
        size_t d = distance(name, known);
        if (d < best_distance) {
            best_distance = d;
            best = (const char *)known.data;
        }
    }
    return best;
}

static const struct {
    const char *name;   // key; a '*' at the end stands for any rest
    const char *advice; // one sentence
} removed[] = {
    {"zookeeper.*",
     "There is no ZooKeeper any more; name the controllers in controller.quorum.bootstrap.servers."},
    {"control.plane.listener.name",
     "Controllers have listeners of their own; see controller.listener.names."},
    {"offsets.commit.required.acks", "Offset commits are always replicated like acks=all; remove it."},
    {"broker.id.generation.enable", "Give each node its node.id."},
    {"reserved.broker.max.id", "Any node.id from 0 on is allowed; remove it."},
    {"controlled.shutdown.max.retries", "The controller drives the shutdown; remove it."},
    {"controlled.shutdown.retry.backoff.ms", "The controller drives the shutdown; remove it."},
    {"delegation.token.master.key", "Use delegation.token.secret.key."},
    {"inter.broker.protocol.version",
     "It became the feature level metadata.version; raise it with kraft-admin."},
    {"log.message.format.version", "Batches of version 2 are the only format; remove it."},
    {"log.message.timestamp.difference.max.ms",
     "Use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms."},
    {"log.message.downconversion.enable", "Clients of Kafka 2.1 and later need no conversion; remove it."},
    {"password.encoder.*", "Passwords in dynamic configs are not encoded; remove it."},
    {"auto.include.jmx.reporter", "Use metric.reporters."},
    {"eligible.leader.replicas.enable", "It became the feature level eligible.leader.replicas.version."},
    {"metadata.log.segment.min.bytes", "Use metadata.log.segment.bytes."},
    {"group.coordinator.new.enable", "There is only one group coordinator; remove it."},
    {"group.share.enable", "It became the feature level share.version."},
    {"share.fetch.max.fetch.records", "Remove it."},
    {"group.share.max.groups", "Remove it."},
    {"internal.metadata.max.fetch.size.in.bytes", "Use controller.quorum.fetch.max.bytes."},
};

const char *config_removed(struct slice name)
{
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
        struct slice known = slice_str(removed[i].name);
        bool prefix = known.data[known.len - 1] == '*';
        known.len -= prefix;
        if (prefix ? name.len >= known.len && memcmp(name.data, known.data, known.len) == 0
                   : slice_equal(name, known)) {
            return removed[i].advice;
        }
    }
    return NULL;
}
