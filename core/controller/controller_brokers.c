// SPDX-License-Identifier: Apache-2.0
// Registration of brokers and controllers, and their removal.
//
// One node id, one live process. A registration under an id whose process still has a session is refused,
// unless the new process shows the same log directories at the same endpoints: directories are locked by
// their process, so the old one is gone although its session has not run out.
#include "core/controller/controller_priv.h"
#include "core/protocol/gen/broker_registration_request.h"
#include "core/protocol/gen/broker_registration_response.h"
#include "core/protocol/gen/controller_registration_request.h"
#include "core/protocol/gen/controller_registration_response.h"
#include "core/protocol/gen/unregister_broker_request.h"
#include "core/protocol/gen/unregister_broker_response.h"
#include "core/protocol/gen/unregister_controller_request.h"
#include "core/protocol/gen/unregister_controller_response.h"

static struct refusal check_features(struct controller *c, const struct kp_broker_registration_request *in)
{
    int32_t count;
    const struct image_feature *finalized = image_features(c->image, &count);
    for (int32_t i = 0; i <= count; i++) {
        bool kraft = i == count; // the quorum's own feature stands in no list
        struct slice name = kraft ? SLICE_LIT(FEATURE_KRAFT_VERSION) : finalized[i].name;
        int16_t level = kraft ? c->kraft_version : finalized[i].level, min = 0, max = 0;
        bool listed = false;
        for (int32_t k = 0; k < in->features_count; k++) {
            if (!slice_equal(in->features[k].name, name))
                continue;
            min = in->features[k].min_supported_version;
            max = in->features[k].max_supported_version;
            listed = true;
        }
        if (kraft && !listed)
            continue;
        if (level < min || level > max)
            return controller__refuse(
                c, KE_UNSUPPORTED_VERSION,
                "Broker %d supports levels %d to %d of " SLICE_FMT
                ", the cluster is at level %d: use a release that fits, or change the level.",
                in->broker_id, min, max, SLICE_ARG(name), level);
    }
    return NO_REFUSAL;
}

static bool has_dir(const struct image_broker *b, struct uuid dir)
{
    for (int32_t i = 0; i < b->log_dirs_count; i++)
        if (uuid_equal(b->log_dirs[i], dir))
            return true;
    return false;
}

static struct refusal check_dirs(struct controller *c, const struct kp_broker_registration_request *in)
{
    if (controller__mv(c)->level < METADATA_VERSION_DIRECTORIES)
        return NO_REFUSAL;
    if (in->log_dirs_count <= 0)
        return controller__refuse(c, KE_INVALID_REGISTRATION, "Broker %d names no log directories.",
                                  in->broker_id);
    for (int32_t i = 0; i < in->log_dirs_count; i++) {
        char text[UUID_TEXT_BYTES];
        uuid_format(in->log_dirs[i], text);
        if (uuid_is_reserved(in->log_dirs[i]))
            return controller__refuse(c, KE_INVALID_REGISTRATION,
                                      "%s is a reserved id and cannot be a directory's.", text);
        for (int32_t k = 0; k < i; k++)
            if (uuid_equal(in->log_dirs[i], in->log_dirs[k]))
                return controller__refuse(c, KE_INVALID_REGISTRATION, "Directory %s is named twice.", text);
        for (const struct image_broker *b = NULL; (b = image_broker_next(c->image, b)) != NULL;)
            if (b->id != in->broker_id && has_dir(b, in->log_dirs[i]))
                return controller__refuse(
                    c, KE_INVALID_REGISTRATION,
                    "Directory %s is registered by broker %d already: was the disk copied?", text, b->id);
    }
    return NO_REFUSAL;
}

static bool same_endpoints(const struct image_broker *b, const struct kp_broker_registration_request *in)
{
    if (b->endpoints_count != in->listeners_count || b->endpoints_count == 0)
        return false;
    for (int32_t i = 0; i < b->endpoints_count; i++) {
        bool found = false;
        for (int32_t k = 0; k < in->listeners_count && !found; k++)
            found = slice_equal(b->endpoints[i].name, in->listeners[k].name) &&
                    slice_equal(b->endpoints[i].host, in->listeners[k].host) &&
                    b->endpoints[i].port == in->listeners[k].port;
        if (!found)
            return false;
    }
    return true;
}

static bool same_dirs(const struct image_broker *b, const struct kp_broker_registration_request *in)
{
    if (b->log_dirs_count == 0)
        return false;
    for (int32_t i = 0; i < in->log_dirs_count; i++)
        if (has_dir(b, in->log_dirs[i]))
            return true;
    return false;
}

