// SPDX-License-Identifier: Apache-2.0
// Error codes: their texts, the message buffer, and what errno values mean.
#include "core/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

int err_set(struct errmsg *msg, int code, const char *fmt, ...)
{
    if (msg) {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(msg->text, sizeof msg->text, fmt, args);
        va_end(args);
    }
    return code;
}

void err_prefix(struct errmsg *msg, const char *fmt, ...)
{
    if (!msg)
        return;
    char old[ERRMSG_BYTES];
    memcpy(old, msg->text, sizeof old);
    old[sizeof old - 1] = 0;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(msg->text, sizeof msg->text, fmt, args);
    va_end(args);
    size_t at = n < 0 ? 0 : (size_t)n;
    if (at < sizeof msg->text - 1)
        (void)snprintf(msg->text + at, sizeof msg->text - at, "%s%s", old[0] ? ": " : "", old);
}

const char *err_text(int code)
{
    switch (code) {
#define X(name, number, text)                                                                                \
    case name:                                                                                               \
        return text;
        ERR_LIST(X)
#undef X
    default:
        return "unknown error";
    }
}

int err_from_errno(int errno_value)
{
    switch (errno_value) {
    case 0:
        return ERR_OK;
    case ENOSPC:
    case EDQUOT:
        return ERR_NOSPACE;
    case ENOENT:
        return ERR_NOTFOUND;
    case EEXIST:
    case EADDRINUSE:
        return ERR_EXISTS;
    case EINVAL:
        return ERR_INVALID;
    case EFBIG:
    case EMSGSIZE:
        return ERR_TOO_LARGE;
    case EBUSY:
    case EMFILE: // no descriptor left just now
    case ENFILE:
        return ERR_BUSY;
    case ECANCELED:
        return ERR_CANCELED;
    case EAGAIN:
    case EINTR:
        return ERR_AGAIN;
    case ENOSYS:
    case EOPNOTSUPP:
        return ERR_UNSUPPORTED;
    case ENOMEM:
        return ERR_NOMEM;
    case ECONNREFUSED:
        return ERR_REFUSED;
    case ECONNRESET:
    case EPIPE:
    case ECONNABORTED:
        return ERR_RESET;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    default:
        return ERR_IO;
    }
}
