// SPDX-License-Identifier: Apache-2.0
// Replay: the only way from one image to the next, record by record.
//
// A builder starts from an image and shares everything with it; finishing it gives the next image. One thread
// at a time. A batch of records costs what it changes. Metadata transactions (KIP-868) are handled inside:
// between Begin and End or Abort the image keeps the one from before at hand, see image_visible().
#ifndef KRAFT_METADATA_REPLAY_H
#define KRAFT_METADATA_REPLAY_H

#include "core/base/err.h"
#include "core/base/types.h"

struct image;
struct image_builder;
struct metadata_record; // core/protocol/metadata_record.h

struct image_builder *image_builder_create(const struct image *from); // takes a reference of its own
// Applies one record of the metadata log at `offset`, in a batch of `epoch`. `r` is only read during the
// call. Returns ERR_INVALID with the record's name, offset and reason in `msg` for a record that makes no
// sense (an unknown topic, a broker epoch that does not match, ...): the builder is unchanged then and may go
// on, finish or be dropped. ERR_UNSUPPORTED: a record type that is not known.
int image_replay(struct image_builder *b, const struct metadata_record *r, log_offset offset,
                 leader_epoch epoch, struct errmsg *msg);
// Offsets that carry no metadata record (control records): only moves the image's offset and epoch.
void image_replay_offset(struct image_builder *b, log_offset offset, leader_epoch epoch);
struct image *
image_builder_finish(struct image_builder *b);    // frees the builder; the caller owns the one reference
void image_builder_drop(struct image_builder *b); // frees the builder, forgets what it did; NULL is allowed
// What the builder holds so far, to look at between records; borrowed, valid until the next call on the
// builder.
const struct image *image_builder_peek(struct image_builder *b);

#endif
