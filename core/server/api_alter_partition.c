// SPDX-License-Identifier: Apache-2.0
// AlterPartition (56): a leader changes the ISR, as compare-and-swap (KIP-497).
#include "core/server/controller_api.h"

#include "core/protocol/gen/alter_partition_request.h"
#include "core/protocol/gen/alter_partition_response.h"

CONTROLLER_API_DECIDE_VERSION(alter_partition, controller_alter_partition)
CONTROLLER_API_FAIL(alter_partition)
CONTROLLER_API(alter_partition, ACL_CLUSTER_ACTION)

const struct request_api api_alter_partition = {.key = KP_API_ALTER_PARTITION,
                                                .version_min = 2,
                                                .version_max = 3,
                                                .advertised_min = 2,
                                                .flags = REQUEST_CLUSTER_ACTION,

                                                .on_controller = handle_on_controller};
