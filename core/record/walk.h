// SPDX-License-Identifier: Apache-2.0
// Parts of produce validation that lie in files of their own. For core/record only.
#ifndef KRAFT_RECORD_WALK_H
#define KRAFT_RECORD_WALK_H

#include "core/record/validate.h"

// Makes a new batch with another codec, or with inner offsets 0..n-1, from one that the walk found good.
// ERR_TOO_LARGE where it passes the batch limit or the unpacking limit. *out has one reference.
int rewrite_batch(const uint8_t *batch, enum codec to, int level, size_t batch_bytes_max,
                  uint64_t unpacked_max, struct codec_cache *cache, struct chunk **out, size_t *size);

#endif
