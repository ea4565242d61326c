// SPDX-License-Identifier: Apache-2.0
// Request and response headers: what stands between the length prefix of a frame and the message.
//
// The header's version follows from API key and version: requests 1, or 2 where the message is flexible;
// responses 0, or 1 where it is flexible, but always 0 for ApiVersions, whose reader does not know yet what
// we speak.
#ifndef KRAFT_PROTOCOL_HEADER_H
#define KRAFT_PROTOCOL_HEADER_H

#include "core/protocol/codec.h"
#include "core/protocol/gen/apis.h"
#include "core/protocol/gen/request_header.h"
#include "core/protocol/gen/response_header.h"

// Reads a request's header and leaves `r` at its message; `*api` is the row of its key. Whether the API has
// this version is not judged here (kp_message_has_version): an ApiVersions request of an unknown version is
// to be answered. Errors: ERR_UNSUPPORTED (unknown or removed key: there is no telling what follows; key,
// version and correlation id are set), ERR_MALFORMED.
int kp_header_read_request(struct kp_reader *r, struct kp_request_header *h, const struct kp_api_info **api);

// Appends a request's header for h->request_api_key and h->request_api_version, which must be a known key.
// ERR_TOO_LARGE: the client id has more than 32,767 bytes.
int kp_header_write_request(struct rope *out, const struct kp_request_header *h);

// Appends the header of the response to a request of this key and version.
void kp_header_write_response(struct rope *out, const struct kp_api_info *api, int version,
                              int32_t correlation_id);

// Reads the header of a response to a request of this key and version. ERR_MALFORMED.
int kp_header_read_response(struct kp_reader *r, const struct kp_api_info *api, int version,
                            struct kp_response_header *h);

#endif
