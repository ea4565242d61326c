// SPDX-License-Identifier: Apache-2.0
// CreateTopics and DeleteTopics.
#include "core/controller/controller_priv.h"
#include "core/protocol/gen/create_topics_request.h"
#include "core/protocol/gen/create_topics_response.h"
#include "core/protocol/gen/delete_topics_request.h"
#include "core/protocol/gen/delete_topics_response.h"
#include "core/metadata/topic_name.h"

typedef struct kp_create_topics_request_creatable_topic creatable_topic;
typedef struct kp_create_topics_response_creatable_topic_result created_topic;

// ---- judging
// -------------------------------------------------------------------------------------------------
static struct refusal check_name(struct controller *c, struct slice name, struct hmap *shapes)
{
    const char *wrong = topic_name_check(name);
    struct slice shown =
        slice_of(name.data, name.len > TOPIC_NAME_BYTES_MAX ? TOPIC_NAME_BYTES_MAX : name.len);
    if (wrong)
        return controller__refuse(c, KE_INVALID_TOPIC_EXCEPTION,
                                  "Topic name '" SLICE_FMT "' is not allowed: %s.", SLICE_ARG(shown), wrong);
    if (slice_equal_str(name, TOPIC_CLUSTER_METADATA))
        return controller__refuse(c, KE_INVALID_REQUEST,
                                  "Topic '%s' is the cluster's own and cannot be created.",
                                  TOPIC_CLUSTER_METADATA);
    if (image_topic_named(c->image, name))
        return controller__refuse(c, KE_TOPIC_ALREADY_EXISTS, "Topic '" SLICE_FMT "' already exists.",
                                  SLICE_ARG(name));
    const struct image_topic *other = image_topic_colliding(c->image, name);
    if (other)
        return controller__refuse(c, KE_INVALID_TOPIC_EXCEPTION,
                                  "Topic '" SLICE_FMT "' collides with the existing topic '" SLICE_FMT
                                  "': '.' and '_' are one in metric names.",
                                  SLICE_ARG(name), SLICE_ARG(topic_name(other)));
    if (controller__seen(shapes, topic_name_shape(name, c->arena)))
        return controller__refuse(c, KE_INVALID_TOPIC_EXCEPTION,
                                  "Topic '" SLICE_FMT "' collides with another one of this request.",
                                  SLICE_ARG(name));
    return NO_REFUSAL;
}

// The user's assignment as a placement: partitions 0 to n - 1, each once.
static struct refusal manual_placement(struct controller *c, const creatable_topic *in, struct placement *out)
{
    if (in->replication_factor != -1 || in->num_partitions != -1)
        return controller__refuse(
            c, KE_INVALID_REQUEST,
            "With an assignment of its own, a topic's partition count and replication factor must "
            "be -1.");
    int32_t count = in->assignments_count, factor = in->assignments[0].broker_ids_count;
    bool *seen = arena_zalloc(c->arena, (size_t)count * sizeof *seen);
    for (int32_t i = 0; i < count; i++) {
        int32_t index = in->assignments[i].partition_index;
        struct refusal no = NO_REFUSAL;
        if (index < 0 || index >= count)
            no = controller__refuse(c, KE_INVALID_REPLICA_ASSIGNMENT,
                                    "The assignment must number its %d partition(s) from 0 without a gap.",
                                    count);
        else if (seen[index])
            no = controller__refuse(c, KE_INVALID_REPLICA_ASSIGNMENT,
                                    "The assignment holds partition %d twice.", index);
        else
            no = controller__check_assignment(c, in->assignments[i].broker_ids,
                                              in->assignments[i].broker_ids_count, factor);
        if (no.code != KE_NONE)
            return no;
        seen[index] = true;
    }
    out->brokers = arena_alloc(c->arena, (size_t)count * (size_t)factor * sizeof *out->brokers);
    out->count = count;
    out->factor = factor;
    for (int32_t i = 0; i < count; i++)
        memcpy(out->brokers + (size_t)in->assignments[i].partition_index * (size_t)factor,
               in->assignments[i].broker_ids, (size_t)factor * sizeof *out->brokers);
    return NO_REFUSAL;
}

