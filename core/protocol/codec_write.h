// SPDX-License-Identifier: Apache-2.0
// What encoding and sizing share; private to core/protocol.
#ifndef KRAFT_PROTOCOL_CODEC_WRITE_H
#define KRAFT_PROTOCOL_CODEC_WRITE_H

#include "core/protocol/codec_engine.h"

size_t kp__struct_size(const struct kp_message_type *t, unsigned program, const uint8_t *s);
size_t kp__value_size(const struct kp_message_type *t, const struct kp_op *op, const uint8_t *at);

#endif
