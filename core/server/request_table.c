// SPDX-License-Identifier: Apache-2.0
// Which APIs are served: the one list. What is not in it is not advertised.
#include "core/protocol/gen/apis.h"
#include "core/server/api.h"

_Static_assert(KP_API_COUNT <= REQUEST_APIS_MAX, "the table has room for every key");

const struct request_api *const request_table[REQUEST_APIS_MAX] = {
    [KP_API_API_VERSIONS] = &api_api_versions,
    [KP_API_DESCRIBE_CLUSTER] = &api_describe_cluster,
    [KP_API_FETCH] = &api_fetch,
    [KP_API_METADATA] = &api_metadata,
    [KP_API_PRODUCE] = &api_produce,
    [KP_API_DELETE_RECORDS] = &api_delete_records,
    [KP_API_DESCRIBE_LOG_DIRS] = &api_describe_log_dirs,
    [KP_API_DESCRIBE_PRODUCERS] = &api_describe_producers,
    [KP_API_DESCRIBE_TOPIC_PARTITIONS] = &api_describe_topic_partitions,
    [KP_API_INIT_PRODUCER_ID] = &api_init_producer_id,
    [KP_API_LIST_OFFSETS] = &api_list_offsets,
    [KP_API_OFFSET_FOR_LEADER_EPOCH] = &api_offset_for_leader_epoch,
};