static int32_t partitions_asked(const struct controller *c, const creatable_topic *in)
{
    if (in->assignments_count > 0)
        return in->assignments_count;
    return in->num_partitions == -1 ? c->opts->num_partitions : in->num_partitions;
}

static struct refusal placement_of(struct controller *c, const creatable_topic *in, struct placement *out)
{
    if (in->assignments_count > 0)
        return manual_placement(c, in, out);
    int32_t count = partitions_asked(c, in);
    int32_t factor = in->replication_factor == -1 ? c->opts->replication_factor : in->replication_factor;
    if (count < 1)
        return controller__refuse(c, KE_INVALID_PARTITIONS, "A topic has at least one partition, not %d.",
                                  count);
    if (factor < 1)
        return controller__refuse(c, KE_INVALID_REPLICATION_FACTOR,
                                  "A replication factor is at least 1, not %d.", factor);
    return controller__place(c, NULL, count, factor, out);
}

static struct refusal topic_configs(struct controller *c, const creatable_topic *in,
                                    struct image_config_entry **entries)
{
    int32_t count = in->configs_count > 0 ? in->configs_count : 0, out = 0;
    *entries = arena_alloc(c->arena, (size_t)count * sizeof **entries + 1);
    struct hmap seen;
    hmap_init(&seen, HMAP_SLICE);
    struct refusal no = NO_REFUSAL;
    for (int32_t i = 0; i < count && no.code == KE_NONE; i++) {
        if (in->configs[i].name.len == 0)
            no = controller__refuse(c, KE_INVALID_CONFIG, "A config without a key.");
        else if (slice_is_null(in->configs[i].value))
            no = controller__refuse(c, KE_INVALID_CONFIG, "The value of '" SLICE_FMT "' is missing.",
                                    SLICE_ARG(in->configs[i].name));
        else if (controller__seen(&seen, in->configs[i].name))
            no = controller__refuse(c, KE_INVALID_CONFIG, "Config '" SLICE_FMT "' is given twice.",
                                    SLICE_ARG(in->configs[i].name));
        else
            (*entries)[out++] = (struct image_config_entry){in->configs[i].name, in->configs[i].value};
    }
    hmap_fini(&seen);
    return no.code != KE_NONE
               ? no
               : controller__check_configs(c, CONFIG_RESOURCE_TOPIC, in->name, *entries, count);
}

static struct uuid new_topic_id(struct controller *c)
{
    for (;;) {
        uint64_t bits[2] = {c->random.next(c->random.data), c->random.next(c->random.data)};
        struct uuid id;
        if (uuid_from_random((const uint8_t *)bits, &id) && !image_topic(c->image, id))
            return id;
    }
}

// ---- the configs of the answer
// -------------------------------------------------------------------------------
struct config_answer {
    struct controller *c;                 // context
    const struct image_config_entry *own; // what the topic sets
    int32_t own_count;                    // of them
    created_topic *out;                   // being filled
    int32_t cap;                          // room
};

static void answer_key(void *to, struct slice key)
{
    struct config_answer *a = to;
    created_topic *out = a->out;
    if (out->configs_count == a->cap) {
        a->cap = a->cap ? a->cap * 2 : 40;
        struct kp_create_topics_response_creatable_topic_configs *more =
            arena_zalloc(a->c->arena, (size_t)a->cap * sizeof *more);
        if (out->configs_count > 0)
            memcpy(more, out->configs, (size_t)out->configs_count * sizeof *more);
        out->configs = more;
    }
    struct controller_config_info info = {0};
    const struct config_validator *v = a->c->opts->configs;
    v->info(v->data, a->c->image, CONFIG_RESOURCE_TOPIC, key, a->c->arena, &info);
    struct kp_create_topics_response_creatable_topic_configs *config = &out->configs[out->configs_count++];
    config->name = key;
    config->value = info.value;
    config->config_source = info.source;
    config->read_only = info.read_only;
    config->is_sensitive = info.sensitive;
    for (int32_t i = 0; i < a->own_count; i++)
        if (slice_equal(a->own[i].key, key)) {
            config->value = a->own[i].value;
            config->config_source = 1; // DYNAMIC_TOPIC_CONFIG
        }
    if (config->is_sensitive)
        config->value = SLICE_NULL;
}

