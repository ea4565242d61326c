// SPDX-License-Identifier: Apache-2.0
// What the pool of chunks (rope.h) holds and how it gives memory back. One pool a process, thread-safe.
//
// Size classes are powers of two from 256 bytes to 1 MiB less a header; larger chunks are blocks of their own
// of which some are kept. Small traffic lives in one small arena; arenas of 2 MiB on huge pages come when
// traffic needs them and are given back after they have been unused for some time. Freed chunks are kept for
// reuse, so that a steady load neither allocates nor faults.
#ifndef KRAFT_BASE_CHUNK_H
#define KRAFT_BASE_CHUNK_H

#include "core/base/rope.h"

struct chunk_stats {
    size_t used_bytes;  // in chunks that somebody holds
    size_t held_bytes;  // taken from the kernel, in use or kept
    size_t arenas;      // huge-page arenas
    size_t chunks_used; // chunks that somebody holds
};
void chunk_stats(struct chunk_stats *out); // any thread

// Gives back memory that was not needed since the call before the last; to be called every few seconds by the
// owner of the process (net/ does). Any thread.
void chunk_trim(void);
void chunk_release_all(void); // gives back all that is unused at once (tests, after a peak)

#endif
