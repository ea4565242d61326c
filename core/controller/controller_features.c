// SPDX-License-Identifier: Apache-2.0
// UpdateFeatures, and the first records of an empty cluster.
//
// A level changes only when every registered node supports the new one and the features that it needs are
// there. metadata.version goes down only across levels that lose nothing. All updates of a request hold
// together, or none.
#include "core/controller/controller_priv.h"
#include "core/protocol/gen/update_features_request.h"
#include "core/protocol/gen/update_features_response.h"

enum upgrade_type { UPGRADE = 1, SAFE_DOWNGRADE = 2, UNSAFE_DOWNGRADE = 3 };

static int16_t current_level(const struct controller *c, struct slice name)
{
    return slice_equal_str(name, FEATURE_KRAFT_VERSION) ? c->kraft_version
                                                        : image_feature_level(c->image, name);
}

// Level that the feature has after the whole request.
static int16_t level_after(const struct controller *c, const struct kp_update_features_request *in,
                           struct slice name)
{
    for (int32_t i = 0; i < in->feature_updates_count; i++)
        if (slice_equal(in->feature_updates[i].feature, name))
            return in->feature_updates[i].max_version_level;
    return current_level(c, name);
}

static bool supports(const struct image_feature_range *features, int32_t count, struct slice name,
                     int16_t level)
{
    for (int32_t i = 0; i < count; i++)
        if (slice_equal(features[i].name, name))
            return level >= features[i].min && level <= features[i].max;
    return level == 0;
}

static struct refusal check_support(struct controller *c, struct slice name, int16_t level)
{
    const struct feature_range *own = feature_range_of(name);
    if (!own)
        return controller__refuse(c, KE_INVALID_UPDATE_VERSION,
                                  "Controller %d does not know the feature '" SLICE_FMT "'.", c->opts->id,
                                  SLICE_ARG(name));
    if ((level != 0 && level < own->min) || level > own->max)
        return controller__refuse(c, KE_INVALID_UPDATE_VERSION,
                                  "Controller %d supports levels %d to %d of " SLICE_FMT ", not %d.",
                                  c->opts->id, own->min, own->max, SLICE_ARG(name), level);
    for (const struct image_broker *b = NULL; (b = image_broker_next(c->image, b)) != NULL;)
        if (!supports(b->features, b->features_count, name, level))
            return controller__refuse(c, KE_INVALID_UPDATE_VERSION,
                                      "Broker %d does not support level %d of " SLICE_FMT ".", b->id, level,
                                      SLICE_ARG(name));
    for (const struct image_controller *n = NULL; (n = image_controller_next(c->image, n)) != NULL;)
        if (!supports(n->features, n->features_count, name, level))
            return controller__refuse(c, KE_INVALID_UPDATE_VERSION,
                                      "Controller %d does not support level %d of " SLICE_FMT ".", n->id,
                                      level, SLICE_ARG(name));
    return NO_REFUSAL;
}

static struct refusal check_direction(struct controller *c, struct slice name, int16_t now, int16_t level,
                                      int type)
{
    if (type != UPGRADE && type != SAFE_DOWNGRADE && type != UNSAFE_DOWNGRADE)
        return controller__refuse(c, KE_INVALID_UPDATE_VERSION, "%d is not a way of changing a feature.",
                                  type);
    if (level < now && type == UPGRADE)
        return controller__refuse(c, KE_INVALID_UPDATE_VERSION,
                                  SLICE_FMT
                                  " is at level %d: going down to %d has to be asked for as a downgrade.",
                                  SLICE_ARG(name), now, level);
    if (level > now && type != UPGRADE)
        return controller__refuse(c, KE_INVALID_UPDATE_VERSION,
                                  SLICE_FMT " is at level %d: %d is an upgrade, not a downgrade.",
                                  SLICE_ARG(name), now, level);
    return NO_REFUSAL;
}

