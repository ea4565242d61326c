// SPDX-License-Identifier: Apache-2.0
// The served APIs: each is defined in the file of its name, core/server/api_*.c.
#ifndef KRAFT_SERVER_API_H
#define KRAFT_SERVER_API_H

#include "core/server/request.h"

extern const struct request_api api_add_raft_voter;
extern const struct request_api api_allocate_producer_ids;
extern const struct request_api api_alter_configs;
extern const struct request_api api_alter_partition;
extern const struct request_api api_api_versions;
extern const struct request_api api_assign_replicas_to_dirs;
extern const struct request_api api_broker_heartbeat;
extern const struct request_api api_broker_registration;
extern const struct request_api api_controller_registration;
extern const struct request_api api_create_partitions;
extern const struct request_api api_create_topics;
extern const struct request_api api_delete_records;
extern const struct request_api api_delete_topics;
extern const struct request_api api_describe_cluster;
extern const struct request_api api_describe_configs;
extern const struct request_api api_describe_log_dirs;
extern const struct request_api api_describe_producers;
extern const struct request_api api_describe_quorum;
extern const struct request_api api_describe_topic_partitions;
extern const struct request_api api_elect_leaders;
extern const struct request_api api_envelope;
extern const struct request_api api_fetch;
extern const struct request_api api_fetch_snapshot;
extern const struct request_api api_incremental_alter_configs;
extern const struct request_api api_init_producer_id;
extern const struct request_api api_list_offsets;
extern const struct request_api api_metadata;
extern const struct request_api api_offset_for_leader_epoch;
extern const struct request_api api_produce;
extern const struct request_api api_remove_raft_voter;
extern const struct request_api api_unregister_broker;
extern const struct request_api api_unregister_controller;
extern const struct request_api api_update_features;
extern const struct request_api api_update_raft_voter;

#endif
