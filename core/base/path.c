// SPDX-License-Identifier: Apache-2.0
// Joining and taking apart file paths.
#include "core/base/path.h"

#include <string.h>

#include "core/base/mem.h"

char *path_join(const char *dir, const char *name)
{
    size_t d = strlen(dir), n = strlen(name);
    bool slash = d > 0 && dir[d - 1] != '/';
    char *out = mem_alloc(d + slash + n + 1);
    memcpy(out, dir, d);
    if (slash)
        out[d] = '/';
    memcpy(out + d + slash, name, n + 1);
    return out;
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
