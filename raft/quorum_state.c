// SPDX-License-Identifier: Apache-2.0
// Reads and writes the quorum-state file.
#include "raft/quorum_state.h"

#include <stdlib.h>
#include "core/base/mem.h"
#include "core/base/path.h"
#include "core/base/strbuf.h"

#define STATE_NAME "quorum-state"
#define STATE_BYTES_MAX 65536

static int write_and_sync(struct vfs *fs, const char *path, struct slice text, struct errmsg *msg)
{
    struct vfs_file *f;
    int err = fs->ops->open(fs, path, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &f, msg);
    if (err)
        return err;
    struct iovec iov = {(void *)(uintptr_t)text.data, text.len};
    err = text.len ? fs->ops->pwritev(f, &iov, 1, 0) : 0;
    if (!err)
        err = fs->ops->sync(f);
    vfs_file_unref(f);
    return err ? err_set(msg, err, "%s: %s", path, err_text(err)) : 0;
}

int quorum_file_replace(struct vfs *fs, const char *dir, const char *name, struct slice text,
                        struct errmsg *msg)
{
    struct strbuf tmp_name;
    strbuf_init(&tmp_name);
    strbuf_printf(&tmp_name, "%s.tmp", name);
    char *tmp = path_join(dir, strbuf_text(&tmp_name));
    char *path = path_join(dir, name);
    int err = write_and_sync(fs, tmp, text, msg);
    if (!err) {
        err = fs->ops->rename(fs, tmp, path);
        if (!err)
            err = fs->ops->sync_dir(fs, dir);
        if (err)
            err = err_set(msg, err, "%s: %s", path, err_text(err));
    }
    mem_free(tmp);
    mem_free(path);
    strbuf_fini(&tmp_name);
    return err;
}

int quorum_file_read(struct vfs *fs, const char *dir, const char *name, size_t bytes_max, char **out,
                     struct errmsg *msg)
{
    char *path = path_join(dir, name);
    struct vfs_file *f;
    int err = fs->ops->open(fs, path, VFS_READ, &f, NULL);
    if (err) {
        err = err == ERR_NOTFOUND ? err : err_set(msg, err, "%s: %s", path, err_text(err));
        mem_free(path);
        return err;
    }
    uint64_t size = 0;
    size_t got = 0;
    char *text = NULL;
    err = fs->ops->size(f, &size);
    if (!err && size > bytes_max) {
        err = ERR_TOO_LARGE;
    } else if (!err) {
        text = mem_alloc((size_t)size + 1);
        err = fs->ops->pread(f, text, (size_t)size, 0, &got);
        text[got] = 0;
    }
    vfs_file_unref(f);
    if (err) {
        mem_free(text);
        text = NULL;
        (void)err_set(msg, err, "%s: %s", path, err_text(err));
    }
    mem_free(path);
    *out = text;
    return err;
}

// Value of a top-level key: what follows `"key":`. NULL: not there.
static const char *find_value(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = strchr(text, '"'); p; p = strchr(p + 1, '"')) {
        if (strncmp(p + 1, key, n) != 0 || p[1 + n] != '"')
            continue;
        const char *v = p + n + 2;
        while (*v == ' ')
            v++;
        if (*v != ':')
            continue;
        v++;
        while (*v == ' ')
            v++;
        return v;
    }
    return NULL;
}

static bool find_int(const char *text, const char *key, int32_t *out)
{
    const char *v = find_value(text, key);
    char *end;
    if (!v)
        return false;
    long long n = strtoll(v, &end, 10);
    if (end == v || n < INT32_MIN || n > INT32_MAX)
        return false;
    *out = (int32_t)n;
    return true;
}

static int parse(const char *text, bool dynamic, struct quorum_state *out, struct errmsg *msg)
{
    int32_t version, voted = -1;
    const char *start = text + strspn(text, " \n\r\t");
    const char *end = strrchr(text, '}');
    if (*start != '{' || !end || !find_int(text, "data_version", &version))
        return err_set(msg, ERR_CORRUPT, "no JSON object with a data_version");
    if (version != 0 && version != 1)
        return err_set(msg, ERR_UNSUPPORTED, "data_version %d is not known", (int)version);
    if (version != (dynamic ? 1 : 0))
        return err_set(msg, ERR_INVALID,
                       "data_version %d belongs to a %s quorum; this node is configured for a %s one",
                       (int)version, version ? "dynamic" : "static", dynamic ? "dynamic" : "static");
    if (!find_int(text, "leaderEpoch", &out->term) || out->term < 0 || !find_int(text, "votedId", &voted))
        return err_set(msg, ERR_CORRUPT, "leaderEpoch or votedId is missing");
    out->voted = voted;
    if (!dynamic)
        return 0;
    const char *dir = find_value(text, "votedDirectoryId");
    if (!dir || *dir != '"' || strlen(dir) < UUID_TEXT_BYTES ||
        !uuid_parse(slice_of(dir + 1, UUID_TEXT_BYTES - 1), &out->voted_directory))
        return err_set(msg, ERR_CORRUPT, "votedDirectoryId is missing");
    return 0;
}

int quorum_state_read(struct vfs *fs, const char *dir, bool dynamic, struct quorum_state *out,
                      struct errmsg *msg)
{
    char *text = NULL;
    *out = (struct quorum_state){.voted = -1};
    int err = quorum_file_read(fs, dir, STATE_NAME, STATE_BYTES_MAX, &text, msg);
    if (err)
        return err;
    err = parse(text, dynamic, out, msg);
    if (err)
        err_prefix(msg, "%s/" STATE_NAME, dir);
    mem_free(text);
    return err;
}

int quorum_state_write(struct vfs *fs, const char *dir, bool dynamic, const char *cluster_id,
                       const struct voter_set *voters, const struct quorum_state *state, struct errmsg *msg)
{
    struct strbuf b;
    strbuf_init(&b);
    if (dynamic) {
        char directory[UUID_TEXT_BYTES];
        uuid_format(state->voted_directory, directory);
        strbuf_printf(&b,
                      "{\"leaderId\":-1,\"leaderEpoch\":%d,\"votedId\":%d,\"votedDirectoryId\":\"%s\",\"data_"
                      "version\":1}",
                      (int)state->term, (int)state->voted, directory);
    } else {
        strbuf_printf(&b,
                      "{\"clusterId\":\"%s\",\"leaderId\":-1,\"leaderEpoch\":%d,\"votedId\":%d,"
                      "\"appliedOffset\":0,\"currentVoters\":[",
                      cluster_id, (int)state->term, (int)state->voted);
        for (uint32_t i = 0; voters && i < voters->count; i++)
            strbuf_printf(&b, "%s{\"voterId\":%d}", i ? "," : "", (int)voters->servers[i].voter.id);
        strbuf_add_str(&b, "],\"data_version\":0}");
    }
    int err = quorum_file_replace(fs, dir, STATE_NAME, strbuf_slice(&b), msg);
    strbuf_fini(&b);
    return err;
}
