// SPDX-License-Identifier: Apache-2.0
// Log lines: "2026-01-31T12:00:00.123Z INFO  component message key=value", written whole so that threads do
// not mix.
#include "tools/kraft-server/log_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 1536 // time, level, component, message, fields, newline

static void write_line(struct log_sink *sink, const struct log_line *line)
{
    struct log_lines *l = (struct log_lines *)sink;
    char buf[LINE_BYTES];
    struct timespec now;
    struct tm tm;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(buf, sizeof buf, "%Y-%m-%dT%H:%M:%S", &tm);
    int more = snprintf(buf + n, sizeof buf - n, ".%03ldZ %-5s %s: %s%s%s", now.tv_nsec / 1000000,
                        log_level_name(line->level), line->component, line->message,
                        line->fields[0] ? " " : "", line->fields);
    size_t len = n + (more < 0 ? 0 : (size_t)more);
    if (len > sizeof buf - 1)
        len = sizeof buf - 1;
    buf[len++] = '\n';
    ssize_t written = write(l->fd, buf, len);
    (void)written; // there is nobody to tell
}

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

int log_lines_open(struct log_lines *l, const char *path, bool debug)
{
    l->sink.write = write_line;
    atomic_store(&l->sink.level, debug ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
    l->path = path;
    l->fd = path ? open_file(path) : STDERR_FILENO;
    return l->fd < 0 ? errno : 0;
}

void log_lines_reopen(struct log_lines *l)
{
    int fd = l->path ? open_file(l->path) : -1;
    if (fd < 0)
        return; // the old file goes on
    (void)dup2(fd, l->fd);
    (void)close(fd);
}
