// SPDX-License-Identifier: Apache-2.0
// Rules for topic names, and the search for colliding ones.
#include "core/metadata/topic_name.h"

#include "core/base/hash.h"
#include "core/metadata/image_priv.h"

const char *topic_name_check(struct slice name)
{
    if (name.len == 0)
        return "it is empty";
    if (name.len > TOPIC_NAME_BYTES_MAX)
        return "it is longer than 249 characters";
    if (slice_equal_str(name, ".") || slice_equal_str(name, ".."))
        return "'.' and '..' are no names";
    for (size_t i = 0; i < name.len; i++) {
        uint8_t ch = name.data[i];
        bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
        if (!letter && ch != '.' && ch != '_' && ch != '-')
            return "only ASCII letters, digits, '.', '_' and '-' may stand in it";
    }
    return NULL;
}

bool topic_name_is_internal(struct slice name)
{
    return slice_equal_str(name, TOPIC_CONSUMER_OFFSETS) || slice_equal_str(name, TOPIC_TRANSACTION_STATE) ||
           slice_equal_str(name, TOPIC_SHARE_GROUP_STATE);
}

static uint8_t shape_of(uint8_t ch)
{
    return ch == '.' ? '_' : ch;
}

struct slice topic_name_shape(struct slice name, struct arena *arena)
{
    uint8_t *out = arena_alloc(arena, name.len + 1);
    for (size_t i = 0; i < name.len; i++)
        out[i] = shape_of(name.data[i]);
    return slice_of(out, name.len);
}

// The map of topics by name hashes the shape, so that colliding names lie together, and compares the name.
// Asked with a type that compares the shape, the same nodes answer with any topic that collides.
static const void *name_of(const void *value)
{
    return &((const struct topic_info *)value)->name;
}

static uint64_t hash_shape(const void *key)
{
    const struct slice *name = key;
    uint8_t shape[TOPIC_NAME_BYTES_MAX];
    size_t len = name->len < sizeof shape ? name->len : sizeof shape;
    for (size_t i = 0; i < len; i++)
        shape[i] = shape_of(name->data[i]);
    return hash_bytes(shape, len);
}

static bool equal_shape(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    bool same = x->len == y->len;
    for (size_t i = 0; same && i < x->len; i++)
        same = shape_of(x->data[i]) == shape_of(y->data[i]);
    return same;
}

static void info_ref(void *info)
{
    (void)image__ref(info);
}

const struct pmap_type topic_name__map = {name_of, hash_shape, pmap_equal_slice, info_ref, topic_info__unref};
static const struct pmap_type by_shape = {name_of, hash_shape, equal_shape, info_ref, topic_info__unref};

const struct image_topic *image_topic_colliding(const struct image *img, struct slice name)
{
    struct pmap view = img->topic_names;
    view.type = &by_shape;
    const struct topic_info *info = pmap_get(&view, &name);
    return info ? imap_get(&img->topics, info->ordinal) : NULL;
}
