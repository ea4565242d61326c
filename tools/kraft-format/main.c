// SPDX-License-Identifier: Apache-2.0
// kraft-format: prepares the directories of a node before its first start. Takes kafka-storage's options too.
#include <stdio.h>
#include <string.h>

#include "core/base/uuid.h"
#include "tools/kraft-format/format.h"

static const char help[] =
    "kraft-format prepares the directories of a node before its first start.\n"
    "\n"
    "Usage:\n"
    "  kraft-format random-uuid\n"
    "  kraft-format [format] --config FILE --cluster-id ID [OPTION]...\n"
    "  kraft-format info --config FILE\n"
    "\n"
    "A first node, controller and broker in one:\n"
    "  kraft-format format --config server.properties --cluster-id $(kraft-format random-uuid) --standalone\n"
    "Three controllers at once, the same list on each of them (ids by random-uuid):\n"
    "  kraft-format format -c server.properties -t ID \\\n"
    "    --initial-controllers 1@host1:9093:DIR-ID1,2@host2:9093:DIR-ID2,3@host3:9093:DIR-ID3\n"
    "\n"
    "Options of format (in brackets: for short)\n"
    "  --config FILE [-c]             the node's server.properties\n"
    "  --cluster-id ID [-t]           id of the cluster, the same on every node: 22 characters\n"
    "  --standalone [-s]              this controller alone is the first voter\n"
    "  --initial-controllers LIST [-I]  the first voters: id@host:port:DIRECTORY-ID, separated by commas\n"
    "  --no-initial-controllers [-N]  this node joins a cluster that is there already\n"
    "  --add-scram TEXT [-S]          a user: SCRAM-SHA-256=[name=alice,password=secret] (or SHA-512; more:\n"
    "                                 iterations=4096, salt=BASE64, saltedpassword=BASE64); may be repeated\n"
    "  --ignore-formatted [-g]        leave directories alone that are formatted, format the others\n"
    "  --release-version VERSION [-r] feature levels of this release, as 4.3\n"
    "  --feature NAME=LEVEL [-f]      level of one feature; may be repeated\n"
    "  --override KEY=VALUE           as if the file said so; may be repeated\n"
    "  --dry-run                      check everything, write nothing\n"
    "\n"
    "Exit status: 0 done, 1 refused, 2 bad command line, 3 a file cannot be read or written.\n";

struct option {
    const char *name;  // with its dashes
    const char *brief; // one letter; NULL none
    bool takes_value;  // the next argument, or what follows '='
};
enum {
    O_CONFIG,
    O_CLUSTER,
    O_STANDALONE,
    O_INITIAL,
    O_NO_INITIAL,
    O_SCRAM,
    O_IGNORE,
    O_RELEASE,
    O_FEATURE,
    O_OVERRIDE,
    O_DRY
};
static const struct option options[] = {
    [O_CONFIG] = {"--config", "-c", true},
    [O_CLUSTER] = {"--cluster-id", "-t", true},
    [O_STANDALONE] = {"--standalone", "-s", false},
    [O_INITIAL] = {"--initial-controllers", "-I", true},
    [O_NO_INITIAL] = {"--no-initial-controllers", "-N", false},
    [O_SCRAM] = {"--add-scram", "-S", true},
    [O_IGNORE] = {"--ignore-formatted", "-g", false},
    [O_RELEASE] = {"--release-version", "-r", true},
    [O_FEATURE] = {"--feature", "-f", true},
    [O_OVERRIDE] = {"--override", NULL, true},
    [O_DRY] = {"--dry-run", NULL, false},
};
#define OPTIONS (int)(sizeof options / sizeof *options)

static int usage(const char *what, const char *argument)
{
    fprintf(stderr, "kraft-format: %s%s\nkraft-format --help shows how it is used.\n", what, argument);
    return FORMAT_USAGE;
}

// Which option is `argument`? Its value, where it stands behind '=', in *value. -1: none.
static int find_option(const char *argument, const char **value)
{
    *value = NULL;
    for (int i = 0; i < OPTIONS; i++) {
        size_t n = strlen(options[i].name);
        if (strcmp(argument, options[i].name) == 0 ||
            (options[i].brief && strcmp(argument, options[i].brief) == 0)) {
            return i;
        }
        if (options[i].takes_value && strncmp(argument, options[i].name, n) == 0 && argument[n] == '=') {
            *value = argument + n + 1;
            return i;
        }
    }
    return -1;
}

static bool push(const char **list, unsigned *count, const char *value)
{
    if (*count == FORMAT_LIST_MAX) {
        return false;
    }
    list[(*count)++] = value;
    return true;
}

static bool apply(struct format_options *o, int option, const char *value)
{
    switch (option) {
    case O_CONFIG:
        o->config_path = value;
        return true;
    case O_CLUSTER:
        o->cluster_id = value;
        return true;
    case O_STANDALONE:
        return o->standalone = true;
    case O_INITIAL:
        o->initial_controllers = value;
        return true;
    case O_NO_INITIAL:
        return o->no_initial_controllers = true;
    case O_SCRAM:
        return push(o->scram, &o->scram_count, value);
    case O_IGNORE:
        return o->ignore_formatted = true;
    case O_RELEASE:
        o->release_version = value;
        return true;
    case O_FEATURE:
        return push(o->features, &o->features_count, value);
    case O_OVERRIDE:
        return push(o->overrides, &o->overrides_count, value);
    default:
        return o->dry_run = true;
    }
}

static int parse(int argc, char **argv, struct format_options *o)
{
    for (int i = 0; i < argc; i++) {
        const char *value;
        int option = find_option(argv[i], &value);
        if (option < 0) {
            return usage("there is no option ", argv[i]);
        }
        if (options[option].takes_value && !value) {
            if (i + 1 == argc) {
                return usage("a value is missing behind ", argv[i]);
            }
            value = argv[++i];
        }
        if (!apply(o, option, value)) {
            return usage("too many of ", options[option].name);
        }
    }
    return o->config_path ? FORMAT_OK
                          : usage("--config FILE is missing: name the node's server.properties", "");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs(help, stderr);
        return FORMAT_USAGE;
    }
    const char *verb = argv[1];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 || strcmp(verb, "help") == 0) {
            fputs(help, stdout);
            return FORMAT_OK;
        }
    }
    if (strcmp(verb, "random-uuid") == 0) {
        if (argc > 2) {
            return usage("random-uuid takes no options", "");
        }
        char text[UUID_TEXT_BYTES];
        uuid_format(format_random_uuid(NULL), text);
        puts(text);
        return FORMAT_OK;
    }
    bool implied = verb[0] == '-'; // options alone mean format
    bool is_format = implied || strcmp(verb, "format") == 0;
    if (!is_format && strcmp(verb, "info") != 0) {
        return usage("there is no command ", verb);
    }
    struct format_options o = {.config_path = NULL};
    int rc = implied ? parse(argc - 1, argv + 1, &o) : parse(argc - 2, argv + 2, &o);
    if (rc) {
        return rc;
    }
    return (int)(is_format ? format_run(&o) : format_info(&o));
}
