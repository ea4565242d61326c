// SPDX-License-Identifier: Apache-2.0
// The initial metadata records: finalized feature levels and SCRAM users.
#include <stdio.h>

#include "core/base/base64.h"
#include "core/config/check.h"
#include "core/metadata/metadata_version.h"
#include "core/security/scram.h"
#include "tools/kraft-format/format.h"

#define SALT_BYTES 24       // of a salt that we make
#define SALT_TEXT_BYTES 512 // longest salt or salted password as text

// ---- users

struct user {
    struct slice name, password, salt, salted_password, iterations; // as given; null: not given
};

// Takes "key=value" off a list; values may stand in quotes, and then may hold commas.
static bool next_pair(struct slice *list, struct slice *key, struct slice *value, struct errmsg *msg)
{
    *list = config_trim(*list);
    const uint8_t *equals = list->len > 0 ? memchr(list->data, '=', list->len) : NULL;
    if (!equals) {
        (void)err_set(msg, ERR_INVALID, "\"" SLICE_FMT "\" is not key=value", SLICE_ARG(*list));
        return false;
    }
    *key = config_trim(slice_of(list->data, (size_t)(equals - list->data)));
    struct slice rest = slice_of(equals + 1, list->len - (size_t)(equals + 1 - list->data));
    bool quoted = rest.len > 0 && rest.data[0] == '"';
    const uint8_t *end;
    if (quoted) {
        end = memchr(rest.data + 1, '"', rest.len - 1);
        if (!end) {
            (void)err_set(msg, ERR_INVALID, "a quote is not closed");
            return false;
        }
        *value = slice_of(rest.data + 1, (size_t)(end - rest.data) - 1);
        end++;
    } else {
        end = memchr(rest.data, ',', rest.len);
        end = end ? end : rest.data + rest.len;
        *value = config_trim(slice_of(rest.data, (size_t)(end - rest.data)));
    }
    struct slice after = config_trim(slice_of(end, (size_t)(rest.data + rest.len - end)));
    if (after.len > 0 && after.data[0] != ',') {
        (void)err_set(msg, ERR_INVALID, "a comma is missing before \"" SLICE_FMT "\"", SLICE_ARG(after));
        return false;
    }
    *list = after.len > 0 ? slice_of(after.data + 1, after.len - 1) : slice_of(end, 0);
    return true;
}

static int read_user(struct slice list, struct user *u, struct errmsg *msg)
{
    struct slice key, value;
    while (config_trim(list).len > 0) {
        if (!next_pair(&list, &key, &value, msg)) {
            return ERR_INVALID;
        }
        struct slice *to = slice_equal_str(key, "name")             ? &u->name
                           : slice_equal_str(key, "password")       ? &u->password
                           : slice_equal_str(key, "salt")           ? &u->salt
                           : slice_equal_str(key, "saltedpassword") ? &u->salted_password
                           : slice_equal_str(key, "iterations")     ? &u->iterations
                                                                    : NULL;
        if (!to || !slice_is_null(*to)) {
            return err_set(msg, ERR_INVALID,
                           to ? "\"" SLICE_FMT "\" is given twice" : "\"" SLICE_FMT "\" is not known",
                           SLICE_ARG(key));
        }
        *to = value;
    }
    if (slice_is_null(u->name) || u->name.len == 0) {
        return err_set(msg, ERR_INVALID, "name=... is missing");
    }
    if (slice_is_null(u->password) == slice_is_null(u->salted_password)) {
        return err_set(msg, ERR_INVALID, "give either password=... or saltedpassword=...");
    }
    if (!slice_is_null(u->salted_password) && slice_is_null(u->salt)) {
        return err_set(msg, ERR_INVALID, "saltedpassword=... needs the salt=... it was made with");
    }
    return 0;
}

static int decode(struct slice text, const char *what, uint8_t out[SALT_TEXT_BYTES], size_t *len,
                  struct errmsg *msg)
{
    if (text.len >= SALT_TEXT_BYTES || !base64_decode(BASE64_STANDARD, text, out, len) || *len == 0) {
        return err_set(msg, ERR_INVALID, "%s is not base64", what);
    }
    return 0;
}

