// SPDX-License-Identifier: Apache-2.0
// What the subcommands of kraft-dump share.
#ifndef KRAFT_TOOLS_DUMP_H
#define KRAFT_TOOLS_DUMP_H

#include <stdbool.h>

#define DUMP_OK 0    // all that was asked for was shown
#define DUMP_BAD 1   // some of the input is damaged or unknown; the rest was shown
#define DUMP_USAGE 2 // the command line cannot be understood
#define DUMP_IO 3    // a file cannot be read

// A subcommand: argv[0] is its name. Gives the exit status.
typedef int dump_command(int argc, char **argv);

dump_command dump_wire;

// Prints to stderr and gives DUMP_USAGE.
int dump_usage_error(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
