// SPDX-License-Identifier: Apache-2.0
// IncrementalAlterConfigs and AlterConfigs: what a resource will have is judged as a whole before a record is
// written.
#include "core/controller/controller_priv.h"
#include "core/protocol/gen/alter_configs_request.h"
#include "core/protocol/gen/alter_configs_response.h"
#include "core/protocol/gen/incremental_alter_configs_request.h"
#include "core/protocol/gen/incremental_alter_configs_response.h"

enum operation { OP_SET = 0, OP_DELETE = 1, OP_APPEND = 2, OP_SUBTRACT = 3 };

#define MIN_ISR "min.insync.replicas"

// One entry of a request, either verb.
struct wish {
    struct slice key;   // config key
    struct slice value; // null for OP_DELETE
    int8_t op;          // enum operation
};

// Entries of a resource while they are being changed.
struct entries {
    struct image_config_entry *items; // in the arena, sorted by key
    int32_t count;                    // of them
};

static struct entries entries_of(struct controller *c, const struct image_config *now, int32_t more)
{
    int32_t count = now ? now->entries_count : 0;
    struct entries e = {arena_alloc(c->arena, (size_t)(count + more) * sizeof *e.items + 1), count};
    if (count > 0)
        memcpy(e.items, now->entries, (size_t)count * sizeof *e.items);
    return e;
}

static int32_t find(const struct entries *e, struct slice key, bool *there)
{
    int32_t i = 0;
    while (i < e->count && slice_compare(e->items[i].key, key) < 0)
        i++;
    *there = i < e->count && slice_equal(e->items[i].key, key);
    return i;
}

static struct slice value_of(const struct entries *e, struct slice key)
{
    bool there;
    int32_t i = find(e, key, &there);
    return there ? e->items[i].value : SLICE_NULL;
}

// Null deletes.
static void set(struct entries *e, struct slice key, struct slice value)
{
    bool there;
    int32_t i = find(e, key, &there);
    size_t after = (size_t)(e->count - i) * sizeof *e->items;
    if (slice_is_null(value)) {
        if (there)
            memmove(&e->items[i], &e->items[i + 1], after - sizeof *e->items);
        e->count -= there;
        return;
    }
    if (!there) {
        memmove(&e->items[i + 1], &e->items[i], after);
        e->count++;
    }
    e->items[i] = (struct image_config_entry){key, value};
}

