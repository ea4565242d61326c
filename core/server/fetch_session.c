// SPDX-License-Identifier: Apache-2.0
// The cache of fetch sessions.
#include "core/server/fetch_session.h"

#include "core/base/assert.h"
#include "core/base/bytes.h"
#include "core/base/mem.h"
#include "core/base/mutex.h"
#include "core/protocol/gen/errors.h"

#define TOPIC_IDS_FROM 13 // fetch version that asks by topic id

struct fetch_sessions {
    struct mutex lock; // guards all that follows, and `in_use` and `closed` of the sessions
    int32_t slots;     // most sessions
    struct hmap by_id; // id -> session
};

struct fetch_sessions *fetch_sessions_create(int32_t slots)
{
    struct fetch_sessions *c = mem_zalloc(sizeof *c);
    mutex_init(&c->lock);
    c->slots = slots;
    hmap_init(&c->by_id, HMAP_U64);
    return c;
}

static void free_session(struct fetch_session *s)
{
    for (struct list_node *n; (n = list_pop(&s->items)) != NULL;) {
        mem_free(LIST_ENTRY(n, struct fetch_item, link));
    }
    hmap_fini(&s->by_key);
    mem_free(s);
}

void fetch_sessions_destroy(struct fetch_sessions *c)
{
    if (c == NULL) {
        return;
    }
    size_t at = 0;
    const struct hmap_slot *slot;
    while ((slot = hmap_next(&c->by_id, &at)) != NULL) {
        free_session(slot->value);
    }
    hmap_fini(&c->by_id);
    mutex_fini(&c->lock);
    mem_free(c);
}

int32_t fetch_sessions_count(struct fetch_sessions *c)
{
    mutex_lock(&c->lock);
    int32_t n = (int32_t)hmap_count(&c->by_id);
    mutex_unlock(&c->lock);
    return n;
}

// ---- contents -------------------------------------------------------------------------------------------

static size_t make_key(uint8_t *key, bool by_id, const struct uuid *id, struct slice topic,
                       partition_id index)
{
    size_t n = by_id ? sizeof id->b : topic.len;
    if (n > 0) {
        memcpy(key, by_id ? id->b : topic.data, n);
    }
    bytes_store_be32(key + n, (uint32_t)index);
    return n + 4;
}

#define KEY_BYTES_MAX (INT16_MAX + 4) // the longest topic name that a request can carry, and the index

static void put_item(struct fetch_session *s, const struct kp_fetch_request_fetch_topic *t,
                     const struct kp_fetch_request_fetch_partition *p)
{
    uint8_t key[512];
    size_t key_len = (s->by_id ? sizeof t->topic_id.b : t->topic.len) + 4;
    struct fetch_item *item = NULL;
    if (key_len <= sizeof key) {
        (void)make_key(key, s->by_id, &t->topic_id, t->topic, p->partition);
        item = hmap_get(&s->by_key, slice_of(key, key_len));
    }
    if (item == NULL) {
        MUST(key_len <= KEY_BYTES_MAX * 2);
        item = mem_zalloc(sizeof *item + key_len);
        item->key_len = make_key(item->key, s->by_id, &t->topic_id, t->topic, p->partition);
        item->topic_id = s->by_id ? t->topic_id : UUID_ZERO;
        item->topic = s->by_id ? SLICE_NULL : slice_of(item->key, t->topic.len);
        item->index = p->partition;
        item->sent_high_watermark = item->sent_log_start = -1;
        struct fetch_item *old = hmap_put(&s->by_key, slice_of(item->key, key_len), item);
        if (old != NULL) {
            list_remove(&old->link);
            mem_free(old);
        }
        list_add_tail(&s->items, &item->link);
    }
    item->offset = p->fetch_offset;
    item->max_bytes = p->partition_max_bytes;
    item->current_epoch = p->current_leader_epoch;
    item->last_epoch = p->last_fetched_epoch;
    item->log_start = p->log_start_offset;
}

static void forget(struct fetch_session *s, const struct kp_fetch_request_forgotten_topic *t)
{
    uint8_t key[512];
    for (int32_t i = 0; i < t->partitions_count; i++) {
        if ((s->by_id ? sizeof t->topic_id.b : t->topic.len) + 4 > sizeof key) {
            continue;
        }
        size_t n = make_key(key, s->by_id, &t->topic_id, t->topic, t->partitions[i]);
        struct fetch_item *item = hmap_remove(&s->by_key, slice_of(key, n));
        if (item != NULL) {
            list_remove(&item->link);
            mem_free(item);
        }
    }
}

