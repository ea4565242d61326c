// SPDX-License-Identifier: Apache-2.0
// Calls, failures and output that the verbs of kraft-admin share.
#include "tools/kraft-admin/admin.h"

#include <stdarg.h>

#include "core/base/strbuf.h"
#include "core/protocol/gen/metadata_request.h"

static void say(const struct admin *a, const char *fmt, va_list args)
{
    fflush(stdout);
    fprintf(stderr, "kraft-admin %s: ", a->verb);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}

int admin_usage(struct admin *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(a, fmt, args);
    va_end(args);
    fprintf(stderr, "kraft-admin %s --help shows how it is used.\n", a->verb);
    return ADMIN_USAGE;
}

int admin_refused(struct admin *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(a, fmt, args);
    va_end(args);
    return ADMIN_REFUSED;
}

int admin_failed(struct admin *a, int err)
{
    (void)admin_refused(a, "%s", a->err.text[0] ? a->err.text : err_text(err));
    switch (err) {
    case ERR_RESOLVE:
    case ERR_REFUSED:
    case ERR_RESET:
    case ERR_TIMEOUT:
    case ERR_IO:
        return ADMIN_UNREACHABLE;
    default:
        return ADMIN_REFUSED;
    }
}

int admin_refusal(struct admin *a, struct slice subject, int error_code, struct slice message)
{
    struct slice text = message.len ? message : slice_str(kafka_error_text(error_code));
    return admin_refused(a, SLICE_FMT ": %s: " SLICE_FMT, SLICE_ARG(subject), kafka_error_name(error_code),
                         SLICE_ARG(text));
}

const char *admin_need(struct admin *a, const char *option)
{
    const char *value = args_value(&a->args, option);
    if (!value || !*value) {
        (void)admin_usage(a, "--%s is needed", option);
        return NULL;
    }
    return value;
}

int admin_call(struct admin *a, int api_key, const void *request, void *response)
{
    struct kclient_conn *conn;
    int rc = kclient_any(a->client, &conn, &a->err);
    return rc ? rc : kclient_call(conn, api_key, -1, request, response, &a->arena, &a->err);
}

int admin_call_node(struct admin *a, node_id node, int api_key, int version, const void *request,
                    void *response)
{
    struct kclient_conn *conn;
    int rc = kclient_node(a->client, node, &conn, &a->err);
    return rc ? rc : kclient_call(conn, api_key, version, request, response, &a->arena, &a->err);
}

int admin_metadata(struct admin *a, const char *topic, struct kp_metadata_response *out)
{
    struct kp_metadata_request q;
    struct kp_metadata_request_metadata_request_topic t;
    kp_metadata_request_init(&q);
    q.allow_auto_topic_creation = false;
    q.topics_count = -1; // all
    if (topic) {
        kp_metadata_request_metadata_request_topic_init(&t);
        t.name = slice_str(topic);
        q.topics = &t;
        q.topics_count = 1;
    }
    int rc = admin_call(a, KP_API_METADATA, &q, out);
    if (rc)
        return admin_failed(a, rc);
    if (topic && out->topics_count == 1 && out->topics[0].error_code != KE_NONE)
        return admin_refusal(a, slice_str(topic), out->topics[0].error_code, SLICE_NULL);
    if (topic && out->topics_count != 1)
        return admin_refused(a, "%s: the server does not tell about it", topic);
    return ADMIN_OK;
}

int admin_print_json(json_t *document)
{
    json_dumpf(document, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(document);
    return ADMIN_OK;
}

json_t *admin_text(struct slice s)
{
    if (!s.data)
        return json_null();
    json_t *text = json_stringn((const char *)s.data, s.len);
    return text ? text : json_string("(not UTF-8)");
}

const char *admin_numbers(struct admin *a, const int32_t *numbers, int32_t count)
{
    struct strbuf b;
    strbuf_init(&b);
    for (int32_t i = 0; i < count; i++)
        strbuf_printf(&b, "%s%d", i ? "," : "", numbers[i]);
    const char *text = arena_dup(&a->arena, strbuf_text(&b), b.len + 1);
    strbuf_fini(&b);
    return text;
}

json_t *admin_numbers_json(const int32_t *numbers, int32_t count)
{
    json_t *array = json_array();
    for (int32_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer(numbers[i]));
    return array;
}
