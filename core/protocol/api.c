// SPDX-License-Identifier: Apache-2.0
// Questions about API keys, and which message type a key, a record type or a name means.
#include "core/protocol/codec_lookup.h"
#include "core/protocol/gen/apis.h"

const struct kp_api_info *kp_api_find(int key)
{
    if (key < 0 || key >= KP_API_COUNT || !kp_apis[key].name)
        return NULL;
    return &kp_apis[key];
}

int kp_api_request_header_version(const struct kp_api_info *api, int version)
{
    return version >= api->flexible_from ? 2 : 1;
}

// ApiVersions is answered with the old header at every version: the client does not know yet what we speak.
int kp_api_response_header_version(const struct kp_api_info *api, int version)
{
    return version >= api->flexible_from && api->key != KP_API_API_VERSIONS ? 1 : 0;
}

const struct kp_message_type *kp_message_of_api(int api_key, enum kp_direction direction)
{
    if (api_key < 0 || api_key >= KP_API_COUNT)
        return NULL;
    return direction == KP_REQUEST ? kp_message_requests[api_key] : kp_message_responses[api_key];
}

const struct kp_message_type *kp_message_of_metadata(uint32_t record_type)
{
    return record_type < kp_message_metadata_count ? kp_message_metadata[record_type] : NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

const struct kp_message_type *kp_message_of_record(enum kp_message_kind kind, int record_type, bool is_value)
{
    for (unsigned i = 0; i < kp_message_types_count; i++) {
        const struct kp_message_type *t = kp_message_types[i];
        if (t->kind == kind && t->key == record_type && ends_with(t->name, is_value ? "Value" : "Key"))
            return t;
    }
    return NULL;
}

const struct kp_message_type *kp_message_by_name(struct slice name)
{
    unsigned low = 0, high = kp_message_types_count;
    while (low < high) {
        unsigned mid = low + (high - low) / 2;
        int order = slice_compare(slice_str(kp_message_types[mid]->name), name);
        if (order == 0)
            return kp_message_types[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}
