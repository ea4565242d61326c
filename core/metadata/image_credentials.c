// SPDX-License-Identifier: Apache-2.0
// ACLs, SCRAM credentials and delegation tokens of the image, and the types of its plain maps.
#include "core/metadata/image_priv.h"

#include "core/base/hash.h"
#include "core/base/mem.h"

static void object_ref(void *object)
{
    (void)image__ref(object);
}

static void object_unref(void *object)
{
    if (image__unref(object))
        mem_free(object);
}

static struct slice put_slice(uint8_t **at, struct slice s)
{
    struct slice out = slice_of(*at, s.len);
    if (s.len)
        memcpy(*at, s.data, s.len);
    *at += s.len;
    return out;
}

// ---- topics by id and by name
// --------------------------------------------------------------------------------
static const void *topic_id_of(const void *value)
{
    return &((const struct topic_info *)value)->id;
}

const struct pmap_type topic_id__map = {topic_id_of, pmap_hash_uuid, pmap_equal_uuid, object_ref,
                                        topic_info__unref};
// ---- ACLs
// ----------------------------------------------------------------------------------------------------
static const void *acl_key_of(const void *value)
{
    return &((const struct image_acl *)value)->id;
}

const struct pmap_type acl__map = {acl_key_of, pmap_hash_uuid, pmap_equal_uuid, object_ref, object_unref};

int acl__add(struct image *img, const struct kp_access_control_entry_record *r, struct errmsg *msg)
{
    if (uuid_is_zero(r->id))
        return err_set(msg, ERR_INVALID, "an access control entry without an id");
    struct image_acl *a = mem_alloc(sizeof *a + r->resource_name.len + r->principal.len + r->host.len);
    uint8_t *at = (uint8_t *)(a + 1);
    atomic_init(&a->refs, 1);
    a->id = r->id;
    a->resource = put_slice(&at, r->resource_name);
    a->principal = put_slice(&at, r->principal);
    a->host = put_slice(&at, r->host);
    a->resource_type = r->resource_type;
    a->pattern_type = r->pattern_type;
    a->operation = r->operation;
    a->permission = r->permission_type;
    pmap_put(&img->acls, a);
    return 0;
}

const struct image_acl *image_acl(const struct image *img, struct uuid id)
{
    return pmap_get(&img->acls, &id);
}

int image_acl_each(const struct image *img, int (*visit)(const struct image_acl *a, void *data), void *data)
{
    struct pmap_iter it;
    pmap_iter_init(&it, &img->acls);
    for (const struct image_acl *a; (a = pmap_iter_next(&it)) != NULL;) {
        int stop = visit(a, data);
        if (stop)
            return stop;
    }
    return 0;
}

// ---- SCRAM
// ---------------------------------------------------------------------------------------------------
struct scram_object {
    struct image_scram s; // first, so that pointers convert
    struct scram_key key; // copy of s.mechanism and s.user
};

static const void *scram_key_of(const void *value)
{
    return &((const struct scram_object *)value)->key;
}

static uint64_t scram_hash(const void *key)
{
    const struct scram_key *k = key;
    return hash_bytes_seeded(k->user.data, k->user.len, (uint8_t)k->mechanism);
}

static bool scram_equal(const void *a, const void *b)
{
    const struct scram_key *x = a, *y = b;
    return x->mechanism == y->mechanism && slice_equal(x->user, y->user);
}

const struct pmap_type scram__map = {scram_key_of, scram_hash, scram_equal, object_ref, object_unref};

void scram__add(struct image *img, const struct kp_user_scram_credential_record *r)
{
    size_t bytes = r->name.len + r->salt.len + r->stored_key.len + r->server_key.len;
    struct scram_object *o = mem_alloc(sizeof *o + bytes);
    uint8_t *at = (uint8_t *)(o + 1);
    atomic_init(&o->s.refs, 1);
    o->s.user = put_slice(&at, r->name);
    o->s.mechanism = r->mechanism;
    o->s.iterations = r->iterations;
    o->s.salt = put_slice(&at, r->salt);
    o->s.stored_key = put_slice(&at, r->stored_key);
    o->s.server_key = put_slice(&at, r->server_key);
    o->key = (struct scram_key){o->s.user, r->mechanism};
    pmap_put(&img->scram, o);
}

const struct image_scram *image_scram(const struct image *img, int8_t mechanism, struct slice user)
{
    struct scram_key key = {user, mechanism};
    const struct scram_object *o = pmap_get(&img->scram, &key);
    return o ? &o->s : NULL;
}

int image_scram_each(const struct image *img, int (*visit)(const struct image_scram *s, void *data),
                     void *data)
{
    struct pmap_iter it;
    pmap_iter_init(&it, &img->scram);
    for (const struct scram_object *o; (o = pmap_iter_next(&it)) != NULL;) {
        int stop = visit(&o->s, data);
        if (stop)
            return stop;
    }
    return 0;
}

// ---- delegation tokens
// ---------------------------------------------------------------------------------------
static const void *token_key_of(const void *value)
{
    return &((const struct image_token *)value)->id;
}

const struct pmap_type token__map = {token_key_of, pmap_hash_slice, pmap_equal_slice, object_ref,
                                     object_unref};

void token__add(struct image *img, const struct kp_delegation_token_record *r)
{
    size_t count = r->renewers_count > 0 ? (size_t)r->renewers_count : 0;
    size_t bytes = r->token_id.len + r->owner.len + r->requester.len + count * sizeof(struct slice);
    for (size_t i = 0; i < count; i++)
        bytes += r->renewers[i].len;
    struct image_token *t = mem_alloc(sizeof *t + bytes);
    struct slice *renewers = (struct slice *)(t + 1);
    uint8_t *at = (uint8_t *)(renewers + count);
    atomic_init(&t->refs, 1);
    t->id = put_slice(&at, r->token_id);
    t->owner = put_slice(&at, r->owner);
    t->requester = put_slice(&at, r->requester);
    for (size_t i = 0; i < count; i++)
        renewers[i] = put_slice(&at, r->renewers[i]);
    t->renewers = renewers;
    t->renewers_count = (int32_t)count;
    t->issued = r->issue_timestamp;
    t->max = r->max_timestamp;
    t->expires = r->expiration_timestamp;
    pmap_put(&img->tokens, t);
}

const struct image_token *image_token(const struct image *img, struct slice id)
{
    return pmap_get(&img->tokens, &id);
}

int image_token_each(const struct image *img, int (*visit)(const struct image_token *t, void *data),
                     void *data)
{
    struct pmap_iter it;
    pmap_iter_init(&it, &img->tokens);
    for (const struct image_token *t; (t = pmap_iter_next(&it)) != NULL;) {
        int stop = visit(t, data);
        if (stop)
            return stop;
    }
    return 0;
}