static int fill_credential(const struct user *u, enum scram_mechanism mechanism, struct arena *arena,
                           struct kp_user_scram_credential_record *r, struct errmsg *msg)
{
    int64_t iterations = SCRAM_ITERATIONS_MIN;
    if (!slice_is_null(u->iterations) &&
        (!config_read_long(u->iterations, &iterations) || iterations < SCRAM_ITERATIONS_MIN ||
         iterations > SCRAM_ITERATIONS_MAX)) {
        return err_set(msg, ERR_INVALID, "iterations must be from %d to %d", SCRAM_ITERATIONS_MIN,
                       SCRAM_ITERATIONS_MAX);
    }
    uint8_t salt[SALT_TEXT_BYTES], salted[SALT_TEXT_BYTES];
    size_t salt_len = SALT_BYTES, salted_len = scram_key_bytes(mechanism);
    int rc = 0;
    if (slice_is_null(u->salt)) {
        format_random(salt, SALT_BYTES);
    } else {
        rc = decode(u->salt, "salt", salt, &salt_len, msg);
    }
    if (rc == 0 && !slice_is_null(u->salted_password)) {
        rc = decode(u->salted_password, "saltedpassword", salted, &salted_len, msg);
        if (rc == 0 && salted_len != scram_key_bytes(mechanism)) {
            rc = err_set(msg, ERR_INVALID, "saltedpassword must have %zu bytes", scram_key_bytes(mechanism));
        }
    } else if (rc == 0) {
        rc = scram_salt_password(mechanism, u->password, slice_of(salt, salt_len), (int)iterations, salted)
                 ? 0
                 : ERR_INVALID;
    }
    struct scram_keys keys;
    if (rc == 0 && !scram_derive_keys(mechanism, salted, &keys)) {
        rc = err_set(msg, ERR_INVALID, "the keys cannot be derived");
    }
    if (rc) {
        return rc;
    }
    r->name = arena_dup_slice(arena, u->name);
    r->mechanism = (int8_t)mechanism;
    r->salt = slice_of(arena_dup(arena, salt, salt_len), salt_len);
    r->stored_key = slice_of(arena_dup(arena, keys.stored_key, keys.len), keys.len);
    r->server_key = slice_of(arena_dup(arena, keys.server_key, keys.len), keys.len);
    r->iterations = (int32_t)iterations;
    return 0;
}

int format_add_scram(const char *text, struct arena *arena, struct record_list *out, struct errmsg *msg)
{
    const char *equals = strchr(text, '=');
    size_t len = strlen(text);
    enum scram_mechanism mechanism;
    struct user u = {SLICE_NULL, SLICE_NULL, SLICE_NULL, SLICE_NULL, SLICE_NULL};
    if (!equals || equals[1] != '[' || text[len - 1] != ']' ||
        !scram_mechanism_parse(slice_of(text, (size_t)(equals - text)), &mechanism)) {
        return err_set(
            msg, ERR_INVALID,
            "--add-scram: write SCRAM-SHA-256=[name=alice,password=secret], or SCRAM-SHA-512=[...]");
    }
    int rc = read_user(slice_of(equals + 2, len - (size_t)(equals + 2 - text) - 1), &u, msg);
    for (uint32_t i = 0; rc == 0 && i < out->count; i++) {
        const struct metadata_record *m = &out->items[i];
        if (m->type == METADATA_USER_SCRAM_CREDENTIAL &&
            m->body.user_scram_credential.mechanism == (int8_t)mechanism &&
            slice_equal(m->body.user_scram_credential.name, u.name)) {
            rc = err_set(msg, ERR_INVALID, "the user " SLICE_FMT " is given twice", SLICE_ARG(u.name));
        }
    }
    if (rc == 0) {
        struct metadata_record *m = record_list_add(out, METADATA_USER_SCRAM_CREDENTIAL, 0);
        rc = fill_credential(&u, mechanism, arena, &m->body.user_scram_credential, msg);
    }
    if (rc) {
        err_prefix(msg, "--add-scram");
    }
    return rc;
}

// ---- features

