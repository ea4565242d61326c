// SPDX-License-Identifier: Apache-2.0
// System calls of kraft-format: the configuration file, directories, random bytes.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/base/uuid.h"
#include "tools/kraft-format/format.h"

extern char **environ;

#define CONFIG_BYTES_MAX (16U << 20) // a larger file is no server.properties

void format_random(void *out, size_t len)
{
    uint8_t *p = out;
    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0 && errno != EINTR) {
            UNREACHABLE("the kernel gives random bytes to everybody");
        }
        p += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

struct uuid format_random_uuid(void *data)
{
    uint8_t bytes[16];
    struct uuid id;
    do {
        format_random(bytes, sizeof bytes);
    } while (!uuid_from_random(bytes, &id));
    return id;
}

char *format_read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        return NULL;
    }
    char *text = NULL;
    size_t cap = 0, n;
    *len = 0;
    do {
        cap = cap ? cap * 2 : 4096;
        text = mem_realloc(text, cap);
        n = fread(text + *len, 1, cap - *len - 1, f);
        *len += n;
    } while (n > 0 && *len < CONFIG_BYTES_MAX);
    bool bad = ferror(f) != 0;
    (void)fclose(f);
    if (bad) {
        mem_free(text);
        errno = EIO;
        return NULL;
    }
    text[*len] = '\0';
    return text;
}

static int sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    int rc = fsync(fd) ? errno : 0;
    (void)close(fd);
    return rc;
}

static int make_one(char *path, struct errmsg *msg)
{
    if (mkdir(path, 0755) == 0) {
        char *slash = strrchr(path, '/');
        int rc;
        if (!slash) {
            rc = sync_directory(".");
        } else if (slash == path) {
            rc = sync_directory("/");
        } else {
            *slash = '\0';
            rc = sync_directory(path);
            *slash = '/';
        }
        return rc ? err_set(msg, ERR_IO, "%s: %s", path, strerror(rc)) : 0;
    }
    struct stat st;
    if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        return 0;
    }
    if (errno == EEXIST) {
        return err_set(msg, ERR_EXISTS, "%s is a file, not a directory: name another directory in log.dirs",
                       path);
    }
    return err_set(msg, ERR_IO,
                   "the directory %s cannot be made (%s): make it and give it to the user that runs the "
                   "server, or name another one "
                   "in log.dirs",
                   path, strerror(errno));
}

int format_make_directory(const char *path, struct errmsg *msg)
{
    char *copy = mem_strdup(path);
    int rc = 0;
    for (char *p = copy + 1; *copy && rc == 0; p++) {
        if (*p == '/' || *p == '\0') {
            char kept = *p;
            *p = '\0';
            rc = make_one(copy, msg);
            *p = kept;
            if (kept == '\0') {
                break;
            }
        }
    }
    if (rc == 0 && access(path, W_OK | X_OK) != 0) {
        rc = err_set(msg, ERR_IO,
                     "the directory %s cannot be written (%s): give it to the user that runs the server",
                     path, strerror(errno));
    }
    mem_free(copy);
    return rc;
}

static void print_warning(void *data, const char *text)
{
    fprintf(stderr, "kraft-format: warning: %s\n", text);
}

enum format_exit format_load_config(const struct format_options *o, struct server_config **out)
{
    struct errmsg msg = {""};
    size_t len;
    char *text = format_read_file(o->config_path, &len);
    *out = NULL;
    if (!text) {
        fprintf(stderr, "kraft-format: %s cannot be read (%s): --config names the node's server.properties\n",
                o->config_path, strerror(errno));
        return FORMAT_FAILED;
    }
    struct config_values values;
    config_values_init(&values);
    int rc = config_values_add_file(&values, slice_of(text, len), &msg);
    mem_free(text);
    config_values_add_environment(&values, environ);
    for (unsigned i = 0; rc == 0 && i < o->overrides_count; i++) {
        rc = config_values_add_override(&values, o->overrides[i], &msg);
    }
    struct config_warn warn = {print_warning, NULL};
    rc = rc ? rc : server_config_make(&values, &warn, out, &msg);
    config_values_fini(&values);
    if (rc) {
        fprintf(stderr, "kraft-format: %s: %s\n", o->config_path, msg.text);
        return FORMAT_REFUSED;
    }
    char host[HOST_NAME_MAX + 1];
    if (gethostname(host, sizeof host) == 0) {
        server_config_set_host(*out, host);
    }
    return FORMAT_OK;
}
