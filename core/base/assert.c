// SPDX-License-Identifier: Apache-2.0
// How a broken assertion ends the process.
#include "core/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void assert_fail(const char *kind, const char *cond, const char *file, int line)
{
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, kind, cond);
    fflush(stderr);
    abort();
}