static int split_feature(const char *text, struct slice *name, int16_t *level, struct errmsg *msg)
{
    const char *equals = strchr(text, '=');
    int64_t n;
    if (!equals || !config_read_long(slice_str(equals + 1), &n) || n < 0 || n > INT16_MAX) {
        return err_set(msg, ERR_INVALID, "--feature %s: write NAME=LEVEL, as metadata.version=%d", text,
                       FORMAT_METADATA_VERSION);
    }
    *name = slice_of(text, (size_t)(equals - text));
    *level = (int16_t)n;
    return 0;
}

int format_wanted_kraft_version(const struct format_options *o)
{
    struct slice name;
    int16_t level;
    for (unsigned i = 0; i < o->features_count; i++) {
        if (split_feature(o->features[i], &name, &level, NULL) == 0 &&
            slice_equal_str(name, "kraft.version")) {
            return level;
        }
    }
    return -1;
}

static void add_level(struct record_list *out, struct arena *arena, struct slice name, int16_t level)
{
    struct metadata_record *m = record_list_add(out, METADATA_FEATURE_LEVEL, 0);
    m->body.feature_level.name = arena_dup_slice(arena, name);
    m->body.feature_level.feature_level = level;
}

// metadata.version: by --feature, else by --release-version, else the default.
static int pick_metadata_version(const struct format_options *o, int16_t *out, struct errmsg *msg)
{
    *out = FORMAT_METADATA_VERSION;
    if (o->release_version) {
        *out = metadata_version_parse(slice_str(o->release_version));
        if (*out == 0) {
            return err_set(msg, ERR_INVALID,
                           "--release-version %s is not known: name one from 3.3 to 4.4, as 4.3 or 4.3-IV0",
                           o->release_version);
        }
    }
    for (unsigned i = 0; i < o->features_count; i++) {
        struct slice name;
        int16_t level;
        int rc = split_feature(o->features[i], &name, &level, msg);
        if (rc) {
            return rc;
        }
        if (!slice_equal_str(name, "metadata.version")) {
            continue;
        }
        if (o->release_version) {
            return err_set(msg, ERR_INVALID,
                           "--release-version and --feature metadata.version say the same thing: drop one");
        }
        if (!metadata_version_of(level)) {
            return err_set(msg, ERR_INVALID, "metadata.version %d is not supported: from %d to %d are", level,
                           METADATA_VERSION_MIN, METADATA_VERSION_MAX);
        }
        *out = level;
    }
    return 0;
}

int format_initial_records(const struct format_options *o, struct arena *arena, struct record_list *out,
                           struct errmsg *msg)
{
    int16_t metadata_version;
    int rc = pick_metadata_version(o, &metadata_version, msg);
    if (rc) {
        return rc;
    }
    add_level(out, arena, SLICE_LIT("metadata.version"), metadata_version);
    for (unsigned i = 0; i < o->features_count; i++) {
        struct slice name;
        int16_t level;
        (void)split_feature(o->features[i], &name, &level, NULL);
        if (slice_equal_str(name, "metadata.version") || slice_equal_str(name, "kraft.version") ||
            level == 0) {
            continue; // the first is written, the second belongs to the quorum, level 0 is no record
        }
        const struct feature_range *range = feature_range_of(name);
        const struct feature_level *f = feature_level_of(name, level);
        if (!range || !f) {
            return err_set(msg, ERR_INVALID, "--feature %s: there is no such feature or level",
                           o->features[i]);
        }
        if (f->needs_metadata > metadata_version) {
            return err_set(msg, ERR_INVALID, "--feature %s needs metadata.version %d or later",
                           o->features[i], f->needs_metadata);
        }
        add_level(out, arena, name, level);
    }
    if (o->scram_count > 0 && metadata_version < METADATA_VERSION_SCRAM) {
        return err_set(msg, ERR_INVALID, "--add-scram needs metadata.version %d (3.5) or later",
                       METADATA_VERSION_SCRAM);
    }
    for (unsigned i = 0; rc == 0 && i < o->scram_count; i++) {
        rc = format_add_scram(o->scram[i], arena, out, msg);
    }
    return rc;
}
