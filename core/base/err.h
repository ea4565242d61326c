// SPDX-License-Identifier: Apache-2.0
// The one list of error codes of the rooms below core/server, and the caller's message buffer.
//
// Functions return 0 or one of these. The message goes into the caller's buffer (may be NULL); outer layers
// prefix it. Translation to Kafka's protocol error codes happens in core/server/error_map.c only.
#ifndef KRAFT_BASE_ERR_H
#define KRAFT_BASE_ERR_H

#define ERR_LIST(X)                                                                                          \
    X(ERR_OK, 0, "ok")                                                                                       \
    X(ERR_IO, 1, "input/output error")                                                                       \
    X(ERR_NOSPACE, 2, "no space left on the device")                                                         \
    X(ERR_CORRUPT, 3, "corrupt data")                                                                        \
    X(ERR_NOTFOUND, 4, "not found")                                                                          \
    X(ERR_EXISTS, 5, "exists already")                                                                       \
    X(ERR_INVALID, 6, "invalid value")                                                                       \
    X(ERR_TOO_LARGE, 7, "too large")                                                                         \
    X(ERR_BUSY, 8, "busy")                                                                                   \
    X(ERR_CANCELED, 9, "canceled")                                                                           \
    X(ERR_AGAIN, 10, "try again")                                                                            \
    X(ERR_UNSUPPORTED, 11, "not supported")                                                                  \
    X(ERR_STATE, 12, "not possible in this state")                                                           \
    X(ERR_NOMEM, 13, "out of memory")                                                                        \
    X(ERR_REFUSED, 14, "connection refused")                                                                 \
    X(ERR_RESET, 15, "connection reset")                                                                     \
    X(ERR_TIMEOUT, 16, "timed out")                                                                          \
    X(ERR_RANGE, 17, "offset out of range")                                                                  \
    X(ERR_LOCKED, 18, "locked by another process")                                                           \
    X(ERR_OFFLINE, 19, "log directory is offline")                                                           \
    X(ERR_MALFORMED, 20, "malformed message")                                                                \
    X(ERR_RESOLVE, 21, "host name does not resolve")                                                         \
    X(ERR_NOTLEADER, 22, "not the leader")                                                                   \
    X(ERR_FENCED, 23, "fenced by a newer epoch")

enum err {
#define X(name, code, text) name = code,
    ERR_LIST(X)
#undef X
};

#define ERRMSG_BYTES 512 // longest message of an error, with its NUL

// The caller's message buffer: what went wrong and, where something can be done, what to do.
struct errmsg {
    char text[ERRMSG_BYTES]; // NUL-terminated; empty where no error was set
};

// Sets the message (printf style; cut at ERRMSG_BYTES) and returns `code`, so that a caller can write
// `return err_set(msg, ERR_IO, "...")`. `msg` may be NULL.
int err_set(struct errmsg *msg, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// Puts "PREFIX: " before the message that is there. `msg` may be NULL.
void err_prefix(struct errmsg *msg, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Constant text of a code; "unknown error" for a code that is not in the list.
const char *err_text(int code);

// Translates an errno value (positive) to a code: ENOSPC, EDQUOT -> ERR_NOSPACE, ENOENT -> ERR_NOTFOUND,
// EMFILE -> ERR_BUSY, ..., everything else ERR_IO.
int err_from_errno(int errno_value);

#endif