static struct refusal check_duplicate(struct controller *c, const struct kp_broker_registration_request *in,
                                      const struct image_broker *old)
{
    bool same_process = old && uuid_equal(old->incarnation, in->incarnation_id);
    if (!old || same_process || old->in_controlled_shutdown)
        return NO_REFUSAL;
    if (!controller_session_valid(c->sessions, old->id, old->epoch, c->now, c->opts->session_timeout_ms))
        return NO_REFUSAL;
    if (same_dirs(old, in) && same_endpoints(old, in))
        return NO_REFUSAL;
    return controller__refuse(
        c, KE_DUPLICATE_BROKER_REGISTRATION,
        "Another process is registered as broker %d and alive: stop it, or give this one a node.id "
        "of its own.",
        in->broker_id);
}

static struct refusal check_registration(struct controller *c,
                                         const struct kp_broker_registration_request *in,
                                         const struct image_broker *old)
{
    if (in->broker_id < 0)
        return controller__refuse(c, KE_INVALID_REQUEST, "%d is not a broker id.", in->broker_id);
    if (!slice_equal(in->cluster_id, c->opts->cluster_id))
        return controller__refuse(c, KE_INCONSISTENT_CLUSTER_ID,
                                  "Broker %d belongs to cluster " SLICE_FMT ", this is cluster " SLICE_FMT
                                  ".",
                                  in->broker_id, SLICE_ARG(in->cluster_id), SLICE_ARG(c->opts->cluster_id));
    if (in->is_migrating_zk_broker)
        return controller__refuse(c, KE_UNSUPPORTED_VERSION, "Brokers cannot be migrated from ZooKeeper.");
    if (uuid_is_zero(in->incarnation_id))
        return controller__refuse(c, KE_INVALID_REGISTRATION, "Broker %d has no incarnation id.",
                                  in->broker_id);
    struct refusal no = check_duplicate(c, in, old);
    if (no.code == KE_NONE)
        no = check_features(c, in);
    if (no.code == KE_NONE)
        no = check_dirs(c, in);
    return no;
}

static void registration_record(struct controller *c, const struct kp_broker_registration_request *in,
                                const struct image_broker *old, struct record_list *records)
{
    bool same_process = old && uuid_equal(old->incarnation, in->incarnation_id);
    int16_t version = controller__mv(c)->register_broker;
    struct kp_register_broker_record *r =
        &record_list_add(records, METADATA_REGISTER_BROKER, version)->body.register_broker;
    r->broker_id = in->broker_id;
    r->incarnation_id = in->incarnation_id;
    r->broker_epoch = c->next_offset + records->count - 1;
    r->rack = in->rack;
    r->fenced = same_process ? old->fenced : true;
    r->in_controlled_shutdown = same_process && old->in_controlled_shutdown;
    int32_t endpoints = in->listeners_count > 0 ? in->listeners_count : 0;
    int32_t features = in->features_count > 0 ? in->features_count : 0;
    r->end_points = arena_zalloc(c->arena, (size_t)endpoints * sizeof *r->end_points + 1);
    r->end_points_count = endpoints;
    for (int32_t i = 0; i < endpoints; i++) {
        r->end_points[i].name = in->listeners[i].name;
        r->end_points[i].host = in->listeners[i].host;
        r->end_points[i].port = in->listeners[i].port;
        r->end_points[i].security_protocol = in->listeners[i].security_protocol;
    }
    r->features = arena_zalloc(c->arena, (size_t)features * sizeof *r->features + 1);
    r->features_count = features;
    for (int32_t i = 0; i < features; i++) {
        r->features[i].name = in->features[i].name;
        r->features[i].min_supported_version = in->features[i].min_supported_version;
        r->features[i].max_supported_version = in->features[i].max_supported_version;
    }
    if (version >= 3 && in->log_dirs_count > 0) {
        r->log_dirs = in->log_dirs;
        r->log_dirs_count = in->log_dirs_count;
    }
}

void controller_register_broker(struct controller *c, const struct kp_broker_registration_request *in,
                                int16_t version, struct kp_broker_registration_response *out,
                                struct record_list *records)
{
    kp_broker_registration_response_init(out);
    const struct image_broker *old = image_broker(c->image, in->broker_id);
    struct refusal no = check_registration(c, in, old);
    if (no.code != KE_NONE) {
        out->error_code = (int16_t)no.code;
        c->why = no.text;
        return;
    }
    bool new_process = old && !uuid_equal(old->incarnation, in->incarnation_id);
    if (new_process) {
        // A process that kept its epoch has kept its data. Without ELR it makes no difference.
        bool unclean = controller__elr_enabled(c->image) && in->previous_broker_epoch != old->epoch;
        controller__remove_from_isrs(c, in->broker_id, unclean, records);
        if (records->count + 1 >=
            CONTROLLER_RECORDS_MAX) { // more are left: asked again, the next ones follow
            out->error_code = KE_REQUEST_TIMED_OUT;
            return;
        }
    }
    registration_record(c, in, old, records);
    out->broker_epoch = records->items[records->count - 1].body.register_broker.broker_epoch;
    struct controller_session *session = controller_session_of(c->sessions, in->broker_id, out->broker_epoch);
    session->heard = c->now;
}

