// SPDX-License-Identifier: Apache-2.0
// The command line of kraft-server.
#ifndef KRAFT_TOOLS_SERVER_OPTIONS_H
#define KRAFT_TOOLS_SERVER_OPTIONS_H

#include <stdbool.h>

#define OVERRIDES_MAX 256 // --override on one command line

enum options_verdict {
    OPTIONS_RUN,  // go on
    OPTIONS_DONE, // help or version was printed: exit 0
    OPTIONS_BAD,  // a message was printed: exit 2
};

struct options {
    const char *properties;               // path of server.properties
    const char *log_file;                 // --log-file; NULL: stderr
    const char *overrides[OVERRIDES_MAX]; // key=value
    unsigned overrides_count;             // of them
    bool check_config;                    // --check-config
    bool disk_replaced;                   // --disk-replaced
    bool debug;                           // --debug
};

enum options_verdict options_parse(int argc, char **argv, struct options *out);

#endif
