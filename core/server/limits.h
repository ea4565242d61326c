// SPDX-License-Identifier: Apache-2.0
// Limits of the server floor, each with its reason.
#ifndef KRAFT_SERVER_LIMITS_H
#define KRAFT_SERVER_LIMITS_H

#define REQUEST_ARENA_BYTES_MAX                                                                              \
    (256u << 20) // what decoding one request may take: frame copy and arrays of a full-size frame
#define REQUEST_POOL_MAX 4096 // pooled requests of a loop: as many as wait in a busy one; the rest is freed
#define REQUEST_POOL_LARGE_MAX 16      // pooled requests that may keep a large arena
#define REQUEST_ARENA_KEEP_BYTES 16384 // an arena above it is large
#define REQUEST_PIPELINE_DEFAULT 1024  // unanswered requests of a connection where the listener does not say
#define REQUEST_QUEUED_BYTES_MAX                                                                             \
    (64u << 20) // replies that the kernel has not taken: a client that does not read is paused above
#define LOG_DIR_KEEP_FREE_BYTES                                                                              \
    (8u << 20) // produce leaves this much of a disk: for the metadata log, checkpoints, indexes of recovery
#define LOG_DIR_RESERVE_BYTES LOG_DIR_KEEP_FREE_BYTES // given up by a start on a disk that others have filled
#define METADATA_RESERVE_BYTES (6u << 20)             // with less free space the controller takes no writes
#define REFUSED_LOG_PERIOD_US (10ull * 1000000)       // one line in this time tells of the same refusal
#define HOST_TEXT_BYTES 64                            // an address as text, with scope, and NUL

_Static_assert(REQUEST_PIPELINE_DEFAULT <= REQUEST_POOL_MAX, "one connection does not exceed the pool");
_Static_assert(METADATA_RESERVE_BYTES < LOG_DIR_KEEP_FREE_BYTES,
               "topics can be deleted when produce is refused");
_Static_assert(METADATA_RESERVE_BYTES < LOG_DIR_RESERVE_BYTES, "a node starts on what the reserve gives");

#endif
