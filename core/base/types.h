// SPDX-License-Identifier: Apache-2.0
// Domain integers that every room shares; the names are Kafka's.
#ifndef KRAFT_BASE_TYPES_H
#define KRAFT_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef int32_t node_id;      // node.id of a broker or controller; -1 none
typedef int32_t broker_id;    // node.id of a broker; -1 none
typedef int64_t broker_epoch; // offset of the broker's RegisterBrokerRecord; -1 none
typedef int32_t partition_id; // index of a partition in its topic, from 0
typedef int32_t leader_epoch; // epoch of a partition's leader; -1 none; in the metadata log: the Raft term
typedef int64_t log_offset;   // offset of a record in a log; -1 none
typedef int64_t time_ms;      // wall clock, milliseconds since 1970 (Kafka timestamps); -1 none
typedef uint64_t mono_us;     // monotonic clock, microseconds, origin unspecified

#endif
