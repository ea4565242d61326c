// SPDX-License-Identifier: Apache-2.0
// The transaction index in memory and as bytes.
#include "storage/txn_index.h"
#include "core/base/bytes.h"
#include "core/base/mem.h"
#include "storage/layout.h"
#include "storage/small_file.h"

_Static_assert(TXN_INDEX_ENTRY_BYTES == 2 + 4 * 8, "entry of .txnindex");

void txn_index_fini(struct txn_index *t)
{
    mem_free(t->list);
    *t = (struct txn_index){NULL, 0, 0, false};
}

void txn_index_add(struct txn_index *t, const struct txn_index_entry *e)
{
    if (t->count == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 4;
        t->list = mem_realloc(t->list, t->cap * sizeof(*t->list));
    }
    t->list[t->count++] = *e;
    t->dirty = true;
}

void txn_index_truncate(struct txn_index *t, log_offset end)
{
    while (t->count && t->list[t->count - 1].last_offset >= end) {
        t->count--;
        t->dirty = true;
    }
}

void txn_index_encode(const struct txn_index *t, uint8_t **out, size_t *len)
{
    *len = (size_t)t->count * TXN_INDEX_ENTRY_BYTES;
    *out = mem_zalloc(*len ? *len : 1);
    for (unsigned i = 0; i < t->count; i++) {
        uint8_t *p = *out + (size_t)i * TXN_INDEX_ENTRY_BYTES;
        bytes_store_be64(p + 2, (uint64_t)t->list[i].producer_id);
        bytes_store_be64(p + 10, (uint64_t)t->list[i].first_offset);
        bytes_store_be64(p + 18, (uint64_t)t->list[i].last_offset);
        bytes_store_be64(p + 26, (uint64_t)t->list[i].last_stable);
    }
}

int txn_index_decode(struct txn_index *t, struct slice bytes, struct errmsg *msg)
{
    t->count = 0;
    t->dirty = false;
    if (bytes.len % TXN_INDEX_ENTRY_BYTES)
        return err_set(msg, ERR_CORRUPT, "transaction index of %zu bytes: not whole entries", bytes.len);
    for (size_t at = 0; at < bytes.len; at += TXN_INDEX_ENTRY_BYTES) {
        const uint8_t *p = bytes.data + at;
        struct txn_index_entry e = {(int64_t)bytes_load_be64(p + 2), (log_offset)bytes_load_be64(p + 10),
                                    (log_offset)bytes_load_be64(p + 18), (log_offset)bytes_load_be64(p + 26)};
        bool rises = t->count == 0 || t->list[t->count - 1].last_offset < e.last_offset;
        if (bytes_load_be16(p) != 0 || e.first_offset < 0 || e.first_offset > e.last_offset || !rises) {
            t->count = 0;
            return err_set(msg, ERR_CORRUPT, "transaction index: entry %zu is not valid",
                           at / TXN_INDEX_ENTRY_BYTES);
        }
        txn_index_add(t, &e);
    }
    t->dirty = false;
    return 0;
}

int txn_index_load(struct txn_index *t, struct vfs *fs, const char *dir, log_offset base, struct errmsg *msg)
{
    char path[LAYOUT_PATH_BYTES], *data;
    size_t len;
    if (!layout_path(path, dir, base, LAYOUT_TXNINDEX, LAYOUT_PLAIN))
        return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", dir);
    int rc = small_file_read(fs, path, &data, &len, msg);
    if (rc)
        return rc;
    rc = txn_index_decode(t, slice_of(data, len), msg);
    mem_free(data);
    return rc;
}
