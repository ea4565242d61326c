// SPDX-License-Identifier: Apache-2.0
// The limits of core/base, each with its reason.
#ifndef KRAFT_BASE_LIMITS_H
#define KRAFT_BASE_LIMITS_H

#define ROPE_RESERVE_BYTES_MAX                                                                               \
    (1u << 20) // rope_reserve: the largest fixed part of a reply; larger things are chunks
#define ROPE_TAIL_BYTES_FIRST 1024      // first tail chunk of a rope: most replies fit
#define ROPE_TAIL_BYTES_MAX (64u << 10) // later ones: grow by doubling up to here
#define CHUNK_BYTES_MAX                                                                                      \
    (1u << 30) // a frame may be up to socket.request.max.bytes, an int32 in practice far less
#define ARENA_BLOCK_BYTES_FIRST 4096       // first block of an arena: a usual request
#define ARENA_BLOCK_BYTES_MAX (256u << 10) // later blocks grow by doubling up to here
#define ARENA_KEEP_BYTES                                                                                     \
    (256u << 10) // arena_reset keeps at most this: one great request must not stay in memory
#define PROPERTIES_TEXT_BYTES_MAX (16u << 20) // a properties file above this is a mistake

_Static_assert(ROPE_TAIL_BYTES_FIRST <= ROPE_TAIL_BYTES_MAX, "tails grow");
_Static_assert(ARENA_BLOCK_BYTES_FIRST <= ARENA_BLOCK_BYTES_MAX, "blocks grow");

#endif
