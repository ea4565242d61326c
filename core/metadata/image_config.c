// SPDX-License-Identifier: Apache-2.0
// Configs of resources, finalized features and client quotas: short sorted lists, replaced whole when one
// entry changes.
#include "core/metadata/image_priv.h"

#include <stdlib.h>

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
    struct slice out = slice_is_null(s) ? s : slice_of(*at, s.len);
    if (s.len)
        memcpy(*at, s.data, s.len);
    *at += s.len;
    return out;
}

// ---- configs
// ------------------------------------------------------------------------------------------------- The map's
// key is read out of the value: type and name, in one struct inside of it.
struct config_object {
    struct image_config c; // first, so that pointers convert
    struct config_key key; // copy of c.type and c.name
};

static const void *config_key_of(const void *value)
{
    return &((const struct config_object *)value)->key;
}

static uint64_t config_hash(const void *key)
{
    const struct config_key *k = key;
    return hash_bytes_seeded(k->name.data, k->name.len, (uint8_t)k->type);
}

static bool config_equal(const void *a, const void *b)
{
    const struct config_key *x = a, *y = b;
    return x->type == y->type && slice_equal(x->name, y->name);
}

const struct pmap_type config__map = {config_key_of, config_hash, config_equal, object_ref, object_unref};

static struct slice not_null(struct slice s)
{
    return slice_is_null(s) ? SLICE_LIT("") : s;
}

const struct image_config *image_config(const struct image *img, int8_t type, struct slice name)
{
    struct config_key key = {not_null(name), type};
    const struct config_object *o = pmap_get(&img->configs, &key);
    return o ? &o->c : NULL;
}

// Index of the key, or -1 - (where it would go).
static int32_t config_find(const struct image_config *c, struct slice key)
{
    int32_t low = 0, high = c ? c->entries_count : 0;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        int order = slice_compare(c->entries[mid].key, key);
        if (order == 0)
            return mid;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return -1 - low;
}

struct slice image_config_value(const struct image *img, int8_t type, struct slice name, struct slice key)
{
    const struct image_config *c = image_config(img, type, name);
    int32_t at = config_find(c, key);
    return at < 0 ? SLICE_NULL : c->entries[at].value;
}

static struct config_object *config_pack(int8_t type, struct slice name,
                                         const struct image_config_entry *entries, int32_t count)
{
    size_t size = sizeof(struct config_object) + (size_t)count * sizeof *entries + name.len;
    for (int32_t i = 0; i < count; i++)
        size += entries[i].key.len + entries[i].value.len;
    struct config_object *o = mem_alloc(size);
    struct image_config_entry *list = (struct image_config_entry *)(o + 1);
    uint8_t *at = (uint8_t *)(list + count);
    atomic_init(&o->c.refs, 1);
    o->c.type = type;
    o->c.name = put_slice(&at, name);
    o->c.entries = list;
    o->c.entries_count = count;
    o->key = (struct config_key){o->c.name, type};
    for (int32_t i = 0; i < count; i++) {
        list[i].key = put_slice(&at, entries[i].key);
        list[i].value = put_slice(&at, entries[i].value);
    }
    return o;
}

void config__set(struct image *img, int8_t type, struct slice name, struct slice key, struct slice value)
{
    name = not_null(name);
    const struct image_config *old = image_config(img, type, name);
    int32_t count = old ? old->entries_count : 0, at = config_find(old, key);
    bool there = at >= 0;
    if (slice_is_null(value) && !there)
        return;
    if (slice_is_null(value) && count == 1) {
        config__remove_all(img, type, name);
        return;
    }
    int32_t place = there ? at : -1 - at, out = 0;
    struct image_config_entry *entries = mem_calloc((size_t)count + 1, sizeof *entries);
    for (int32_t i = 0; i < place; i++)
        entries[out++] = old->entries[i];
    if (!slice_is_null(value))
        entries[out++] = (struct image_config_entry){key, value};
    for (int32_t i = place + there; i < count; i++)
        entries[out++] = old->entries[i];
    pmap_put(&img->configs, config_pack(type, name, entries, out));
    mem_free(entries);
}

