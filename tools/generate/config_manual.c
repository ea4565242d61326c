// SPDX-License-Identifier: Apache-2.0
// Prints docs/configuration.md from the table of keys, so that manual and server never disagree.
#include <stdio.h>
#include <string.h>

#include "core/config/key.h"

static const char *const types[] = {"",     "boolean", "string", "int",   "short",
                                    "long", "double",  "list",   "class", "password"};
static const char *const dynamics[] = {"file only", "one broker", "cluster or one broker"};

static const char intro[] =
    "# Configuration\n"
    "\n"
    "<!-- Made by tools/generate/config_manual.c from the table in core/config. Change the table, then build "
    "`config-manual` and\n"
    "run it into this file; a test compares the two. -->\n"
    "\n"
    "A node reads `server.properties`, Java's properties format with Kafka's keys. On top of the file come "
    "environment variables, on\n"
    "top of these `--override key=value` of the command line; the later one wins.\n"
    "\n"
    "A variable's name is `KAFKA_` or `KRAFT_` and the key in upper case, with `_` for a dot, `__` for an "
    "underscore and `___` for a dash:\n"
    "`KAFKA_LOG_RETENTION_MS` is `log.retention.ms`. Where both are there, `KRAFT_` wins. Variables of "
    "Kafka's own scripts (`KAFKA_HEAP_OPTS` and\n"
    "the like) are left alone.\n"
    "\n"
    "A key that nobody knows is warned about, with the nearest known one; so is one that Kafka 4.0 removed, "
    "with what replaced it. A\n"
    "value that cannot be, or keys that do not fit together, keep the node from starting: the message says "
    "what to write instead.\n"
    "`kraft-server --check-config FILE` checks a file and ends.\n"
    "\n"
    "Which value holds, strongest first: for a broker key the dynamic config of the broker, the dynamic "
    "default of the cluster, the\n"
    "file (environment and overrides included), the default. For a topic key the topic's own config, then "
    "the chain of the broker key behind it.\n"
    "Retention and roll times may be given in several units: ms win over minutes, minutes over hours.\n"
    "\n"
    "This release serves PLAINTEXT listeners and has no access control: it refuses to start with other "
    "listeners or with\n"
    "`authorizer.class.name`, so that no door stands open that was believed to be shut.\n";

static void print_value(const char *value)
{
    if (!value) {
        fputs("-", stdout);
    } else if (!*value) {
        fputs("empty", stdout);
    } else if (strcmp(value, "9223372036854775807") == 0) {
        fputs("no limit", stdout);
    } else {
        printf("`%s`", value);
    }
}

static void print_obeyed(enum config_kind kind, const char *title)
{
    bool broker = kind == CONFIG_KIND_BROKER;
    printf("\n## %s\n\n| key | type | default | allowed | %s | meaning |\n|---|---|---|---|---|---|\n", title,
           broker ? "may change" : "broker key behind it");
    for (size_t i = 0; i < config_key_count(kind); i++) {
        const struct config_key *k = config_key_at(kind, i);
        if (!(k->flags & CONFIG_OBEYED) || (k->flags & CONFIG_INTERNAL)) {
            continue;
        }
        printf("| `%s` | %s | ", k->name, types[k->type]);
        if (k->flags & CONFIG_REQUIRED) {
            fputs("must be given", stdout);
        } else {
            print_value(k->value);
        }
        printf(" | %s | ", k->valid ? k->valid : "");
        if (broker) {
            fputs(dynamics[k->dynamic], stdout);
        }
        for (int b = 0; b < CONFIG_BROKER_KEYS_MAX && k->broker_keys[b]; b++) {
            printf("%s`%s`", b ? ", " : "", k->broker_keys[b]);
        }
        printf(" | %s%s |\n", k->doc, k->flags & CONFIG_OURS ? " Kafka 4 has no such key." : "");
    }
}

static void print_idle(enum config_kind kind, const char *title)
{
    const char *separator = "";
    printf("\n### %s\n\n", title);
    for (size_t i = 0; i < config_key_count(kind); i++) {
        const struct config_key *k = config_key_at(kind, i);
        if (!(k->flags & (CONFIG_OBEYED | CONFIG_INTERNAL))) {
            printf("%s`%s`", separator, k->name);
            separator = ",\n";
        }
    }
    puts("");
}

int main(void)
{
    fputs(intro, stdout);
    print_obeyed(CONFIG_KIND_BROKER, "Keys of a node");
    print_obeyed(CONFIG_KIND_TOPIC, "Keys of a topic");
    fputs("\n## Known keys without effect in this release\n\nTheir values are checked, stored and shown as "
          "Kafka does. A node says at its start which of "
          "them its file sets.\n",
          stdout);
    print_idle(CONFIG_KIND_BROKER, "Of a node");
    print_idle(CONFIG_KIND_TOPIC, "Of a topic");
    print_idle(CONFIG_KIND_GROUP, "Of a group");
    print_idle(CONFIG_KIND_CLIENT_METRICS, "Of client metrics");
    return 0;
}
