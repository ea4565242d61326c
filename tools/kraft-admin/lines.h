// SPDX-License-Identifier: Apache-2.0
// Lines of a file or of standard input, and whether the next one would have to be waited for.
#ifndef KRAFT_TOOLS_ADMIN_LINES_H
#define KRAFT_TOOLS_ADMIN_LINES_H

#include "core/base/slice.h"

struct lines {
    int fd;          // where they come from
    uint8_t *data;   // bytes read and not yet given; owned
    size_t from, to; // part of `data` that holds them
    size_t room;     // size of `data`
    bool ended;      // there is nothing more to read
};

void lines_init(struct lines *l, int fd);
void lines_fini(struct lines *l);

// Takes the next line, without its end; it is valid until the next call. False: the input has ended.
bool lines_next(struct lines *l, struct slice *line);

// Would lines_next wait for more than `ms`?
bool lines_would_wait(struct lines *l, int ms);

#endif