static void update(struct fetch_session *s, const struct kp_fetch_request *in)
{
    for (int32_t i = 0; i < in->topics_count; i++) {
        for (int32_t k = 0; k < in->topics[i].partitions_count; k++) {
            put_item(s, &in->topics[i], &in->topics[i].partitions[k]);
        }
    }
    for (int32_t i = 0; i < in->forgotten_topics_data_count; i++) {
        forget(s, &in->forgotten_topics_data[i]);
    }
}

// ---- slots ----------------------------------------------------------------------------------------------

static void evict(struct fetch_sessions *c, struct fetch_session *s)
{
    (void)hmap_remove_u64(&c->by_id, (uint64_t)(uint32_t)s->id);
    s->closed = true;
    if (!s->in_use) {
        free_session(s);
    }
}

static bool ranks_below(const struct fetch_session *a, const struct fetch_session *b)
{
    if (a->privileged != b->privileged) {
        return !a->privileged;
    }
    return hmap_count(&a->by_key) < hmap_count(&b->by_key);
}

// Makes room for `s`; false when no session ranks below it.
static bool make_room(struct fetch_sessions *c, const struct fetch_session *s, mono_us now)
{
    if ((int32_t)hmap_count(&c->by_id) < c->slots) {
        return true;
    }
    struct fetch_session *idle = NULL;
    struct fetch_session *least = NULL;
    size_t at = 0;
    const struct hmap_slot *slot;
    while ((slot = hmap_next(&c->by_id, &at)) != NULL) {
        struct fetch_session *o = slot->value;
        if (!o->in_use && now - o->last_used >= FETCH_SESSION_IDLE_US &&
            (idle == NULL || o->last_used < idle->last_used)) {
            idle = o;
        }
        if (least == NULL || ranks_below(o, least)) {
            least = o;
        }
    }
    struct fetch_session *victim = idle != NULL                             ? idle
                                   : least != NULL && ranks_below(least, s) ? least
                                                                            : NULL;
    if (victim != NULL) {
        evict(c, victim);
    }
    return victim != NULL;
}

static void take_slot(struct fetch_sessions *c, struct fetch_session *s, mono_us now, uint64_t random)
{
    if (!make_room(c, s, now)) {
        return;
    }
    int32_t id = (int32_t)(random & INT32_MAX);
    while (id == 0 || hmap_get_u64(&c->by_id, (uint64_t)(uint32_t)id) != NULL) {
        id = id == INT32_MAX ? 1 : id + 1;
    }
    s->id = id;
    s->epoch = FETCH_SESSION_FIRST_EPOCH + 1;
    (void)hmap_put_u64(&c->by_id, (uint64_t)(uint32_t)id, s);
}

int16_t fetch_session_begin(struct fetch_sessions *c, const struct kp_fetch_request *in, int16_t version,
                            bool privileged, mono_us now, uint64_t random, struct fetch_session **out,
                            bool *incremental)
{
    int16_t error = KE_NONE;
    bool by_id = version >= TOPIC_IDS_FROM;
    struct fetch_session *s = NULL;
    bool full =
        in->session_epoch == FETCH_SESSION_FINAL_EPOCH || in->session_epoch == FETCH_SESSION_FIRST_EPOCH;
    *incremental = !full;
    mutex_lock(&c->lock);
    if (in->session_id != 0) {
        s = hmap_get_u64(&c->by_id, (uint64_t)(uint32_t)in->session_id);
    }
    if (full) {
        if (s != NULL) {
            evict(c, s);
        }
        s = mem_zalloc(sizeof *s);
        s->by_id = by_id;
        s->privileged = privileged;
        s->closed = true; // until it has a slot
        list_init(&s->items);
        hmap_init(&s->by_key, HMAP_SLICE);
    } else if (s == NULL) {
        error = KE_FETCH_SESSION_ID_NOT_FOUND;
    } else if (s->in_use || s->epoch != in->session_epoch) {
        error = KE_INVALID_FETCH_SESSION_EPOCH;
    } else if (s->by_id != by_id) {
        error = KE_FETCH_SESSION_TOPIC_ID_ERROR;
    } else {
        s->epoch = s->epoch == INT32_MAX ? 1 : s->epoch + 1;
    }
    if (error == KE_NONE) {
        s->in_use = true;
        s->last_used = now;
        update(s, in);
        if (full && in->session_epoch == FETCH_SESSION_FIRST_EPOCH && c->slots > 0) {
            take_slot(c, s, now, random);
            s->closed = s->id == 0;
        }
    }
    mutex_unlock(&c->lock);
    *out = error == KE_NONE ? s : NULL;
    return error;
}

void fetch_session_end(struct fetch_sessions *c, struct fetch_session *s, mono_us now)
{
    mutex_lock(&c->lock);
    s->in_use = false;
    s->last_used = now;
    bool drop = s->closed;
    mutex_unlock(&c->lock);
    if (drop) {
        free_session(s);
    }
}
