// SPDX-License-Identifier: Apache-2.0
// ApiVersions: what is served on this listener, and the features of node and cluster.
//
// Quirks: the response header is always version 0; an unknown version is answered in version 0 with the error
// and our range; below version 4 a feature whose lowest supported level is 0 is left out (KAFKA-17011);
// version 5 says whom the client believes to talk to (KIP-1242).
#include "core/metadata/image.h"
#include "core/metadata/metadata_version.h"
#include "core/protocol/gen/api_versions_request.h"
#include "core/protocol/gen/api_versions_response.h"
#include "core/protocol/gen/errors.h"
#include "core/server/api.h"

#define FEATURES_FROM 3      // version with features
#define FEATURES_MIN0_FROM 4 // version that may carry a lowest level of 0
#define CLUSTER_FROM 5       // version with cluster id and node id

static void list_apis(struct request *rq, struct kp_api_versions_response *out, bool only_self)
{
    out->api_keys = arena_alloc(&rq->arena, REQUEST_APIS_MAX * sizeof *out->api_keys);
    for (int key = 0; key < REQUEST_APIS_MAX; key++) {
        const struct request_api *api = request_table[key];
        bool served = api != NULL && (rq->listener->controller ? api->on_controller : api->on_broker) != NULL;
        if (!served || (only_self && key != KP_API_API_VERSIONS)) {
            continue;
        }
        struct kp_api_versions_response_api_version *v = &out->api_keys[out->api_keys_count++];
        kp_api_versions_response_api_version_init(v);
        v->api_key = (int16_t)key;
        v->min_version = api->advertised_min;
        v->max_version = api->version_max;
    }
}

static void add_finalized(struct kp_api_versions_response *out, struct slice name, int16_t level)
{
    struct kp_api_versions_response_finalized_feature_key *k =
        &out->finalized_features[out->finalized_features_count++];
    kp_api_versions_response_finalized_feature_key_init(k);
    k->name = name;
    k->max_version_level = k->min_version_level = level;
}

static void list_features(struct request *rq, struct kp_api_versions_response *out)
{
    int32_t ranges_count = 0;
    const struct feature_range *ranges = feature_ranges(&ranges_count);
    out->supported_features = arena_alloc(&rq->arena, (size_t)ranges_count * sizeof *out->supported_features);
    for (int32_t i = 0; i < ranges_count; i++) {
        const struct feature_range *f = &ranges[i];
        if (f->min == 0 && rq->version < FEATURES_MIN0_FROM) {
            continue;
        }
        struct kp_api_versions_response_supported_feature_key *k =
            &out->supported_features[out->supported_features_count++];
        kp_api_versions_response_supported_feature_key_init(k);
        k->name = slice_str(f->name);
        k->min_version = f->min;
        k->max_version = f->max;
    }
    const struct image *image = request_image(rq);
    if (image == NULL || image_metadata_version(image) == 0) {
        return;
    }
    int32_t count = 0;
    const struct image_feature *finalized = image_features(image, &count);
    out->finalized_features_epoch = image_offset(image);
    out->finalized_features = arena_alloc(&rq->arena, ((size_t)count + 1) * sizeof *out->finalized_features);
    for (int32_t i = 0; i < count; i++) {
        add_finalized(out, finalized[i].name, finalized[i].level);
    }
    if (rq->listener->kraft_version > 0) { // the quorum's own feature stands in no record of the image
        add_finalized(out, SLICE_LIT(FEATURE_KRAFT_VERSION), rq->listener->kraft_version);
    }
}

static bool software_is_valid(struct slice s)
{
    // KIP-511: letters, digits, '-' and '.', beginning and ending with a letter or digit.
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = s.data[i];
        bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!word && ((c != '-' && c != '.') || i == 0 || i == s.len - 1)) {
            return false;
        }
    }
    return s.len > 0;
}

static int16_t judge(struct request *rq, const struct kp_api_versions_request *in)
{
    if (rq->version >= FEATURES_FROM &&
        (!software_is_valid(in->client_software_name) || !software_is_valid(in->client_software_version))) {
        return KE_INVALID_REQUEST;
    }
    if (rq->version < CLUSTER_FROM || (slice_is_null(in->cluster_id) && in->node_id == -1)) {
        return KE_NONE; // does not say whom it believes to talk to
    }
    if (slice_is_null(in->cluster_id) || in->node_id == -1) {
        return KE_INVALID_REQUEST; // both or none
    }
    if (!slice_equal_str(in->cluster_id, rq->listener->cluster_id) || in->node_id != rq->listener->node_id) {
        return KE_REBOOTSTRAP_REQUIRED;
    }
    return KE_NONE;
}

static void handle(struct request *rq)
{
    struct kp_api_versions_response out;
    kp_api_versions_response_init(&out);
    if (rq->unsupported_version) {
        out.error_code = KE_UNSUPPORTED_VERSION;
        list_apis(rq, &out, true);
        REQUEST_REPLY(rq, api_versions_response, &out);
        return;
    }
    struct kp_api_versions_request *in = REQUEST_DECODE(rq, api_versions_request);
    if (in == NULL) {
        return;
    }
    out.throttle_time_ms = rq->throttle_ms;
    out.error_code = judge(rq, in);
    if (out.error_code == KE_NONE) {
        list_apis(rq, &out, false);
        if (rq->version >= FEATURES_FROM) {
            list_features(rq, &out);
        }
    }
    REQUEST_REPLY(rq, api_versions_response, &out);
}

const struct request_api api_api_versions = {.key = KP_API_API_VERSIONS,
                                             .version_min = 0,
                                             .version_max = KP_API_VERSIONS_REQUEST_MAX_VERSION,
                                             .on_broker = handle,
                                             .on_controller = handle};