void controller_unregister_broker(struct controller *c, const struct kp_unregister_broker_request *in,
                                  struct kp_unregister_broker_response *out, struct record_list *records)
{
    kp_unregister_broker_response_init(out);
    const struct image_broker *b = image_broker(c->image, in->broker_id);
    struct refusal no = NO_REFUSAL;
    if (!b)
        no =
            controller__refuse(c, KE_BROKER_ID_NOT_REGISTERED, "Broker %d is not registered.", in->broker_id);
    else if (!b->fenced)
        no = controller__refuse(c, KE_INVALID_REQUEST,
                                "Broker %d is alive: stop it before it is unregistered.", in->broker_id);
    out->error_code = (int16_t)no.code;
    out->error_message = no.code == KE_NONE ? SLICE_LIT("") : no.text;
    if (no.code != KE_NONE)
        return;
    controller__remove_from_isrs(c, b->id, controller__elr_enabled(c->image), records);
    struct kp_unregister_broker_record *r =
        &record_list_add(records, METADATA_UNREGISTER_BROKER, 0)->body.unregister_broker;
    r->broker_id = b->id;
    r->broker_epoch = b->epoch;
    controller_session_forget(c->sessions, b->id);
}

void controller_register_controller(struct controller *c, const struct kp_controller_registration_request *in,
                                    struct kp_controller_registration_response *out,
                                    struct record_list *records)
{
    kp_controller_registration_response_init(out);
    struct refusal no = NO_REFUSAL;
    if (in->controller_id < 0 || uuid_is_zero(in->incarnation_id))
        no = controller__refuse(c, KE_INVALID_REQUEST,
                                "A controller registers with its id and incarnation id.");
    else if (controller__mv(c)->level < METADATA_VERSION_CONTROLLERS)
        no = controller__refuse(c, KE_UNSUPPORTED_VERSION,
                                "metadata.version %s knows no controller registrations.",
                                controller__mv(c)->name);
    out->error_code = (int16_t)no.code;
    out->error_message = no.code == KE_NONE ? SLICE_LIT("") : no.text;
    if (no.code != KE_NONE)
        return;
    struct kp_register_controller_record *r =
        &record_list_add(records, METADATA_REGISTER_CONTROLLER, 0)->body.register_controller;
    int32_t endpoints = in->listeners_count > 0 ? in->listeners_count : 0;
    int32_t features = in->features_count > 0 ? in->features_count : 0;
    r->controller_id = in->controller_id;
    r->incarnation_id = in->incarnation_id;
    r->zk_migration_ready = in->zk_migration_ready;
    r->end_points = arena_zalloc(c->arena, (size_t)endpoints * sizeof *r->end_points + 1);
    r->end_points_count = endpoints;
    for (int32_t i = 0; i < endpoints; i++) {
        r->end_points[i].name = in->listeners[i].name;
        r->end_points[i].host = in->listeners[i].host;
        r->end_points[i].port = in->listeners[i].port;
        r->end_points[i].security_protocol = in->listeners[i].security_protocol;
    }
    r->features = arena_zalloc(c->arena, (size_t)features * sizeof *r->features + 1);
    r->features_count = features;
    for (int32_t i = 0; i < features; i++) {
        r->features[i].name = in->features[i].name;
        r->features[i].min_supported_version = in->features[i].min_supported_version;
        r->features[i].max_supported_version = in->features[i].max_supported_version;
    }
}

void controller_unregister_controller(struct controller *c, const struct kp_unregister_controller_request *in,
                                      bool is_voter, struct kp_unregister_controller_response *out,
                                      struct record_list *records)
{
    kp_unregister_controller_response_init(out);
    struct refusal no = NO_REFUSAL;
    if (!image_controller(c->image, in->controller_id))
        no = controller__refuse(c, KE_CONTROLLER_ID_NOT_REGISTERED, "Controller %d is not registered.",
                                in->controller_id);
    else if (is_voter)
        no = controller__refuse(
            c, KE_INVALID_REQUEST,
            "Controller %d is a voter: remove it from the quorum before it is unregistered.",
            in->controller_id);
    else if (controller__mv(c)->level < METADATA_VERSION_UNREGISTER_CONTROLLER)
        no = controller__refuse(c, KE_UNSUPPORTED_VERSION,
                                "metadata.version %s cannot unregister controllers; 4.4-IV2 can.",
                                controller__mv(c)->name);
    out->error_code = (int16_t)no.code;
    out->error_message = no.code == KE_NONE ? SLICE_LIT("") : no.text;
    if (no.code == KE_NONE)
        record_list_add(records, METADATA_UNREGISTER_CONTROLLER, 0)
            ->body.unregister_controller.controller_id = in->controller_id;
}
