// SPDX-License-Identifier: Apache-2.0
// SCRAM keys by OpenSSL's digests. Does not include core/base/err.h: OpenSSL has an ERR_STATE of its own.
#include "core/security/scram.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <strings.h>

static const char *const names[] = {"", "SCRAM-SHA-256", "SCRAM-SHA-512"};

bool scram_mechanism_parse(struct slice name, enum scram_mechanism *out)
{
    for (int i = SCRAM_SHA_256; i <= SCRAM_SHA_512; i++) {
        if (name.len == strlen(names[i]) && strncasecmp((const char *)name.data, names[i], name.len) == 0) {
            *out = (enum scram_mechanism)i;
            return true;
        }
    }
    return false;
}

const char *scram_mechanism_name(enum scram_mechanism m)
{
    return names[m];
}

size_t scram_key_bytes(enum scram_mechanism m)
{
    return m == SCRAM_SHA_256 ? 32 : 64;
}

static const EVP_MD *digest(enum scram_mechanism m)
{
    return m == SCRAM_SHA_256 ? EVP_sha256() : EVP_sha512();
}

bool scram_salt_password(enum scram_mechanism m, struct slice password, struct slice salt, int iterations,
                         uint8_t out[SCRAM_KEY_BYTES_MAX])
{
    if (password.len > INT32_MAX || salt.len > INT32_MAX) {
        return false;
    }
    return PKCS5_PBKDF2_HMAC((const char *)password.data, (int)password.len, salt.data, (int)salt.len,
                             iterations, digest(m), (int)scram_key_bytes(m), out) == 1;
}

bool scram_derive_keys(enum scram_mechanism m, const uint8_t *salted_password, struct scram_keys *out)
{
    uint8_t client_key[SCRAM_KEY_BYTES_MAX];
    unsigned len = 0;
    out->len = scram_key_bytes(m);
    bool ok = HMAC(digest(m), salted_password, (int)out->len, (const uint8_t *)"Client Key", 10, client_key,
                   &len) != NULL &&
              EVP_Digest(client_key, out->len, out->stored_key, &len, digest(m), NULL) == 1 &&
              HMAC(digest(m), salted_password, (int)out->len, (const uint8_t *)"Server Key", 10,
                   out->server_key, &len) != NULL;
    return ok;
}
