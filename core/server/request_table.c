// SPDX-License-Identifier: Apache-2.0
// Which APIs are served: the one list. What is not in it is not advertised.
#include "core/protocol/gen/apis.h"
#include "core/server/api.h"

_Static_assert(KP_API_COUNT <= REQUEST_APIS_MAX, "the table has room for every key");

const struct request_api *const request_table[REQUEST_APIS_MAX] = {
    [KP_API_ADD_RAFT_VOTER] = &api_add_raft_voter,
    [KP_API_ALLOCATE_PRODUCER_IDS] = &api_allocate_producer_ids,
    [KP_API_ALTER_CONFIGS] = &api_alter_configs,
    [KP_API_ALTER_PARTITION] = &api_alter_partition,
    [KP_API_API_VERSIONS] = &api_api_versions,
    [KP_API_ASSIGN_REPLICAS_TO_DIRS] = &api_assign_replicas_to_dirs,
    [KP_API_BROKER_HEARTBEAT] = &api_broker_heartbeat,
    [KP_API_BROKER_REGISTRATION] = &api_broker_registration,
    [KP_API_CONTROLLER_REGISTRATION] = &api_controller_registration,
    [KP_API_CREATE_PARTITIONS] = &api_create_partitions,
    [KP_API_CREATE_TOPICS] = &api_create_topics,
    [KP_API_DELETE_RECORDS] = &api_delete_records,
    [KP_API_DELETE_TOPICS] = &api_delete_topics,
    [KP_API_DESCRIBE_CLUSTER] = &api_describe_cluster,
    [KP_API_DESCRIBE_CONFIGS] = &api_describe_configs,
    [KP_API_DESCRIBE_LOG_DIRS] = &api_describe_log_dirs,
    [KP_API_DESCRIBE_PRODUCERS] = &api_describe_producers,
    [KP_API_DESCRIBE_QUORUM] = &api_describe_quorum,
    [KP_API_DESCRIBE_TOPIC_PARTITIONS] = &api_describe_topic_partitions,
    [KP_API_ELECT_LEADERS] = &api_elect_leaders,
    [KP_API_ENVELOPE] = &api_envelope,
    [KP_API_FETCH] = &api_fetch,
    [KP_API_FETCH_SNAPSHOT] = &api_fetch_snapshot,
    [KP_API_INCREMENTAL_ALTER_CONFIGS] = &api_incremental_alter_configs,
    [KP_API_INIT_PRODUCER_ID] = &api_init_producer_id,
    [KP_API_LIST_OFFSETS] = &api_list_offsets,
    [KP_API_METADATA] = &api_metadata,
    [KP_API_OFFSET_FOR_LEADER_EPOCH] = &api_offset_for_leader_epoch,
    [KP_API_PRODUCE] = &api_produce,
    [KP_API_REMOVE_RAFT_VOTER] = &api_remove_raft_voter,
    [KP_API_UNREGISTER_BROKER] = &api_unregister_broker,
    [KP_API_UNREGISTER_CONTROLLER] = &api_unregister_controller,
    [KP_API_UPDATE_FEATURES] = &api_update_features,
    [KP_API_UPDATE_RAFT_VOTER] = &api_update_raft_voter,
};