static struct refusal check_metadata_version(struct controller *c, int16_t now, int16_t level, int type)
{
    if (level < METADATA_VERSION_MIN)
        return controller__refuse(c, KE_INVALID_UPDATE_VERSION, "metadata.version starts at %d (3.3-IV3).",
                                  METADATA_VERSION_MIN);
    for (int16_t l = now; l > level; l--) {
        const struct metadata_version *v = metadata_version_of(l);
        if (!v || !v->changes_metadata)
            continue;
        if (type == UNSAFE_DOWNGRADE)
            return controller__refuse(
                c, KE_INVALID_UPDATE_VERSION,
                "A downgrade of metadata.version that loses metadata is not supported.");
        return controller__refuse(c, KE_INVALID_UPDATE_VERSION,
                                  "A downgrade below %s could lose metadata and is refused.", v->name);
    }
    return NO_REFUSAL;
}

// Every finalized level must have what it needs, after all updates.
static struct refusal check_dependencies(struct controller *c, const struct kp_update_features_request *in)
{
    int16_t mv = level_after(c, in, SLICE_LIT(FEATURE_METADATA_VERSION));
    int32_t count;
    const struct feature_range *all = feature_ranges(&count);
    for (int32_t i = 0; i < count; i++) {
        struct slice name = slice_str(all[i].name);
        int16_t level = level_after(c, in, name);
        const struct feature_level *needs = level > 0 ? feature_level_of(name, level) : NULL;
        if (needs && needs->needs_metadata > mv)
            return controller__refuse(
                c, KE_INVALID_UPDATE_VERSION, "%s %d needs metadata.version %d (%s) or later.", all[i].name,
                level, needs->needs_metadata, metadata_version_of(needs->needs_metadata)->name);
    }
    return NO_REFUSAL;
}

static struct refusal check_update(struct controller *c,
                                   const struct kp_update_features_request_feature_update_key *u,
                                   int16_t version)
{
    int type = version == 0 ? (u->allow_downgrade ? SAFE_DOWNGRADE : UPGRADE) : u->upgrade_type;
    int16_t now = current_level(c, u->feature), level = u->max_version_level;
    if (u->feature.len == 0)
        return controller__refuse(c, KE_INVALID_REQUEST, "A feature without a name.");
    if (level < 0)
        return controller__refuse(c, KE_INVALID_UPDATE_VERSION, "A feature level is at least 0, not %d.",
                                  level);
    // Version 0 knows no direction, only leave to go down.
    struct refusal no =
        version == 0 && level >= now ? NO_REFUSAL : check_direction(c, u->feature, now, level, type);
    if (no.code == KE_NONE)
        no = check_support(c, u->feature, level);
    if (no.code != KE_NONE || level == now)
        return no;
    if (slice_equal_str(u->feature, FEATURE_KRAFT_VERSION))
        return controller__refuse(c, KE_INVALID_UPDATE_VERSION,
                                  level < now
                                      ? "kraft.version can never go down."
                                      : "kraft.version is chosen when the cluster is formatted and cannot be "
                                        "raised at run time.");
    if (slice_equal_str(u->feature, FEATURE_METADATA_VERSION))
        return check_metadata_version(c, now, level, type);
    return NO_REFUSAL;
}

static void write_level(struct record_list *records, struct slice name, int16_t level)
{
    struct kp_feature_level_record *r =
        &record_list_add(records, METADATA_FEATURE_LEVEL, 0)->body.feature_level;
    r->name = name;
    r->feature_level = level;
}

#define MIN_ISR "min.insync.replicas"

struct min_isr {
    struct controller *c;        // context
    struct record_list *records; // take the changes
};

static int drop_broker_min_isr(const struct image_config *config, void *data)
{
    struct min_isr *m = data;
    if (config->type != CONFIG_RESOURCE_BROKER || config->name.len == 0 ||
        slice_is_null(image_config_value(m->c->image, config->type, config->name, SLICE_LIT(MIN_ISR))))
        return 0;
    struct kp_config_record *r = &record_list_add(m->records, METADATA_CONFIG, 0)->body.config;
    r->resource_type = CONFIG_RESOURCE_BROKER;
    r->resource_name = config->name;
    r->name = SLICE_LIT(MIN_ISR);
    r->value = SLICE_NULL;
    return 0;
}

