// SPDX-License-Identifier: Apache-2.0
// Structured log lines: level, component, message and key=value fields, to a sink that the program chose.
//
// A message is a constant text that says what happened; what varies stands in the fields, so that lines can
// be searched and counted. The sink adds the time.
#ifndef KRAFT_BASE_LOGLINE_H
#define KRAFT_BASE_LOGLINE_H

#include <stdarg.h>
#include <stdatomic.h>
#include "core/base/types.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

struct log_line {
    enum log_level level;  // how grave
    const char *component; // room or part that speaks: "net", "log", "controller" ...
    const char *message;   // what happened
    const char *fields;    // "key=value key=value", without line breaks; "" where there are none
};

// Where lines go. The user's struct has this as a member.
struct log_sink {
    void (*write)(struct log_sink *s,
                  const struct log_line *line); // any thread, many at once; must not block for long
    _Atomic int level;                          // lines above it are dropped before formatting
};

#define LOG_FIELDS_BYTES 1024 // longest fields of a line, with the NUL; longer ones are cut

// Any thread. `sink` NULL: dropped. `fields_fmt` as printf, e.g. "topic=%s partition=%d"; control characters
// in the result are replaced by spaces.
void log_write(struct log_sink *sink, enum log_level level, const char *component, const char *message,
               const char *fields_fmt, ...) __attribute__((format(printf, 5, 6)));
void log_writev(struct log_sink *sink, enum log_level level, const char *component, const char *message,
                const char *fields_fmt, va_list args) __attribute__((format(printf, 5, 0)));

#define log_error(sink, component, message, ...)                                                             \
    log_write(sink, LOG_LEVEL_ERROR, component, message, __VA_ARGS__)
#define log_warn(sink, component, message, ...)                                                              \
    log_write(sink, LOG_LEVEL_WARN, component, message, __VA_ARGS__)
#define log_info(sink, component, message, ...)                                                              \
    log_write(sink, LOG_LEVEL_INFO, component, message, __VA_ARGS__)
#define log_debug(sink, component, message, ...)                                                             \
    do {                                                                                                     \
        if ((sink) && atomic_load_explicit(&(sink)->level, memory_order_relaxed) >= LOG_LEVEL_DEBUG)         \
            log_write(sink, LOG_LEVEL_DEBUG, component, message, __VA_ARGS__);                               \
    } while (0)

const char *log_level_name(enum log_level level); // "ERROR", "WARN", "INFO", "DEBUG"

// Lets a few lines of one kind through in each period and counts the rest. Zero it before first use. Any
// thread.
struct log_limit {
    _Atomic uint64_t period_start; // mono_us at which the running period began
    _Atomic uint32_t seen;         // lines asked for in it
};
// May this line be written? At most `lines` in `period_us`. *dropped: lines dropped in the period before, to
// be told in this line's fields; may be NULL.
bool log_limit_allow(struct log_limit *l, mono_us now, mono_us period_us, uint32_t lines, uint32_t *dropped);

#endif
