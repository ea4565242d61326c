// SPDX-License-Identifier: Apache-2.0
// Base64, both alphabets (RFC 4648): standard with padding (SCRAM), URL-safe without (Kafka's ids).
#ifndef KRAFT_BASE_BASE64_H
#define KRAFT_BASE_BASE64_H

#include "core/base/slice.h"

enum base64_kind {
    BASE64_STANDARD, // + and /, padded with =
    BASE64_URL,      // - and _, no padding
};

#define BASE64_ENCODED_BYTES(n) (((n) + 2) / 3 * 4 + 1) // room for the text of n bytes, with its NUL
#define BASE64_DECODED_BYTES(n) (((n) + 3) / 4 * 3)     // room for the bytes of n characters

// Writes text and NUL to `out` (BASE64_ENCODED_BYTES(in.len)); gives the text's length.
size_t base64_encode(enum base64_kind kind, struct slice in, char *out);
// Writes to `out` (BASE64_DECODED_BYTES(in.len)) and the length to *out_len. Padding may be there or not
// where it is right; bits after the last byte must be zero. False: not base64.
bool base64_decode(enum base64_kind kind, struct slice in, uint8_t *out, size_t *out_len);

#endif