// ---- lists
// ---------------------------------------------------------------------------------------------------
static struct slice trim(struct slice s)
{
    while (s.len > 0 && (s.data[0] == ' ' || s.data[0] == '\t'))
        s = slice_of(s.data + 1, s.len - 1);
    while (s.len > 0 && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t'))
        s.len--;
    return s;
}

// Takes the next element off a comma-separated list; false at the end. Empty elements are left out.
static bool next_element(struct slice *list, struct slice *out)
{
    while (list->len > 0) {
        const uint8_t *comma = memchr(list->data, ',', list->len);
        size_t len = comma ? (size_t)(comma - list->data) : list->len;
        *out = trim(slice_of(list->data, len));
        size_t used = comma ? len + 1 : len;
        *list = slice_of(list->data + used, list->len - used);
        if (out->len > 0)
            return true;
    }
    return false;
}

static bool list_has(struct slice list, struct slice element)
{
    struct slice e;
    while (next_element(&list, &e))
        if (slice_equal(e, element))
            return true;
    return false;
}

static void append(uint8_t *out, size_t *len, struct slice element)
{
    if (*len > 0)
        out[(*len)++] = ',';
    memcpy(out + *len, element.data, element.len);
    *len += element.len;
}

static struct slice change_list(struct controller *c, struct slice now, struct slice elements, bool add)
{
    uint8_t *out = arena_alloc(c->arena, now.len + elements.len + 2);
    size_t len = 0;
    struct slice rest = now, e;
    while (next_element(&rest, &e))
        if (add || !list_has(elements, e))
            append(out, &len, e);
    rest = elements;
    while (add && next_element(&rest, &e))
        if (!list_has(slice_of(out, len), e))
            append(out, &len, e);
    return slice_of(out, len);
}

// ---- one wish
// ------------------------------------------------------------------------------------------------
static struct refusal apply(struct controller *c, int8_t type, const struct wish *w, struct entries *e)
{
    struct controller_config_info info = {.known = true, .list = true};
    const struct config_validator *v = c->opts->configs;
    if (v)
        v->info(v->data, c->image, type, w->key, c->arena, &info);
    switch (w->op) {
    case OP_SET:
        if (slice_is_null(w->value))
            return controller__refuse(c, KE_INVALID_REQUEST, "The value of '" SLICE_FMT "' is missing.",
                                      SLICE_ARG(w->key));
        set(e, w->key, w->value);
        return NO_REFUSAL;
    case OP_DELETE:
        set(e, w->key, SLICE_NULL);
        return NO_REFUSAL;
    case OP_APPEND:
    case OP_SUBTRACT: {
        if (!info.list)
            return controller__refuse(c, KE_INVALID_CONFIG, "'" SLICE_FMT "' is no list: nothing can be %s.",
                                      SLICE_ARG(w->key),
                                      w->op == OP_APPEND ? "appended to it" : "taken out of it");
        if (slice_is_null(w->value))
            return controller__refuse(c, KE_INVALID_REQUEST, "The value of '" SLICE_FMT "' is missing.",
                                      SLICE_ARG(w->key));
        struct slice now = value_of(e, w->key);
        if (slice_is_null(now))
            now = slice_is_null(info.value) ? SLICE_LIT("") : info.value;
        set(e, w->key, change_list(c, now, w->value, w->op == OP_APPEND));
        return NO_REFUSAL;
    }
    default:
        return controller__refuse(c, KE_INVALID_REQUEST, "%d is not an operation on a config.", w->op);
    }
}

// ---- one resource
// --------------------------------------------------------------------------------------------
static bool parse_id(struct slice text, broker_id *out)
{
    int64_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        n = n * 10 + (text.data[i] - '0');
        if (n > INT32_MAX)
            return false;
    }
    *out = (broker_id)n;
    return text.len > 0;
}

static struct refusal check_resource(struct controller *c, int8_t type, struct slice name)
{
    broker_id id;
    switch (type) {
    case CONFIG_RESOURCE_TOPIC:
        if (!image_topic_named(c->image, name))
            return controller__refuse(c, KE_UNKNOWN_TOPIC_OR_PARTITION, "There is no topic '" SLICE_FMT "'.",
                                      SLICE_ARG(name));
        return NO_REFUSAL;
    case CONFIG_RESOURCE_BROKER:
        if (name.len == 0)
            return NO_REFUSAL;
        if (!parse_id(name, &id))
            return controller__refuse(c, KE_INVALID_REQUEST, "'" SLICE_FMT "' is not a node id.",
                                      SLICE_ARG(name));
        if (!image_broker(c->image, id) && !image_controller(c->image, id))
            return controller__refuse(c, KE_BROKER_ID_NOT_REGISTERED, "Node %d is not registered.", id);
        return NO_REFUSAL;
    case CONFIG_RESOURCE_GROUP:
    case CONFIG_RESOURCE_CLIENT_METRICS:
        if (name.len == 0)
            return controller__refuse(c, KE_INVALID_REQUEST, "The resource has no name.");
        return NO_REFUSAL;
    default:
        return controller__refuse(c, KE_INVALID_REQUEST,
                                  "Configs of resource type %d are not kept in the cluster.", type);
    }
}

struct refusal controller__check_configs(struct controller *c, int8_t type, struct slice name,
                                         const struct image_config_entry *entries, int32_t count)
{
    const struct config_validator *v = c->opts->configs;
    struct errmsg msg = {{0}};
    if (!v || v->validate(v->data, type, name, entries, count, &msg) == 0)
        return NO_REFUSAL;
    return controller__refuse(c, KE_INVALID_CONFIG, "%s", msg.text);
}

