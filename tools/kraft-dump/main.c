// SPDX-License-Identifier: Apache-2.0
// kraft-dump: shows what is in the files and frames of a cluster.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/kraft-dump/dump.h"

struct command {
    const char *name;    // word on the command line
    dump_command *run;   // what it does
    const char *purpose; // line in the help
};

static const struct command commands[] = {
    {"log", dump_log, "show segments, snapshots, indexes"},
    {"metadata", dump_metadata, "show the cluster's state at an offset, or what changed"},
    {"wire", dump_wire, "turn protocol messages from hex to JSON and back"},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
    fputs("kraft-dump shows what is in the files and frames of a cluster.\n\n"
          "Usage: kraft-dump COMMAND [OPTION]...\n\nCommands:\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].purpose);
    fputs("\nkraft-dump COMMAND --help tells more.\n"
          "Exit status: 0 all shown, 1 some input is damaged or unknown, 2 bad command line, 3 a file cannot "
          "be read.\n",
          out);
}

int dump_usage_error(const char *command, const char *fmt, ...)
{
    va_list args;
    fprintf(stderr, "kraft-dump %s: ", command);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\nkraft-dump %s --help shows how it is used.\n", command);
    return DUMP_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return DUMP_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return DUMP_OK;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "kraft-dump: there is no command %s; kraft-dump --help lists them.\n", argv[1]);
    return DUMP_USAGE;
}
