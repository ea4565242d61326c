// SPDX-License-Identifier: Apache-2.0
// Lists of message types by key, as tools/generate writes them; private to core/protocol.
#ifndef KRAFT_PROTOCOL_CODEC_LOOKUP_H
#define KRAFT_PROTOCOL_CODEC_LOOKUP_H

#include "core/protocol/codec.h"
#include "core/protocol/gen/apis.h"

extern const struct kp_message_type *const kp_message_requests[KP_API_COUNT];  // by API key
extern const struct kp_message_type *const kp_message_responses[KP_API_COUNT]; // by API key
extern const struct kp_message_type *const kp_message_metadata[];              // by record type
extern const unsigned kp_message_metadata_count;                               // rows of kp_message_metadata

#endif
