// SPDX-License-Identifier: Apache-2.0
// kraft-admin: looks at a running cluster and changes it.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/kraft-admin/admin.h"

static const struct admin_verb *const groups[] = {cluster_verbs, topics_verbs,   partitions_verbs,
                                                  configs_verbs, features_verbs, quorum_verbs,
                                                  produce_verbs, consume_verbs};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static const char common_help[] =
    "Options of every command:\n"
    "  --bootstrap-server HOST:PORT[,...]  where the cluster is (or $KRAFT_BOOTSTRAP_SERVER)\n"
    "  --output table|json                 for people, or for programs\n"
    "  --timeout SECONDS                   longest wait for an answer (30)\n"
    "  --client-id NAME                    name that the servers log (kraft-admin)\n"
    "\n"
    "Exit status: 0 done, 1 refused by the cluster, 2 bad command line, 3 no server answers.\n";

static void print_help(FILE *out)
{
    fputs("kraft-admin looks at a running cluster and changes it.\n\n"
          "Usage: kraft-admin COMMAND [OPTION]...\n\nCommands:\n",
          out);
    for (size_t g = 0; g < GROUPS; g++)
        for (const struct admin_verb *v = groups[g]; v->name; v++)
            fprintf(out, "  %-18s %s\n", v->name, v->purpose);
    fprintf(out, "\nkraft-admin COMMAND --help tells more.\n\n%s", common_help);
}

// Does argv begin with the verb's words? Gives how many they are, or 0.
static int matches(const struct admin_verb *v, int argc, char **argv)
{
    size_t first = strcspn(v->name, " ");
    if (argc < 1 || strlen(argv[0]) != first || strncmp(argv[0], v->name, first) != 0)
        return 0;
    if (!v->name[first])
        return 1;
    return argc > 1 && strcmp(argv[1], v->name + first + 1) == 0 ? 2 : 0;
}

static const struct admin_verb *find_verb(int argc, char **argv, int *words)
{
    for (size_t g = 0; g < GROUPS; g++)
        for (const struct admin_verb *v = groups[g]; v->name; v++)
            if ((*words = matches(v, argc, argv)))
                return v;
    return NULL;
}

// Commands that begin with the word.
static void print_like(const char *word)
{
    for (size_t g = 0; g < GROUPS; g++)
        for (const struct admin_verb *v = groups[g]; v->name; v++)
            if (*word && strncmp(v->name, word, strlen(word)) == 0)
                fprintf(stderr, "  %-18s %s\n", v->name, v->purpose);
}

// `kraft-admin topics`, with or without --help: lists the commands of the group; gives how many there are.
static int print_group(FILE *out, const char *word)
{
    size_t len = strlen(word);
    int count = 0;
    for (size_t g = 0; g < GROUPS; g++)
        for (const struct admin_verb *v = groups[g]; v->name; v++)
            if (strncmp(v->name, word, len) == 0 && v->name[len] == ' ') {
                if (count++ == 0)
                    fprintf(out, "Commands of kraft-admin %s:\n", word);
                fprintf(out, "  %-18s %s\n", v->name, v->purpose);
            }
    if (count)
        fprintf(out, "\nkraft-admin COMMAND --help tells more.\n");
    return count;
}

static bool is_help(const char *text)
{
    return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0 || strcmp(text, "help") == 0;
}

static int run_verb(const struct admin_verb *v, int argc, char **argv)
{
    struct admin a = {.verb = v->name};
    struct kclient_options opts = {.client_id = "kraft-admin"};
    int64_t seconds;
    if (!args_parse(&a.args, argc, argv, v->options))
        return admin_usage(&a, "%s", a.args.error);
    if (args_flag(&a.args, "help")) {
        printf("kraft-admin %s: %s\n\n%s\n%s", v->name, v->purpose, v->help, common_help);
        return ADMIN_OK;
    }
    if (a.args.words_count)
        return admin_usage(&a, "%s is no option: names are given by options, as --topic NAME",
                           a.args.words[0]);
    const char *output = args_value(&a.args, "output"), *server = args_value(&a.args, "bootstrap-server");
    if (output && strcmp(output, "json") != 0 && strcmp(output, "table") != 0)
        return admin_usage(&a, "--output is table or json");
    a.json = output && strcmp(output, "json") == 0;
    if (!server)
        server = getenv("KRAFT_BOOTSTRAP_SERVER");
    if (!server)
        return admin_usage(&a, "--bootstrap-server is needed: HOST:PORT of a broker, or "
                               "KRAFT_BOOTSTRAP_SERVER in the environment");
    if (!args_number(&a.args, "timeout", 1, 86400, 30, &seconds))
        return admin_usage(&a, "%s", a.args.error);
    opts.timeout_ms = (int)seconds * 1000;
    if (args_value(&a.args, "client-id"))
        opts.client_id = args_value(&a.args, "client-id");
    arena_init(&a.arena);
    int rc = kclient_open(&a.client, server, &opts, &a.err);
    int status = rc == ERR_INVALID ? admin_usage(&a, "%s", a.err.text)
                 : rc              ? admin_failed(&a, rc)
                                   : v->run(&a);
    kclient_close(a.client);
    arena_fini(&a.arena);
    if (fflush(stdout) != 0 && status == ADMIN_OK)
        status = ADMIN_REFUSED;
    return status;
}

int main(int argc, char **argv)
{
    int words;
    if (argc < 2) {
        print_help(stderr);
        return ADMIN_USAGE;
    }
    if (is_help(argv[1])) {
        print_help(stdout);
        return ADMIN_OK;
    }
    const struct admin_verb *v = find_verb(argc - 1, argv + 1, &words);
    if (!v && argc > 2 && is_help(argv[2]) && print_group(stdout, argv[1]))
        return ADMIN_OK;
    if (!v && (argc == 2 || argv[2][0] == '-') && print_group(stderr, argv[1]))
        return ADMIN_USAGE;
    if (!v && argv[1][0] == '-') {
        fprintf(stderr,
                "kraft-admin: the command comes before its options, as in kraft-admin topics list %s\n",
                argv[1]);
        return ADMIN_USAGE;
    }
    if (!v) {
        fprintf(stderr, "kraft-admin: there is no command %s%s%s; kraft-admin --help lists them.\n", argv[1],
                argc > 2 ? " " : "", argc > 2 ? argv[2] : "");
        print_like(argv[1]);
        return ADMIN_USAGE;
    }
    return run_verb(v, argc - 1 - words, argv + 1 + words);
}
