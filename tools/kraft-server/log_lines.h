// SPDX-License-Identifier: Apache-2.0
// Log lines of a program: to stderr or a file, one write a line.
#ifndef KRAFT_TOOLS_SERVER_LOG_LINES_H
#define KRAFT_TOOLS_SERVER_LOG_LINES_H

#include "core/base/logline.h"

struct log_lines {
    struct log_sink sink; // first member
    const char *path;     // file; NULL: stderr
    int fd;               // where lines go; the same for the whole run
};

int log_lines_open(struct log_lines *l, const char *path, bool debug); // 0 or an errno value
void log_lines_reopen(struct log_lines *l); // opens the file anew under the same descriptor; any thread

#endif