static void answer_configs(struct controller *c, const struct image_config_entry *own, int32_t count,
                           created_topic *out)
{
    struct config_answer a = {c, own, count, out, 0};
    out->configs = arena_zalloc(c->arena, 1);
    out->configs_count = 0;
    const struct config_validator *v = c->opts->configs;
    if (v)
        v->each_key(v->data, CONFIG_RESOURCE_TOPIC, answer_key, &a);
}

// ---- making
// --------------------------------------------------------------------------------------------------
static struct refusal topic_records(struct controller *c, const creatable_topic *in,
                                    const struct placement *placed, const struct image_config_entry *configs,
                                    struct uuid id, struct record_list *records)
{
    struct kp_topic_record *topic = &record_list_add(records, METADATA_TOPIC, 0)->body.topic;
    topic->name = in->name;
    topic->topic_id = id;
    for (int32_t i = 0; i < in->configs_count; i++) {
        struct kp_config_record *config = &record_list_add(records, METADATA_CONFIG, 0)->body.config;
        config->resource_type = CONFIG_RESOURCE_TOPIC;
        config->resource_name = in->name;
        config->name = configs[i].key;
        config->value = configs[i].value;
    }
    for (int32_t i = 0; i < placed->count; i++)
        if (!controller__add_partition(c, records, id, i,
                                       placed->brokers + (size_t)i * (size_t)placed->factor, placed->factor))
            return controller__refuse(
                c, KE_INVALID_REPLICA_ASSIGNMENT,
                "All replicas of partition %d are on brokers that are fenced or stopping.", i);
    return NO_REFUSAL;
}

static struct refusal create_topic(struct controller *c, const creatable_topic *in, struct hmap *shapes,
                                   bool may_describe_configs, created_topic *out, struct record_list *records)
{
    struct image_config_entry *configs;
    struct placement placed;
    struct refusal no = check_name(c, in->name, shapes);
    if (no.code == KE_NONE)
        no = topic_configs(c, in, &configs);
    if (no.code == KE_NONE)
        no = placement_of(c, in, &placed);
    if (no.code != KE_NONE)
        return no;
    uint32_t before = records->count;
    struct uuid id = new_topic_id(c);
    no = topic_records(c, in, &placed, configs, id, records);
    if (no.code == KE_NONE && records->count > CONTROLLER_RECORDS_MAX)
        no = controller__refuse(c, KE_POLICY_VIOLATION,
                                "One request can make at most %d topics and partitions.",
                                CONTROLLER_RECORDS_MAX);
    if (no.code != KE_NONE) {
        record_list_cut(records, before);
        return no;
    }
    out->topic_id = id;
    if (!may_describe_configs) {
        out->topic_config_error_code = KE_TOPIC_AUTHORIZATION_FAILED;
        return no;
    }
    out->num_partitions = placed.count;
    out->replication_factor = (int16_t)placed.factor;
    answer_configs(c, configs, in->configs_count > 0 ? in->configs_count : 0, out);
    return no;
}

// More than one batch holds: refused as a whole, before any memory is spent on it.
static bool too_much(const struct controller *c, const struct kp_create_topics_request *in)
{
    int64_t records = 0;
    for (int32_t i = 0; i < in->topics_count && records <= CONTROLLER_RECORDS_MAX; i++) {
        int64_t partitions = partitions_asked(c, &in->topics[i]), configs = in->topics[i].configs_count;
        records += 1 + (partitions > 0 ? partitions : 0) + (configs > 0 ? configs : 0);
    }
    return records > CONTROLLER_RECORDS_MAX;
}