void config__remove_all(struct image *img, int8_t type, struct slice name)
{
    struct config_key key = {not_null(name), type};
    (void)pmap_remove(&img->configs, &key);
}

int image_config_each(const struct image *img, int (*visit)(const struct image_config *c, void *data),
                      void *data)
{
    struct pmap_iter it;
    pmap_iter_init(&it, &img->configs);
    for (const struct config_object *o; (o = pmap_iter_next(&it)) != NULL;) {
        int stop = visit(&o->c, data);
        if (stop)
            return stop;
    }
    return 0;
}

// ---- features
// ------------------------------------------------------------------------------------------------
void features__unref(struct image_features *f)
{
    if (f)
        object_unref(f);
}

const struct image_feature *image_features(const struct image *img, int32_t *count)
{
    *count = img->features ? img->features->count : 0;
    return img->features ? img->features->items : NULL;
}

int16_t image_feature_level(const struct image *img, struct slice name)
{
    int32_t count;
    const struct image_feature *items = image_features(img, &count);
    for (int32_t i = 0; i < count; i++)
        if (slice_equal(items[i].name, name))
            return items[i].level;
    return 0;
}

void feature__set(struct image *img, struct slice name, int16_t level)
{
    const struct image_features *old = img->features;
    int32_t count = old ? old->count : 0, out = 0;
    size_t bytes = name.len;
    for (int32_t i = 0; i < count; i++)
        bytes += old->items[i].name.len;
    struct image_features *f = mem_alloc(sizeof *f + ((size_t)count + 1) * sizeof f->items[0] + bytes);
    uint8_t *at = (uint8_t *)&f->items[count + 1];
    bool placed = level == 0;
    for (int32_t i = 0; i < count; i++) {
        if (!placed && slice_compare(name, old->items[i].name) < 0) {
            f->items[out++] = (struct image_feature){put_slice(&at, name), level};
            placed = true;
        }
        if (!slice_equal(name, old->items[i].name))
            f->items[out++] = (struct image_feature){put_slice(&at, old->items[i].name), old->items[i].level};
    }
    if (!placed)
        f->items[out++] = (struct image_feature){put_slice(&at, name), level};
    atomic_init(&f->refs, 1);
    f->count = out;
    features__unref(img->features);
    img->features = f;
    img->metadata_version = image_feature_level(img, SLICE_LIT(FEATURE_METADATA_VERSION));
}

// ---- quotas
// -------------------------------------------------------------------------------------------------- The
// map's key is the entity in one string, see entity_text.
struct quota_object {
    struct image_quota q; // first, so that pointers convert
    struct slice entity;  // key
};

static const void *quota_key_of(const void *value)
{
    return &((const struct quota_object *)value)->entity;
}

const struct pmap_type quota__map = {quota_key_of, pmap_hash_slice, pmap_equal_slice, object_ref,
                                     object_unref};

static int compare_parts(const void *a, const void *b)
{
    return slice_compare(((const struct image_quota_part *)a)->type,
                         ((const struct image_quota_part *)b)->type);
}

#define QUOTA_PARTS_MAX 8 // parts of an entity; there are three types

// For each part: length of the type, the type, a byte that says whether there is a name, its length, the
// name.
static struct slice entity_text(const struct image_quota_part *parts, int32_t count, uint8_t *out)
{
    uint8_t *at = out;
    for (int32_t i = 0; i < count; i++) {
        uint32_t lengths[2] = {(uint32_t)parts[i].type.len, (uint32_t)parts[i].name.len};
        memcpy(at, lengths, sizeof lengths);
        at += sizeof lengths;
        *at++ = !slice_is_null(parts[i].name);
        (void)put_slice(&at, parts[i].type);
        (void)put_slice(&at, parts[i].name);
    }
    return slice_of(out, (size_t)(at - out));
}