// With ELR on, the minimum ISR is the cluster's or the topic's; a change of it makes the eligible replicas
// void.
static struct refusal check_min_isr(struct controller *c, int8_t type, struct slice name,
                                    const struct image_config *now, const struct entries *next,
                                    struct record_list *records)
{
    if (!controller__elr_enabled(c->image))
        return NO_REFUSAL;
    struct entries before = {now ? (struct image_config_entry *)(uintptr_t)now->entries : NULL,
                             now ? now->entries_count : 0};
    struct slice old_value = value_of(&before, SLICE_LIT(MIN_ISR)),
                 new_value = value_of(next, SLICE_LIT(MIN_ISR));
    if (slice_equal(old_value, new_value))
        return NO_REFUSAL;
    if (type == CONFIG_RESOURCE_BROKER && name.len > 0)
        return controller__refuse(c, KE_INVALID_CONFIG,
                                  "With eligible.leader.replicas.version 1, " MIN_ISR
                                  " cannot differ between brokers: set it for the cluster or a topic.");
    if (type == CONFIG_RESOURCE_BROKER && slice_is_null(new_value))
        return controller__refuse(c, KE_INVALID_CONFIG,
                                  "With eligible.leader.replicas.version 1, the cluster's " MIN_ISR
                                  " can be changed but not deleted.");
    if (type == CONFIG_RESOURCE_BROKER || type == CONFIG_RESOURCE_TOPIC) {
        struct kp_clear_elr_record *clear = &record_list_add(records, METADATA_CLEAR_ELR, 0)->body.clear_elr;
        clear->topic_name = type == CONFIG_RESOURCE_TOPIC ? name : SLICE_LIT("");
    }
    return NO_REFUSAL;
}

static void write_entry(struct record_list *records, int8_t type, struct slice name, struct slice key,
                        struct slice value)
{
    struct kp_config_record *r = &record_list_add(records, METADATA_CONFIG, 0)->body.config;
    r->resource_type = type;
    r->resource_name = name;
    r->name = key;
    r->value = value;
}

// A record for every key whose value differs.
static void write_difference(struct record_list *records, int8_t type, struct slice name,
                             const struct image_config *now, const struct entries *next)
{
    int32_t old_count = now ? now->entries_count : 0, i = 0, k = 0;
    while (i < old_count || k < next->count) {
        int order = i == old_count     ? 1
                    : k == next->count ? -1
                                       : slice_compare(now->entries[i].key, next->items[k].key);
        if (order < 0) {
            write_entry(records, type, name, now->entries[i++].key, SLICE_NULL);
            continue;
        }
        if (order > 0 || !slice_equal(now->entries[i].value, next->items[k].value))
            write_entry(records, type, name, next->items[k].key, next->items[k].value);
        i += order == 0;
        k++;
    }
}

static struct refusal alter(struct controller *c, int8_t type, struct slice name, const struct wish *wishes,
                            int32_t count, bool replace, struct record_list *records)
{
    struct refusal no = check_resource(c, type, name);
    if (no.code != KE_NONE)
        return no;
    const struct image_config *now = image_config(c->image, type, name);
    struct entries next = entries_of(c, replace ? NULL : now, count);
    struct hmap seen;
    hmap_init(&seen, HMAP_SLICE);
    for (int32_t i = 0; i < count && no.code == KE_NONE; i++) {
        if (wishes[i].key.len == 0)
            no = controller__refuse(c, KE_INVALID_REQUEST, "A config without a key.");
        else if (controller__seen(&seen, wishes[i].key))
            no = controller__refuse(c, KE_INVALID_REQUEST, "Config '" SLICE_FMT "' is named twice.",
                                    SLICE_ARG(wishes[i].key));
        else
            no = apply(c, type, &wishes[i], &next);
    }
    hmap_fini(&seen);
    if (no.code == KE_NONE)
        no = controller__check_configs(c, type, name, next.items, next.count);
    uint32_t before = records->count;
    if (no.code == KE_NONE)
        no = check_min_isr(c, type, name, now, &next, records);
    if (no.code != KE_NONE)
        return no;
    write_difference(records, type, name, now, &next);
    if (records->count <= CONTROLLER_RECORDS_MAX)
        return NO_REFUSAL;
    record_list_cut(records, before);
    return controller__refuse(c, KE_POLICY_VIOLATION, "One request can change at most %d configs: split it.",
                              CONTROLLER_RECORDS_MAX);
}

