// SPDX-License-Identifier: Apache-2.0
// Requests that this node sends as a client: the frame with its header, and the way past an answer's header.
#ifndef KRAFT_SERVER_OUTBOUND_H
#define KRAFT_SERVER_OUTBOUND_H

#include "core/base/rope.h"
#include "core/base/slice.h"

// Appends length, request header (v1, or v2 for a flexible version) and `body`, which is moved and empty
// afterwards.
void outbound_request_frame(struct rope *out, int16_t api, int16_t version, int32_t correlation,
                            const char *client_id, struct rope *body);
// The correlation id that an answer's frame (without its length) begins with. ERR_MALFORMED: too short.
int outbound_response_correlation(struct slice frame, int32_t *out);
// What follows the response header of this API and version. ERR_MALFORMED.
int outbound_response_body(struct slice frame, int16_t api, int16_t version, struct slice *body);

#endif
