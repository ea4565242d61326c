// SPDX-License-Identifier: Apache-2.0
// The served APIs: each is defined in the file of its name, core/server/api_*.c.
#ifndef KRAFT_SERVER_API_H
#define KRAFT_SERVER_API_H

#include "core/server/request.h"

extern const struct request_api api_api_versions;
extern const struct request_api api_describe_cluster;
extern const struct request_api api_fetch;
extern const struct request_api api_metadata;
extern const struct request_api api_produce;
extern const struct request_api api_delete_records;
extern const struct request_api api_describe_log_dirs;
extern const struct request_api api_describe_producers;
extern const struct request_api api_describe_topic_partitions;
extern const struct request_api api_init_producer_id;
extern const struct request_api api_list_offsets;
extern const struct request_api api_offset_for_leader_epoch;

#endif
