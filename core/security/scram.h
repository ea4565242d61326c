// SPDX-License-Identifier: Apache-2.0
// The arithmetic of SCRAM (RFC 5802, RFC 7677): what is stored instead of a password. Pure; any thread.
#ifndef KRAFT_SECURITY_SCRAM_H
#define KRAFT_SECURITY_SCRAM_H

#include "core/base/slice.h"

// Numbers of the protocol (UserScramCredentialRecord.Mechanism).
enum scram_mechanism {
    SCRAM_SHA_256 = 1,
    SCRAM_SHA_512 = 2,
};

#define SCRAM_KEY_BYTES_MAX 64 // of SHA-512
#define SCRAM_ITERATIONS_MIN                                                                                 \
    4096 // bounds that Kafka sets (KIP-554): fewer are weak, more cost the broker too much
#define SCRAM_ITERATIONS_MAX 16384

// "SCRAM-SHA-256" and "SCRAM-SHA-512"; any case. False: neither.
bool scram_mechanism_parse(struct slice name, enum scram_mechanism *out);
const char *scram_mechanism_name(enum scram_mechanism m);
size_t scram_key_bytes(enum scram_mechanism m); // 32 or 64

struct scram_keys {
    size_t len;                              // bytes of each key
    uint8_t stored_key[SCRAM_KEY_BYTES_MAX]; // H(ClientKey)
    uint8_t server_key[SCRAM_KEY_BYTES_MAX]; // ServerKey
};

// SaltedPassword := PBKDF2(password, salt, iterations), scram_key_bytes(m) bytes to `out`. ERR_INVALID: the
// library refused.
bool scram_salt_password(enum scram_mechanism m, struct slice password, struct slice salt, int iterations,
                         uint8_t out[SCRAM_KEY_BYTES_MAX]);
// The two keys that are stored, from a salted password of scram_key_bytes(m) bytes.
bool scram_derive_keys(enum scram_mechanism m, const uint8_t *salted_password, struct scram_keys *out);

#endif
