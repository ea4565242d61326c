// SPDX-License-Identifier: Apache-2.0
// Log lines: formatting of the fields, and the limiter.
#include "core/base/logline.h"

#include <stdio.h>

void log_writev(struct log_sink *sink, enum log_level level, const char *component, const char *message,
                const char *fields_fmt, va_list args)
{
    if (!sink || atomic_load_explicit(&sink->level, memory_order_relaxed) < (int)level)
        return;
    char fields[LOG_FIELDS_BYTES];
    if (vsnprintf(fields, sizeof fields, fields_fmt, args) < 0)
        fields[0] = 0;
    for (char *c = fields; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    struct log_line line = {level, component, message, fields};
    sink->write(sink, &line);
}

void log_write(struct log_sink *sink, enum log_level level, const char *component, const char *message,
               const char *fields_fmt, ...)
{
    va_list args;
    va_start(args, fields_fmt);
    log_writev(sink, level, component, message, fields_fmt, args);
    va_end(args);
}

const char *log_level_name(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return "ERROR";
    case LOG_LEVEL_WARN:
        return "WARN";
    case LOG_LEVEL_INFO:
        return "INFO";
    case LOG_LEVEL_DEBUG:
        return "DEBUG";
    }
    return "?";
}

bool log_limit_allow(struct log_limit *l, mono_us now, mono_us period_us, uint32_t lines, uint32_t *dropped)
{
    if (dropped)
        *dropped = 0;
    uint64_t start = atomic_load_explicit(&l->period_start, memory_order_relaxed);
    // The first line ever, and the first of each later period, opens it. 0 stands for "none yet": the stored
    // time is + 1.
    if (start == 0 || now + 1 - start >= period_us) {
        if (atomic_compare_exchange_strong(&l->period_start, &start, now + 1)) {
            uint32_t seen = atomic_exchange(&l->seen, 0);
            if (dropped && seen > lines)
                *dropped = seen - lines;
        }
    }
    return atomic_fetch_add_explicit(&l->seen, 1, memory_order_relaxed) < lines;
}
