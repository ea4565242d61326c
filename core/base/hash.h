// SPDX-License-Identifier: Apache-2.0
// Hash functions: xxHash3 for our own maps, and the two of Kafka's clients that fix which partition is meant.
#ifndef KRAFT_BASE_HASH_H
#define KRAFT_BASE_HASH_H

#include "core/base/slice.h"

uint64_t hash_bytes(const void *data, size_t len); // xxHash3, seed 0: the same on every machine
uint64_t hash_bytes_seeded(const void *data, size_t len, uint64_t seed);
uint64_t hash_u64(uint64_t value); // a bijection: different values never collide

// murmur2 as Kafka's Java client's default partitioner uses it, as a signed int.
int32_t hash_murmur2(const void *data, size_t len);
// Partition of a keyed record: murmur2, sign bit cleared, modulo. `partitions` > 0.
int32_t hash_murmur2_partition(struct slice key, int32_t partitions);

// String.hashCode of Java over the UTF-16 form of well-formed UTF-8 text. A malformed byte counts as U+FFFD.
int32_t hash_java_string(struct slice utf8);
// Partition of an internal topic (__consumer_offsets, __transaction_state) that owns this group or
// transactional id.
int32_t hash_coordinator_partition(struct slice utf8, int32_t partitions);

#endif