static struct quota_object *quota_pack(struct slice entity, const struct image_quota_part *parts,
                                       int32_t parts_count, const struct image_quota_value *values,
                                       int32_t values_count)
{
    size_t size = sizeof(struct quota_object) + (size_t)parts_count * sizeof *parts +
                  (size_t)values_count * sizeof *values + entity.len;
    for (int32_t i = 0; i < parts_count; i++)
        size += parts[i].type.len + parts[i].name.len;
    for (int32_t i = 0; i < values_count; i++)
        size += values[i].key.len;
    struct quota_object *o = mem_alloc(size);
    struct image_quota_part *part = (struct image_quota_part *)(o + 1);
    struct image_quota_value *value = (struct image_quota_value *)(part + parts_count);
    uint8_t *at = (uint8_t *)(value + values_count);
    atomic_init(&o->q.refs, 1);
    for (int32_t i = 0; i < parts_count; i++)
        part[i] = (struct image_quota_part){put_slice(&at, parts[i].type), put_slice(&at, parts[i].name)};
    for (int32_t i = 0; i < values_count; i++)
        value[i] = (struct image_quota_value){put_slice(&at, values[i].key), values[i].value};
    o->q.parts = part;
    o->q.values = value;
    o->q.parts_count = parts_count;
    o->q.values_count = values_count;
    o->entity = put_slice(&at, entity);
    return o;
}

static int quota_check(const struct kp_client_quota_record *r, struct errmsg *msg)
{
    if (r->entity_count <= 0 || r->entity_count > QUOTA_PARTS_MAX)
        return err_set(msg, ERR_INVALID, "a quota entity of %d parts", r->entity_count);
    if (r->key.len == 0)
        return err_set(msg, ERR_INVALID, "a quota without a key");
    return 0;
}

int quota__apply(struct image *img, const struct kp_client_quota_record *r, struct errmsg *msg)
{
    int err = quota_check(r, msg);
    if (err)
        return err;
    struct image_quota_part parts[QUOTA_PARTS_MAX];
    size_t text = 0;
    for (int32_t i = 0; i < r->entity_count; i++) {
        parts[i] = (struct image_quota_part){not_null(r->entity[i].entity_type), r->entity[i].entity_name};
        text += 9 + parts[i].type.len + parts[i].name.len;
    }
    qsort(parts, (size_t)r->entity_count, sizeof parts[0], compare_parts);
    uint8_t *bytes = mem_alloc(text);
    struct slice entity = entity_text(parts, r->entity_count, bytes);
    const struct quota_object *old = pmap_get(&img->quotas, &entity);
    int32_t count = old ? old->q.values_count : 0, out = 0;
    struct image_quota_value *values = mem_calloc((size_t)count + 1, sizeof *values);
    bool placed = r->remove;
    for (int32_t i = 0; i < count; i++) {
        int order = slice_compare(r->key, old->q.values[i].key);
        if (!placed && order <= 0) {
            values[out++] = (struct image_quota_value){r->key, r->value};
            placed = true;
        }
        if (order != 0)
            values[out++] = old->q.values[i];
    }
    if (!placed)
        values[out++] = (struct image_quota_value){r->key, r->value};
    if (out > 0)
        pmap_put(&img->quotas, quota_pack(entity, parts, r->entity_count, values, out));
    else
        (void)pmap_remove(&img->quotas, &entity);
    mem_free(values);
    mem_free(bytes);
    return 0;
}

int image_quota_each(const struct image *img, int (*visit)(const struct image_quota *q, void *data),
                     void *data)
{
    struct pmap_iter it;
    pmap_iter_init(&it, &img->quotas);
    for (const struct quota_object *o; (o = pmap_iter_next(&it)) != NULL;) {
        int stop = visit(&o->q, data);
        if (stop)
            return stop;
    }
    return 0;
}
