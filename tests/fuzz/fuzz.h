// SPDX-License-Identifier: Apache-2.0
// The pattern of a fuzz target: one function over bytes that a peer or a disk could have sent.
//
// A target is a file fuzz_NAME.c that defines LLVMFuzzerTestOneInput and includes only this and what it
// tests; its seeds come from make_corpus.py. It must not keep state between calls. It finds a fault by a
// sanitizer or by a failed MUST. With -Dfuzzing=true (clang) it is linked with libFuzzer; without, with
// driver.c, which runs it over files, so that the tests run every seed also where there is no clang.
#ifndef KRAFT_TESTS_FUZZ_H
#define KRAFT_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // libFuzzer's name for it; always gives 0

#endif
