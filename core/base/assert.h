// SPDX-License-Identifier: Apache-2.0
// Assertions of our own mistakes, always on; never used on what a peer, a client or a disk sent.
#ifndef KRAFT_BASE_ASSERT_H
#define KRAFT_BASE_ASSERT_H

// Prints the place and the condition to stderr and aborts. Never returns.
void assert_fail(const char *kind, const char *cond, const char *file, int line)
    __attribute__((noreturn, cold));

#define MUST(cond) ((cond) ? (void)0 : assert_fail("must not happen", #cond, __FILE__, __LINE__))
#define UNREACHABLE(why) assert_fail("unreachable", why, __FILE__, __LINE__)

#endif
