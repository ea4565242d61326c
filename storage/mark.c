// SPDX-License-Identifier: Apache-2.0
// The mark file: two checksummed slots, written in turn.
#include "storage/mark.h"
#include "core/base/bytes.h"
#include "core/record/crc32c.h"

#define SLOT_BYTES 32
static const char mark_magic[8] = {'K', 'R', 'A', 'F', 'T', 'M', 'K', '1'};

static void slot_encode(uint8_t *p, log_offset end, uint64_t sequence)
{
    memset(p, 0, SLOT_BYTES);
    memcpy(p, mark_magic, sizeof(mark_magic));
    bytes_store_be64(p + 8, (uint64_t)end);
    bytes_store_be64(p + 16, sequence);
    bytes_store_be32(p + 28, crc32c(p, 28));
}

static bool slot_decode(const uint8_t *p, log_offset *end, uint64_t *sequence)
{
    if (memcmp(p, mark_magic, sizeof(mark_magic)) != 0 || bytes_load_be32(p + 28) != crc32c(p, 28))
        return false;
    *end = (log_offset)bytes_load_be64(p + 8);
    *sequence = bytes_load_be64(p + 16);
    return *end >= 0;
}

int mark_open(struct mark *m, struct vfs *fs, const char *path, bool *found, struct errmsg *msg)
{
    *m = (struct mark){NULL, 0, 0, false};
    *found = false;
    int rc = fs->ops->open(fs, path, VFS_WRITE | VFS_CREATE, &m->file, msg);
    if (rc)
        return rc;
    uint8_t buf[2 * SLOT_BYTES] = {0};
    size_t got = 0;
    rc = fs->ops->pread(m->file, buf, sizeof(buf), 0, &got);
    if (rc) {
        mark_close(m);
        return err_set(msg, rc, "cannot read %s: %s", path, err_text(rc));
    }
    for (size_t i = 0; i < 2; i++) {
        log_offset end;
        uint64_t sequence;
        if (got >= (i + 1) * SLOT_BYTES && slot_decode(buf + i * SLOT_BYTES, &end, &sequence) &&
            (!*found || sequence > m->sequence)) {
            m->end = end;
            m->sequence = sequence;
            *found = true;
        }
    }
    return 0;
}

int mark_write(struct mark *m, log_offset end, struct errmsg *msg)
{
    uint8_t buf[SLOT_BYTES];
    uint64_t sequence = m->sequence + 1;
    slot_encode(buf, end, sequence);
    struct iovec iov = {buf, sizeof(buf)};
    int rc = m->file->fs->ops->pwritev(m->file, &iov, 1, (sequence & 1) * SLOT_BYTES);
    if (rc)
        return err_set(msg, rc, "cannot write the synced mark: %s", err_text(rc));
    m->end = end;
    m->sequence = sequence;
    m->dirty = true;
    return 0;
}

int mark_sync(struct mark *m, struct errmsg *msg)
{
    if (!m->dirty)
        return 0;
    int rc = m->file->fs->ops->sync(m->file);
    if (rc)
        return err_set(msg, rc, "cannot sync the synced mark: %s", err_text(rc));
    m->dirty = false;
    return 0;
}

void mark_close(struct mark *m)
{
    if (m->file)
        vfs_file_unref(m->file);
    m->file = NULL;
}
