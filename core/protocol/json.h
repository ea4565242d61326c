// SPDX-License-Identifier: Apache-2.0
// The JSON form of every message, both ways: for tools, traces and the JSON files on disk.
//
// Names are the reference's (lower camel case). Bytes and records are base64 text, ids their 22 characters,
// 64-bit integers exact numbers. Fields that a version does not have are left out, tagged fields also where
// they hold their default.
#ifndef KRAFT_PROTOCOL_JSON_H
#define KRAFT_PROTOCOL_JSON_H

#include <jansson.h>

#include "core/protocol/codec.h"

// The message as a JSON object, to be freed by json_decref; never NULL for a version that exists. Text that
// is not UTF-8 gets replacement characters. A records rope must not hold files.
json_t *kp_message_to_json(const struct kp_message_type *t, const void *m, int version);

enum kp_json_mode {
    KP_JSON_STRICT, // names that the version does not have, and missing plain fields, are errors
    KP_JSON_LOOSE,  // unknown names are skipped, missing fields get their defaults
};

// Fills `m` from a JSON object. What it points to is in `arena`. Errors: ERR_UNSUPPORTED (no such version),
// ERR_INVALID (the message names the field).
int kp_message_from_json(const struct kp_message_type *t, void *m, const json_t *json, int version,
                         enum kp_json_mode mode, struct arena *arena, struct errmsg *err);

#endif
