// SPDX-License-Identifier: Apache-2.0
// Reads lines in large pieces.
#include "tools/kraft-admin/lines.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "core/base/mem.h"

#define PIECE_BYTES (256 << 10) // bytes asked for at once

void lines_init(struct lines *l, int fd)
{
    *l = (struct lines){.fd = fd};
}

void lines_fini(struct lines *l)
{
    mem_free(l->data);
    l->data = NULL;
}

static void read_more(struct lines *l)
{
    if (l->from > 0) {
        memmove(l->data, l->data + l->from, l->to - l->from);
        l->to -= l->from;
        l->from = 0;
    }
    if (l->room - l->to < PIECE_BYTES) {
        l->room = 2 * l->room + PIECE_BYTES;
        l->data = mem_realloc(l->data, l->room);
    }
    ssize_t n;
    do
        n = read(l->fd, l->data + l->to, l->room - l->to);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        l->ended = true;
    else
        l->to += (size_t)n;
}

static uint8_t *find_end(const struct lines *l, size_t from)
{
    return from < l->to ? memchr(l->data + from, '\n', l->to - from) : NULL;
}

bool lines_next(struct lines *l, struct slice *line)
{
    uint8_t *end;
    size_t seen = l->from;
    while (!(end = find_end(l, seen)) && !l->ended) {
        seen = l->to - l->from; // read_more moves the bytes to the front
        read_more(l);
    }
    if (!end && l->from == l->to)
        return false;
    size_t len = (end ? (size_t)(end - l->data) : l->to) - l->from;
    *line = slice_of(l->data + l->from, len);
    l->from += len + (end != NULL);
    return true;
}

bool lines_would_wait(struct lines *l, int ms)
{
    if (l->ended || find_end(l, l->from))
        return false;
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    return poll(&p, 1, ms) == 0;
}
