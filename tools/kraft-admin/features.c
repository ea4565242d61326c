// SPDX-License-Identifier: Apache-2.0
// kraft-admin apis and features: what the server can do, and what the cluster does.
#include <stdlib.h>

#include "core/protocol/gen/api_versions_request.h"
#include "core/protocol/gen/api_versions_response.h"
#include "core/protocol/gen/update_features_request.h"
#include "core/protocol/gen/update_features_response.h"
#include "tools/kraft-admin/admin.h"

#define UPGRADE_ONLY 1 // types of a change, as UpdateFeatures has them
#define DOWNGRADE_SAFE 2
#define DOWNGRADE_ANY 3

static int ask(struct admin *a, struct kp_api_versions_response *r)
{
    struct kp_api_versions_request q;
    struct kclient_conn *conn;
    kp_api_versions_request_init(&q);
    q.client_software_name = SLICE_LIT("kraft-admin");
    q.client_software_version = SLICE_LIT("0.1.0");
    int rc = kclient_any(a->client, &conn, &a->err);
    if (rc == 0) // version 5 names the server that is expected, and we expect none
        rc = kclient_call(conn, KP_API_API_VERSIONS, kclient_version(conn, KP_API_API_VERSIONS, 4), &q, r,
                          &a->arena, &a->err);
    if (rc)
        return admin_failed(a, rc);
    return r->error_code ? admin_refusal(a, SLICE_LIT("ApiVersions"), r->error_code, SLICE_NULL) : ADMIN_OK;
}

static int apis(struct admin *a)
{
    struct kp_api_versions_response r;
    struct table t;
    int status = ask(a, &r);
    if (status)
        return status;
    json_t *rows = json_array();
    table_init(&t, "KEY|API|VERSIONS");
    for (int32_t i = 0; i < r.api_keys_count; i++) {
        const struct kp_api_versions_response_api_version *v = &r.api_keys[i];
        const struct kp_api_info *api = kp_api_find(v->api_key);
        json_array_append_new(rows, json_pack("{s:i, s:s?, s:i, s:i}", "key", v->api_key, "api",
                                              api ? api->name : NULL, "min_version", v->min_version,
                                              "max_version", v->max_version));
        table_add(&t, "%d", v->api_key);
        table_add(&t, "%s", api ? api->name : "?");
        table_add(&t, "%d-%d", v->min_version, v->max_version);
    }
    if (a->json) {
        (void)admin_print_json(rows);
    } else {
        table_print(&t, stdout);
        json_decref(rows);
    }
    table_fini(&t);
    return ADMIN_OK;
}

static int features_describe(struct admin *a)
{
    struct kp_api_versions_response r;
    struct table t;
    int status = ask(a, &r);
    if (status)
        return status;
    json_t *rows = json_array();
    table_init(&t, "FEATURE|LEVEL|SUPPORTED");
    for (int32_t i = 0; i < r.supported_features_count; i++) {
        const struct kp_api_versions_response_supported_feature_key *f = &r.supported_features[i];
        int level = 0;
        for (int32_t k = 0; k < r.finalized_features_count; k++)
            if (slice_equal(r.finalized_features[k].name, f->name))
                level = r.finalized_features[k].max_version_level;
        json_array_append_new(rows, json_pack("{s:o, s:i, s:i, s:i}", "feature", admin_text(f->name), "level",
                                              level, "min_supported", f->min_version, "max_supported",
                                              f->max_version));
        table_add(&t, SLICE_FMT, SLICE_ARG(f->name));
        table_add(&t, "%d", level);
        table_add(&t, "%d-%d", f->min_version, f->max_version);
    }
    if (a->json) {
        (void)admin_print_json(rows);
    } else {
        table_print(&t, stdout);
        json_decref(rows);
    }
    table_fini(&t);
    return ADMIN_OK;
}

static int features_set(struct admin *a)
{
    struct kp_update_features_request q;
    struct kp_update_features_response r;
    struct kp_update_features_request_feature_update_key *updates =
        arena_zalloc(&a->arena, ARGS_OPTIONS_MAX * sizeof(*updates));
    int next = 0;
    kp_update_features_request_init(&q);
    q.feature_updates = updates;
    for (const char *text; (text = args_each(&a->args, "feature", &next));) {
        struct kp_update_features_request_feature_update_key *u = &updates[q.feature_updates_count++];
        kp_update_features_request_feature_update_key_init(u);
        const char *equals = strchr(text, '=');
        char *end = NULL;
        long level = equals ? strtol(equals + 1, &end, 10) : -1;
        if (!end || end == equals + 1 || *end || level < 0 || level > INT16_MAX)
            return admin_usage(a, "--feature is NAME=LEVEL");
        u->feature = slice_of(text, (size_t)(equals - text));
        u->max_version_level = (int16_t)level;
        u->upgrade_type = args_flag(&a->args, "unsafe")      ? DOWNGRADE_ANY
                          : args_flag(&a->args, "downgrade") ? DOWNGRADE_SAFE
                                                             : UPGRADE_ONLY;
        u->allow_downgrade = u->upgrade_type != UPGRADE_ONLY;
    }
    if (q.feature_updates_count == 0)
        return admin_usage(a, "--feature NAME=LEVEL is needed");
    q.validate_only = args_flag(&a->args, "dry-run");
    int rc = admin_call(a, KP_API_UPDATE_FEATURES, &q, &r);
    if (rc)
        return admin_failed(a, rc);
    if (r.error_code)
        return admin_refusal(a, SLICE_LIT("features"), r.error_code, r.error_message);
    for (int32_t i = 0; i < r.results_count; i++)
        if (r.results[i].error_code)
            return admin_refusal(a, r.results[i].feature, r.results[i].error_code,
                                 r.results[i].error_message);
    if (a->json)
        return admin_print_json(
            json_pack("{s:i, s:b}", "features", q.feature_updates_count, "dry_run", q.validate_only));
    for (int32_t i = 0; i < q.feature_updates_count; i++)
        printf("%s " SLICE_FMT " at level %d\n", q.validate_only ? "would set" : "set",
               SLICE_ARG(updates[i].feature), updates[i].max_version_level);
    return ADMIN_OK;
}

static const char *const no_options[] = {NULL};
static const char *const set_options[] = {"feature=", "downgrade", "unsafe", "dry-run", NULL};

const struct admin_verb features_verbs[] = {
    {"apis", no_options, "show which requests the server answers",
     "Example:\n"
     "  kraft-admin apis --bootstrap-server localhost:9092\n",
     apis},
    {"features describe", no_options, "show features and their levels",
     "Example:\n"
     "  kraft-admin features describe\n",
     features_describe},
    {"features set", set_options, "raise or lower levels of features",
     "  --feature NAME=LEVEL    may be given again; level 0 switches it off\n"
     "  --downgrade             also downwards, where nothing is lost by it\n"
     "  --unsafe                downwards in any case\n"
     "  --dry-run               only tell whether it would be accepted\n"
     "\n"
     "Example:\n"
     "  kraft-admin features set --feature metadata.version=30 --dry-run\n",
     features_set},
    {NULL, NULL, NULL, NULL, NULL},
};