void controller_create_topics(struct controller *c, const struct kp_create_topics_request *in,
                              bool may_describe_configs, struct kp_create_topics_response *out,
                              struct record_list *records)
{
    kp_create_topics_response_init(out);
    int32_t count = in->topics_count > 0 ? in->topics_count : 0;
    out->topics = arena_alloc(c->arena, (size_t)count * sizeof *out->topics + 1);
    struct hmap names, twice, shapes;
    hmap_init(&names, HMAP_SLICE);
    hmap_init(&twice, HMAP_SLICE);
    hmap_init(&shapes, HMAP_SLICE);
    for (int32_t i = 0; i < count; i++)
        if (controller__seen(&names, in->topics[i].name))
            (void)controller__seen(&twice, in->topics[i].name);
    hmap_clear(&names);
    bool excessive = too_much(c, in);
    for (int32_t i = 0; i < count; i++) {
        const creatable_topic *topic = &in->topics[i];
        if (controller__seen(&names, topic->name))
            continue; // answered once
        created_topic *result = &out->topics[out->topics_count++];
        kp_create_topics_response_creatable_topic_result_init(result);
        result->name = topic->name;
        struct refusal no;
        if (hmap_get(&twice, topic->name))
            no = controller__refuse(c, KE_INVALID_REQUEST,
                                    "Topic '" SLICE_FMT "' is named twice in this request.",
                                    SLICE_ARG(topic->name));
        else if (excessive)
            no = controller__refuse(c, KE_POLICY_VIOLATION,
                                    "One request can make at most %d topics and partitions: split it.",
                                    CONTROLLER_RECORDS_MAX);
        else
            no = create_topic(c, topic, &shapes, may_describe_configs, result, records);
        result->error_code = (int16_t)no.code;
        result->error_message = no.text;
    }
    hmap_fini(&names);
    hmap_fini(&twice);
    hmap_fini(&shapes);
    if (in->validate_only)
        record_list_cut(records, 0);
}

// ---- DeleteTopics
// --------------------------------------------------------------------------------------------
static struct refusal delete_topic(struct controller *c, struct slice name, struct uuid id, int16_t version,
                                   struct hmap *gone,
                                   struct kp_delete_topics_response_deletable_topic_result *result,
                                   struct record_list *records)
{
    bool by_name = !slice_is_null(name);
    if (by_name == !uuid_is_zero(id))
        return controller__refuse(c, KE_INVALID_REQUEST, "A topic is named either by its name or by its id.");
    const struct image_topic *t = by_name ? image_topic_named(c->image, name) : image_topic(c->image, id);
    if (!t)
        return by_name ? controller__refuse(c, KE_UNKNOWN_TOPIC_OR_PARTITION, "There is no such topic.")
                       : controller__refuse(c, KE_UNKNOWN_TOPIC_ID, "There is no topic with this id.");
    if (!c->opts->delete_topics)
        return controller__refuse(c, version >= 3 ? KE_TOPIC_DELETION_DISABLED : KE_INVALID_REQUEST,
                                  "Topics cannot be deleted here: delete.topic.enable is false.");
    if (hmap_put_uuid(gone, topic_id(t), gone))
        return controller__refuse(c, KE_INVALID_REQUEST, "The topic is named twice in this request.");
    if (records->count >= CONTROLLER_RECORDS_MAX)
        return controller__refuse(c, KE_POLICY_VIOLATION, "One request can delete at most %d topics.",
                                  CONTROLLER_RECORDS_MAX);
    record_list_add(records, METADATA_REMOVE_TOPIC, 0)->body.remove_topic.topic_id = topic_id(t);
    result->name = arena_dup_slice(c->arena, topic_name(t));
    result->topic_id = topic_id(t);
    return NO_REFUSAL;
}

void controller_delete_topics(struct controller *c, const struct kp_delete_topics_request *in,
                              int16_t version, struct kp_delete_topics_response *out,
                              struct record_list *records)
{
    kp_delete_topics_response_init(out);
    int32_t names = version < 6 && in->topic_names_count > 0 ? in->topic_names_count : 0;
    int32_t topics = version >= 6 && in->topics_count > 0 ? in->topics_count : 0;
    out->responses_count = names + topics;
    out->responses = arena_alloc(c->arena, (size_t)out->responses_count * sizeof *out->responses + 1);
    struct hmap gone;
    hmap_init(&gone, HMAP_UUID);
    for (int32_t i = 0; i < out->responses_count; i++) {
        struct kp_delete_topics_response_deletable_topic_result *result = &out->responses[i];
        kp_delete_topics_response_deletable_topic_result_init(result);
        result->name = i < names ? in->topic_names[i] : in->topics[i - names].name;
        result->topic_id = i < names ? UUID_ZERO : in->topics[i - names].topic_id;
        struct refusal no = delete_topic(c, result->name, result->topic_id, version, &gone, result, records);
        result->error_code = (int16_t)no.code;
        result->error_message = no.text;
    }
    hmap_fini(&gone);
}
