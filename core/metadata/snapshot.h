// SPDX-License-Identifier: Apache-2.0
// An image as records in canonical order: snapshots, hashes, dumps.
//
// The order depends on nothing but the content, so that equal images give equal records, on any node and
// after any history. Records are written at the versions that the image's metadata.version allows.
#ifndef KRAFT_METADATA_SNAPSHOT_H
#define KRAFT_METADATA_SNAPSHOT_H

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/base/types.h"

struct image;
struct image_snapshot;
struct metadata_record; // core/protocol/metadata_record.h

// Begins the walk; holds a reference to the visible image (image_visible). May run on any thread.
struct image_snapshot *image_snapshot_create(const struct image *img);
const struct image *image_snapshot_image(const struct image_snapshot *s); // the image that is written
// Next record, with its version set. Lists that it needs are allocated in `arena`, the rest points into the
// image. False at the end.
bool image_snapshot_next(struct image_snapshot *s, struct arena *arena, struct metadata_record *out);
void image_snapshot_free(struct image_snapshot *s);

// 128-bit hash over the framed bytes of all records in canonical order: equal images, equal hashes.
struct image_hash {
    uint64_t low, high; // the two halves
};
struct image_hash image_hash_of(const struct image *img);

#endif