// Once ELR is on, the minimum ISR must be one for the cluster: written down for all brokers, taken from
// single ones.
static void fix_min_isr(struct controller *c, struct record_list *records)
{
    struct min_isr m = {c, records};
    if (slice_is_null(
            image_config_value(c->image, CONFIG_RESOURCE_BROKER, SLICE_LIT(""), SLICE_LIT(MIN_ISR)))) {
        struct kp_config_record *r = &record_list_add(records, METADATA_CONFIG, 0)->body.config;
        int32_t file = c->opts->min_insync_replicas > 0 ? c->opts->min_insync_replicas : 1;
        r->resource_type = CONFIG_RESOURCE_BROKER;
        r->resource_name = SLICE_LIT("");
        r->name = SLICE_LIT(MIN_ISR);
        r->value = slice_str(arena_printf(c->arena, "%d", file));
    }
    (void)image_config_each(c->image, drop_broker_min_isr, &m);
}

static void write_levels(struct controller *c, const struct kp_update_features_request *in,
                         struct record_list *records)
{
    // metadata.version first: what follows may need it.
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < in->feature_updates_count; i++) {
            struct slice name = in->feature_updates[i].feature;
            int16_t level = in->feature_updates[i].max_version_level;
            if (slice_equal_str(name, FEATURE_METADATA_VERSION) != (pass == 0) ||
                level == current_level(c, name))
                continue;
            write_level(records, name, level);
            if (slice_equal_str(name, "eligible.leader.replicas.version") && level > 0)
                fix_min_isr(c, records);
        }
}

void controller_update_features(struct controller *c, const struct kp_update_features_request *in,
                                int16_t version, struct kp_update_features_response *out,
                                struct record_list *records)
{
    kp_update_features_response_init(out);
    int32_t count = in->feature_updates_count > 0 ? in->feature_updates_count : 0;
    struct refusal first = NO_REFUSAL;
    struct hmap seen;
    hmap_init(&seen, HMAP_SLICE);
    out->results = arena_zalloc(c->arena, (size_t)count * sizeof *out->results + 1);
    out->results_count = version < 2 ? count : 0;
    for (int32_t i = 0; i < count; i++) {
        struct refusal no;
        if (controller__seen(&seen, in->feature_updates[i].feature))
            no = controller__refuse(c, KE_INVALID_REQUEST, "Feature '" SLICE_FMT "' is named twice.",
                                    SLICE_ARG(in->feature_updates[i].feature));
        else
            no = check_update(c, &in->feature_updates[i], version);
        if (first.code == KE_NONE)
            first = no;
        out->results[i].feature = in->feature_updates[i].feature;
        out->results[i].error_code = (int16_t)no.code;
        out->results[i].error_message = no.text;
    }
    hmap_fini(&seen);
    if (first.code == KE_NONE)
        first = check_dependencies(c, in);
    out->error_code = (int16_t)first.code;
    out->error_message = first.text;
    if (first.code == KE_NONE && !(in->validate_only && version >= 1))
        write_levels(c, in, records);
}

void controller_activate(struct controller *c, const struct metadata_record *boot, uint32_t boot_count,
                         struct record_list *records)
{
    const struct image *visible = image_visible(c->image);
    if (image_in_transaction(c->image))
        (void)record_list_add(records, METADATA_ABORT_TRANSACTION, 0);
    if (image_metadata_version(visible) != 0)
        return;
    int16_t level = METADATA_VERSION_DEFAULT;
    for (uint32_t i = 0; i < boot_count; i++)
        if (boot[i].type == METADATA_FEATURE_LEVEL &&
            slice_equal_str(boot[i].body.feature_level.name, FEATURE_METADATA_VERSION))
            level = boot[i].body.feature_level.feature_level;
    write_level(records, SLICE_LIT(FEATURE_METADATA_VERSION), level);
    for (uint32_t i = 0; i < boot_count; i++) {
        bool feature = boot[i].type == METADATA_FEATURE_LEVEL;
        struct slice name = feature ? boot[i].body.feature_level.name : SLICE_NULL;
        if (feature &&
            (slice_equal_str(name, FEATURE_METADATA_VERSION) || slice_equal_str(name, FEATURE_KRAFT_VERSION)))
            continue;
        *record_list_add(records, boot[i].type, boot[i].version) = boot[i];
    }
}
