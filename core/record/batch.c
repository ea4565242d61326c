// SPDX-License-Identifier: Apache-2.0
// Finds whole batches in a run of bytes and checks them.
#include "core/record/batch.h"

#include "core/record/crc32c.h"

int batch_parse(struct slice bytes, size_t *size, struct errmsg *msg)
{
    *size = 0;
    if (bytes.len < BATCH_OVERHEAD_BYTES) {
        return err_set(msg, ERR_AGAIN, "batch is cut off after %zu bytes", bytes.len);
    }
    int32_t length = batch_length(bytes.data);
    if (length < BATCH_HEADER_BYTES - BATCH_OVERHEAD_BYTES || length > BATCH_BYTES_MAX) {
        // A batch of the old formats may be shorter than a header of ours: say so rather than "corrupt".
        if (length >= 14 && bytes.len > 16 && (bytes.data[16] == 0 || bytes.data[16] == 1)) {
            *size = (size_t)length + BATCH_OVERHEAD_BYTES;
            return err_set(msg, ERR_UNSUPPORTED, "batch has magic %d; only 2 is supported", bytes.data[16]);
        }
        return err_set(msg, ERR_CORRUPT, "batch length %d is not possible", length);
    }
    *size = (size_t)length + BATCH_OVERHEAD_BYTES;
    if (bytes.len > 16 && batch_magic(bytes.data) != BATCH_MAGIC) {
        return err_set(msg, ERR_UNSUPPORTED, "batch has magic %d; only 2 is supported",
                       batch_magic(bytes.data));
    }
    if (bytes.len < *size) {
        return err_set(msg, ERR_AGAIN, "batch of %zu bytes is cut off after %zu", *size, bytes.len);
    }
    if (batch_last_offset_delta(bytes.data) < 0 || batch_count(bytes.data) < 0) {
        return err_set(msg, ERR_CORRUPT, "batch says last offset delta %d and count %d",
                       batch_last_offset_delta(bytes.data), batch_count(bytes.data));
    }
    return 0;
}

int batch_check_crc(const uint8_t *b, struct errmsg *msg)
{
    uint32_t crc = crc32c(b + BATCH_CRC_START, batch_size(b) - BATCH_CRC_START);
    if (crc != batch_crc(b)) {
        return err_set(msg, ERR_CORRUPT,
                       "checksum of the batch at offset %lld is 0x%08x, its header says 0x%08x",
                       (long long)batch_base_offset(b), crc, batch_crc(b));
    }
    return 0;
}

void batch_seal(uint8_t *b)
{
    batch_set_crc(b, crc32c(b + BATCH_CRC_START, batch_size(b) - BATCH_CRC_START));
}

bool batch_iter_next(struct batch_iter *it)
{
    if (it->rest.len == 0) {
        return false;
    }
    it->err = batch_parse(it->rest, &it->size, NULL);
    if (it->err) {
        return false;
    }
    it->batch = it->rest.data;
    it->rest = slice_of(it->rest.data + it->size, it->rest.len - it->size);
    return true;
}

// Walks whole batches as long as they are good and follow each other.
int batch_check_run(struct slice bytes, log_offset expected_base, size_t *whole, struct errmsg *msg)
{
    log_offset next = expected_base;
    *whole = 0;
    struct batch_iter it = batch_iter_of(bytes);
    while (batch_iter_next(&it)) {
        int rc = batch_check_crc(it.batch, msg);
        if (rc) {
            return rc;
        }
        if (batch_base_offset(it.batch) < next || batch_last_offset(it.batch) < batch_base_offset(it.batch)) {
            return err_set(msg, ERR_CORRUPT, "batch has offsets %lld to %lld where %lld or later is due",
                           (long long)batch_base_offset(it.batch), (long long)batch_last_offset(it.batch),
                           (long long)next);
        }
        next = batch_next_offset(it.batch);
        *whole += it.size;
    }
    if (it.err && it.err != ERR_AGAIN) {
        size_t size;
        return batch_parse(it.rest, &size, msg);
    }
    return 0;
}