// ---- the two verbs
// ------------------------------------------------------------------------------------------- Answers a
// resource that is named more than once as invalid, each time.
static bool named_twice(struct controller *c, struct hmap *seen, int8_t type, struct slice name, bool adding)
{
    struct slice key = slice_str(arena_printf(c->arena, "%d:" SLICE_FMT, type, SLICE_ARG(name)));
    if (!adding)
        return (uintptr_t)hmap_get(seen, key) > 1;
    (void)hmap_put(seen, key, (void *)((uintptr_t)hmap_get(seen, key) + 1));
    return false;
}

static struct wish *wishes_room(struct controller *c, int32_t count)
{
    return arena_alloc(c->arena, (size_t)(count > 0 ? count : 0) * sizeof(struct wish) + 1);
}

void controller_incremental_alter_configs(struct controller *c,
                                          const struct kp_incremental_alter_configs_request *in,
                                          struct kp_incremental_alter_configs_response *out,
                                          struct record_list *records)
{
    kp_incremental_alter_configs_response_init(out);
    int32_t count = in->resources_count > 0 ? in->resources_count : 0;
    out->responses = arena_zalloc(c->arena, (size_t)count * sizeof *out->responses + 1);
    out->responses_count = count;
    struct hmap seen;
    hmap_init(&seen, HMAP_SLICE);
    for (int32_t i = 0; i < count; i++)
        (void)named_twice(c, &seen, in->resources[i].resource_type, in->resources[i].resource_name, true);
    for (int32_t i = 0; i < count; i++) {
        const struct kp_incremental_alter_configs_request_alter_configs_resource *r = &in->resources[i];
        struct wish *wishes = wishes_room(c, r->configs_count);
        for (int32_t k = 0; k < r->configs_count; k++)
            wishes[k] =
                (struct wish){r->configs[k].name, r->configs[k].value, r->configs[k].config_operation};
        struct refusal no;
        if (named_twice(c, &seen, r->resource_type, r->resource_name, false))
            no = controller__refuse(c, KE_INVALID_REQUEST, "The resource is named twice in this request.");
        else
            no = alter(c, r->resource_type, r->resource_name, wishes, r->configs_count, false, records);
        out->responses[i].error_code = (int16_t)no.code;
        out->responses[i].error_message = no.text;
        out->responses[i].resource_type = r->resource_type;
        out->responses[i].resource_name = r->resource_name;
    }
    hmap_fini(&seen);
    if (in->validate_only)
        record_list_cut(records, 0);
}

void controller_alter_configs(struct controller *c, const struct kp_alter_configs_request *in,
                              struct kp_alter_configs_response *out, struct record_list *records)
{
    kp_alter_configs_response_init(out);
    int32_t count = in->resources_count > 0 ? in->resources_count : 0;
    out->responses = arena_zalloc(c->arena, (size_t)count * sizeof *out->responses + 1);
    out->responses_count = count;
    struct hmap seen;
    hmap_init(&seen, HMAP_SLICE);
    for (int32_t i = 0; i < count; i++)
        (void)named_twice(c, &seen, in->resources[i].resource_type, in->resources[i].resource_name, true);
    for (int32_t i = 0; i < count; i++) {
        const struct kp_alter_configs_request_alter_configs_resource *r = &in->resources[i];
        struct wish *wishes = wishes_room(c, r->configs_count);
        for (int32_t k = 0; k < r->configs_count; k++)
            wishes[k] = (struct wish){r->configs[k].name, r->configs[k].value, OP_SET};
        struct refusal no;
        if (named_twice(c, &seen, r->resource_type, r->resource_name, false))
            no = controller__refuse(c, KE_INVALID_REQUEST, "The resource is named twice in this request.");
        else
            no = alter(c, r->resource_type, r->resource_name, wishes, r->configs_count, true, records);
        out->responses[i].error_code = (int16_t)no.code;
        out->responses[i].error_message = no.text;
        out->responses[i].resource_type = r->resource_type;
        out->responses[i].resource_name = r->resource_name;
    }
    hmap_fini(&seen);
    if (in->validate_only)
        record_list_cut(records, 0);
}
