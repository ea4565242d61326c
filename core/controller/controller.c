// SPDX-License-Identifier: Apache-2.0
// What all operations share: refusals, epochs, random choice, effective settings, staged decisions.
#include <stdarg.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/controller/controller_priv.h"

struct refusal controller__refuse(struct controller *c, enum kafka_error code, const char *fmt, ...)
{
    char text[ERRMSG_BYTES];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t bytes = len < 0 ? 0 : (size_t)len < sizeof text ? (size_t)len : sizeof text - 1;
    return (struct refusal){code, arena_dup_slice(c->arena, slice_of(text, bytes))};
}

enum kafka_error controller__check_epoch(const struct controller *c, broker_id id, broker_epoch epoch)
{
    const struct image_broker *b = image_broker(c->image, id);
    if (!b)
        return KE_BROKER_ID_NOT_REGISTERED;
    return b->epoch == epoch ? KE_NONE : KE_STALE_BROKER_EPOCH;
}

uint64_t controller__random(struct controller *c, uint64_t below)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % below, n;
    do
        n = c->random.next(c->random.data);
    while (n >= limit);
    return n % below;
}

bool controller__elr_enabled(const struct image *img)
{
    return image_feature_level(img, SLICE_LIT("eligible.leader.replicas.version")) >= 1;
}

// Value of a key as it holds for a topic: its own, else the default of all brokers; null where the file
// decides.
static struct slice topic_setting(const struct image *img, const struct image_topic *t, const char *key)
{
    struct slice value = image_config_value(img, CONFIG_RESOURCE_TOPIC, topic_name(t), slice_str(key));
    if (slice_is_null(value))
        value = image_config_value(img, CONFIG_RESOURCE_BROKER, SLICE_LIT(""), slice_str(key));
    return value;
}

bool controller__unclean_allowed(const struct controller *c, const struct image_topic *t)
{
    struct slice value = topic_setting(c->image, t, "unclean.leader.election.enable");
    return slice_is_null(value) ? c->opts->unclean_election : slice_equal_str(value, "true");
}

// Digits only; what was written has been judged before.
static int32_t parse_positive(struct slice text, int32_t otherwise)
{
    int64_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || n > INT32_MAX / 10)
            return otherwise;
        n = n * 10 + (text.data[i] - '0');
    }
    return text.len == 0 || n > INT32_MAX ? otherwise : (int32_t)n;
}

int32_t controller__min_isr(const struct controller *c, const struct image_topic *t)
{
    int32_t file = c->opts->min_insync_replicas > 0 ? c->opts->min_insync_replicas : 1;
    return parse_positive(topic_setting(c->image, t, "min.insync.replicas"), file);
}

bool controller__seen(struct hmap *set, struct slice name)
{
    if (hmap_get(set, name))
        return true;
    static const char there[] = "there";
    (void)hmap_put(set, name, (void *)(uintptr_t)there);
    return false;
}

void controller__stage_begin(struct controller *c, struct stage *s, const struct record_list *records)
{
    *s = (struct stage){.original = c->image, .replayed = records->count};
}

void controller__staged(struct controller *c, struct stage *s, const struct record_list *records)
{
    if (s->replayed == records->count)
        return;
    struct image_builder *b = image_builder_create(c->image);
    for (; s->replayed < records->count; s->replayed++) {
        struct errmsg msg;
        int err = image_replay(b, &records->items[s->replayed], c->next_offset + s->replayed,
                               image_epoch(c->image), &msg);
        MUST(err == 0);
    }
    struct image *next = image_builder_finish(b);
    image_unref(s->staged);
    s->staged = next;
    c->image = next;
}

void controller__stage_end(struct controller *c, struct stage *s)
{
    c->image = s->original;
    image_unref(s->staged);
    s->staged = NULL;
}
