// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), the checksum of record batches and of producer snapshots. Any thread; no state.
#ifndef KRAFT_RECORD_CRC32C_H
#define KRAFT_RECORD_CRC32C_H

#include <stddef.h>
#include <stdint.h>

// Checksum of `len` bytes, as java.util.zip.CRC32C gives it.
uint32_t crc32c(const void *data, size_t len);

// Checksum of what `crc` is the checksum of, followed by `len` bytes more. crc32c_extend(0, d, n) = crc32c(d,
// n).
uint32_t crc32c_extend(uint32_t crc, const void *data, size_t len);

// Checksum of A followed by B, from the checksum of each and the length of B, in O(log len_b).
uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b);

// The plain table version, for processors without the instruction and to test the others against.
uint32_t crc32c_extend_portable(uint32_t crc, const void *data, size_t len);

#endif
