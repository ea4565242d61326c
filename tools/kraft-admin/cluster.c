// SPDX-License-Identifier: Apache-2.0
// kraft-admin cluster: brokers and the active controller.
#include "core/protocol/gen/describe_cluster_request.h"
#include "core/protocol/gen/describe_cluster_response.h"
#include "core/protocol/gen/unregister_broker_request.h"
#include "core/protocol/gen/unregister_broker_response.h"
#include "tools/kraft-admin/admin.h"

static int cluster(struct admin *a)
{
    struct kp_describe_cluster_request q;
    struct kp_describe_cluster_response r;
    struct table t;
    kp_describe_cluster_request_init(&q);
    q.include_fenced_brokers = true;
    q.endpoint_type = args_flag(&a->args, "controllers") ? 2 : 1;
    int rc = admin_call(a, KP_API_DESCRIBE_CLUSTER, &q, &r);
    if (rc)
        return admin_failed(a, rc);
    if (r.error_code)
        return admin_refusal(a, SLICE_LIT("cluster"), r.error_code, r.error_message);
    json_t *nodes = json_array();
    table_init(&t, "NODE|HOST|PORT|RACK|STATE");
    for (int32_t i = 0; i < r.brokers_count; i++) {
        const struct kp_describe_cluster_response_describe_cluster_broker *b = &r.brokers[i];
        json_array_append_new(nodes, json_pack("{s:i, s:o, s:i, s:o, s:b}", "node", b->broker_id, "host",
                                               admin_text(b->host), "port", b->port, "rack",
                                               admin_text(b->rack), "fenced", b->is_fenced));
        table_add(&t, "%d%s", b->broker_id, b->broker_id == r.controller_id ? " *" : "");
        table_add(&t, SLICE_FMT, SLICE_ARG(b->host));
        table_add(&t, "%d", b->port);
        table_add(&t, SLICE_FMT, SLICE_ARG(slice_is_null(b->rack) ? SLICE_LIT("-") : b->rack));
        table_add(&t, b->is_fenced ? "fenced" : "running");
    }
    if (a->json) {
        (void)admin_print_json(json_pack("{s:o, s:i, s:O}", "cluster_id", admin_text(r.cluster_id),
                                         "controller", r.controller_id, "nodes", nodes));
    } else {
        printf("cluster " SLICE_FMT "  controller %d\n", SLICE_ARG(r.cluster_id), r.controller_id);
        table_print(&t, stdout);
    }
    json_decref(nodes);
    table_fini(&t);
    return ADMIN_OK;
}

static int unregister(struct admin *a)
{
    struct kp_unregister_broker_request q;
    struct kp_unregister_broker_response r;
    int64_t id;
    const char *text = admin_need(a, "broker");
    if (!text)
        return ADMIN_USAGE;
    if (!args_number(&a->args, "broker", 0, INT32_MAX, -1, &id))
        return admin_usage(a, "%s", a->args.error);
    kp_unregister_broker_request_init(&q);
    q.broker_id = (int32_t)id;
    int rc = admin_call(a, KP_API_UNREGISTER_BROKER, &q, &r);
    if (rc)
        return admin_failed(a, rc);
    if (r.error_code)
        return admin_refusal(a, slice_str(text), r.error_code, r.error_message);
    if (a->json)
        return admin_print_json(json_pack("{s:i}", "broker", (int)id));
    printf("broker %d is no longer registered\n", (int)id);
    return ADMIN_OK;
}

static const char *const cluster_options[] = {"controllers", NULL};
static const char *const unregister_options[] = {"broker=", NULL};

const struct admin_verb cluster_verbs[] = {
    {"cluster", cluster_options, "show the nodes",
     "  --controllers    the controllers instead of the brokers; only a controller's listener tells them\n"
     "\n"
     "Example:\n"
     "  kraft-admin cluster --bootstrap-server localhost:9092\n",
     cluster},
    {"brokers unregister", unregister_options, "forget a broker that will not come back",
     "  --broker ID    it must not run any more\n"
     "\n"
     "Example:\n"
     "  kraft-admin brokers unregister --broker 4\n",
     unregister},
    {NULL, NULL, NULL, NULL, NULL},
};
