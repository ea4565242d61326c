// SPDX-License-Identifier: Apache-2.0
// The walk over the batches of a file.
#include "storage/batch_scan.h"
#include "core/base/mem.h"
#include "core/record/batch.h"

void batch_scan_init(struct batch_scan *s, struct vfs_file *file, uint64_t pos, uint64_t end, uint8_t *buf,
                     size_t cap)
{
    *s = (struct batch_scan){.file = file, .pos = pos, .end = end, .buf = buf, .cap = cap};
    if (!buf)
        s->buf = s->owned = mem_alloc(cap);
}

void batch_scan_fini(struct batch_scan *s)
{
    mem_free(s->owned);
}

// Makes `want` bytes at `pos` available; reads ahead as far as the buffer and `end` allow.
static int fill(struct batch_scan *s, size_t want)
{
    if (s->pos >= s->buf_pos && s->pos + want <= s->buf_pos + s->buf_len)
        return 0;
    if (want > s->cap) {
        uint8_t *bigger = mem_alloc(want);
        mem_free(s->owned);
        s->buf = s->owned = bigger;
        s->cap = want;
    }
    uint64_t left = s->end - s->pos;
    size_t len = left < s->cap ? (size_t)left : s->cap;
    size_t got = 0;
    s->buf_len = 0;
    if (s->nowait && !s->file->fs->ops->cached(s->file, s->pos, len))
        return ERR_BUSY;
    int rc = s->file->fs->ops->pread(s->file, s->buf, len, s->pos, &got);
    if (rc)
        return rc;
    s->buf_pos = s->pos;
    s->buf_len = got;
    return got < want ? ERR_AGAIN : 0; // the file is shorter than it was said to be
}

int batch_scan_header(struct batch_scan *s, const uint8_t **header, size_t *size)
{
    *size = 0;
    if (s->pos >= s->end)
        return ERR_NOTFOUND;
    if (s->end - s->pos < BATCH_HEADER_BYTES)
        return ERR_AGAIN;
    int rc = fill(s, BATCH_HEADER_BYTES);
    if (rc)
        return rc;
    const uint8_t *b = s->buf + (s->pos - s->buf_pos);
    if (batch_length(b) < BATCH_HEADER_BYTES - BATCH_OVERHEAD_BYTES || batch_length(b) > BATCH_BYTES_MAX ||
        batch_magic(b) != BATCH_MAGIC || batch_last_offset_delta(b) < 0 || batch_base_offset(b) < 0)
        return ERR_CORRUPT;
    *size = batch_size(b);
    if (*size > s->end - s->pos)
        return ERR_AGAIN;
    *header = b;
    return 0;
}

int batch_scan_whole(struct batch_scan *s, const uint8_t **batch, size_t *size)
{
    int rc = batch_scan_header(s, batch, size);
    if (rc == 0)
        rc = fill(s, *size);
    if (rc == 0)
        *batch = s->buf + (s->pos - s->buf_pos);
    return rc;
}
