// SPDX-License-Identifier: Apache-2.0
// The command line of kraft-admin: words, and options of the form --name value, --name=value or --name.
#ifndef KRAFT_TOOLS_ADMIN_ARGS_H
#define KRAFT_TOOLS_ADMIN_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#define ARGS_OPTIONS_MAX 256 // options and words of one command line

struct args_option {
    const char *name;  // without the dashes
    const char *value; // NULL: a flag
};
struct args {
    struct args_option options[ARGS_OPTIONS_MAX]; // as they came
    int options_count;                            // of them
    const char *words[ARGS_OPTIONS_MAX];          // what is no option
    int words_count;                              // of them
    char error[200];                              // why the line cannot be understood
};

// Reads argv[0..argc). `known` lists the options, ended by NULL; a name that takes a value ends in '='.
// Options that every command has are known anyway: bootstrap-server=, output=, timeout=, client-id=, help.
// False: see `error`.
bool args_parse(struct args *a, int argc, char **argv, const char *const *known);

bool args_flag(const struct args *a, const char *name);
const char *args_value(const struct args *a, const char *name);           // the last one; NULL: not given
const char *args_each(const struct args *a, const char *name, int *next); // all, in order; *next starts at 0
// Whole number of an option; `otherwise` where it is not given. False: no number in the range; see `error`.
bool args_number(struct args *a, const char *name, int64_t low, int64_t high, int64_t otherwise,
                 int64_t *out);

#endif
