// SPDX-License-Identifier: Apache-2.0
// Producer state as a .snapshot file, in Kafka's format.
//
//   offset size field
//        0    2 version            1
//        2    4 CRC-32C            of byte 6 to the end
//        6    4 count              producers that follow
//       10   46 each:
//              0  8 producer id
//              8  2 producer epoch
//             10  4 last sequence         -1: no batch of this epoch
//             14  8 last offset           of that batch; -1
//             22  4 offset delta          last offset - base offset of that batch
//             26  8 timestamp             of the last batch or marker
//             34  4 coordinator epoch     -1: no marker yet
//             38  8 transaction's first offset   -1: none open
// Only the last batch of each producer is kept. A crash may leave the file short or without its name: the
// checksum tells, and the state is then read from the log.
#include "core/base/bytes.h"
#include "core/base/mem.h"
#include "core/record/crc32c.h"
#include "storage/producer_state.h"

#define SNAPSHOT_VERSION 1
#define HEADER_BYTES 10
#define ENTRY_BYTES 46
#define CRC_START 6
_Static_assert(HEADER_BYTES == 2 + 4 + 4, "header of the snapshot");
_Static_assert(ENTRY_BYTES == 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8, "entry of the snapshot");

static void entry_encode(uint8_t *p, const struct producer_entry *e)
{
    struct producer_batch_meta last = {.last_sequence = -1, .last_offset = -1};
    if (e->batches_count)
        last = e->batches[e->batches_count - 1];
    bytes_store_be64(p, (uint64_t)e->producer_id);
    bytes_store_be16(p + 8, (uint16_t)e->producer_epoch);
    bytes_store_be32(p + 10, (uint32_t)last.last_sequence);
    bytes_store_be64(p + 14, (uint64_t)last.last_offset);
    bytes_store_be32(p + 22, (uint32_t)last.offset_delta);
    bytes_store_be64(p + 26, (uint64_t)e->last_timestamp);
    bytes_store_be32(p + 34, (uint32_t)e->coordinator_epoch);
    bytes_store_be64(p + 38, (uint64_t)e->txn_first_offset);
}

void producer_states_encode(const struct producer_states *p, uint8_t **out, size_t *len)
{
    unsigned count = producer_states_count(p);
    size_t size = HEADER_BYTES + (size_t)count * ENTRY_BYTES;
    uint8_t *buf = mem_alloc(size);
    bytes_store_be16(buf, SNAPSHOT_VERSION);
    bytes_store_be32(buf + 6, count);
    for (unsigned i = 0; i < count; i++)
        entry_encode(buf + HEADER_BYTES + (size_t)i * ENTRY_BYTES, producer_states_at(p, i));
    bytes_store_be32(buf + 2, crc32c(buf + CRC_START, size - CRC_START));
    *out = buf;
    *len = size;
}

// Restores an entry by replaying what it stands for: its last batch, and the open transaction or the last
// marker.
static bool entry_decode(struct producer_states *states, const uint8_t *p)
{
    struct producer_batch_meta last = {
        .last_sequence = (int32_t)bytes_load_be32(p + 10),
        .last_offset = (log_offset)bytes_load_be64(p + 14),
        .offset_delta = (int32_t)bytes_load_be32(p + 22),
        .timestamp = (time_ms)bytes_load_be64(p + 26),
    };
    int64_t id = (int64_t)bytes_load_be64(p);
    if (id < 0 || last.offset_delta < 0 || producer_states_find(states, id))
        return false;
    producer_states_restore(states, id, (int16_t)bytes_load_be16(p + 8), &last,
                            (int32_t)bytes_load_be32(p + 34), (log_offset)bytes_load_be64(p + 38));
    return true;
}

int producer_states_decode(struct producer_states *p, struct slice bytes, struct errmsg *msg)
{
    producer_states_clear(p);
    if (bytes.len < HEADER_BYTES)
        return err_set(msg, ERR_CORRUPT, "producer snapshot of %zu bytes is too short", bytes.len);
    uint16_t version = bytes_load_be16(bytes.data);
    if (version != SNAPSHOT_VERSION)
        return err_set(msg, ERR_CORRUPT, "producer snapshot of version %u is not known", version);
    uint32_t crc = crc32c(bytes.data + CRC_START, bytes.len - CRC_START);
    if (crc != bytes_load_be32(bytes.data + 2))
        return err_set(msg, ERR_CORRUPT, "producer snapshot has a wrong checksum");
    uint32_t count = bytes_load_be32(bytes.data + 6);
    if ((bytes.len - HEADER_BYTES) / ENTRY_BYTES != count || (bytes.len - HEADER_BYTES) % ENTRY_BYTES != 0)
        return err_set(msg, ERR_CORRUPT, "producer snapshot has %zu bytes for %u producers", bytes.len,
                       count);
    for (uint32_t i = 0; i < count; i++) {
        if (!entry_decode(p, bytes.data + HEADER_BYTES + (size_t)i * ENTRY_BYTES)) {
            producer_states_clear(p);
            return err_set(msg, ERR_CORRUPT, "producer snapshot: entry %u is not valid", i);
        }
    }
    return 0;
}
