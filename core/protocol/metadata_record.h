// SPDX-License-Identifier: Apache-2.0
// One record of the cluster metadata log, as a value: its type, its version and its body.
//
// On disk and wire it is the value of a record in a batch:
//
//   offset  size          meaning
//   0       uvarint (1)   frame version, always 1
//   1       uvarint (1-2) record type, enum metadata_record_type
//   .       uvarint (1)   version of the record
//   .       rest          body, flexible encoding
#ifndef KRAFT_PROTOCOL_METADATA_RECORD_H
#define KRAFT_PROTOCOL_METADATA_RECORD_H

#include "core/protocol/codec.h"
#include "core/protocol/gen/metadata_records.h"

#define METADATA_FRAME_VERSION 1

struct metadata_record {
    enum metadata_record_type type; // which member of `body` holds
    int16_t version;                // version it was read at or is to be written at
    union metadata_record_body body;
};

// Sets type, version and the body's defaults. `version` is one that the type has.
void metadata_record_init(struct metadata_record *m, enum metadata_record_type type, int16_t version);

// Reads a record's value in place; arrays are in `arena`. The whole value must be used up.
// Errors: ERR_UNSUPPORTED (frame version, type or version that we do not know: written by a newer release),
// ERR_MALFORMED, ERR_TOO_LARGE (the arena's limit).
int metadata_record_decode(struct metadata_record *m, struct slice value, struct arena *arena,
                           struct errmsg *err);

// Appends frame and body. ERR_UNSUPPORTED (no such version of the type), ERR_TOO_LARGE.
int metadata_record_encode(const struct metadata_record *m, struct rope *out);
// Bytes that encoding appends.
size_t metadata_record_size(const struct metadata_record *m);
// Encodes into `out`, which has room for metadata_record_size() bytes; errors as metadata_record_encode.
int metadata_record_encode_into(const struct metadata_record *m, uint8_t *out);

// Name of a type as the reference prints it, e.g. "PartitionChangeRecord"; "UnknownRecord" where there is
// none.
const char *metadata_record_type_name(uint32_t type);

#endif
