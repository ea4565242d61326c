// SPDX-License-Identifier: Apache-2.0
// AssignReplicasToDirs (73): a broker says which log directory holds which replica (KIP-858).
#include "core/server/controller_api.h"

#include "core/protocol/gen/assign_replicas_to_dirs_request.h"
#include "core/protocol/gen/assign_replicas_to_dirs_response.h"

CONTROLLER_API_DECIDE(assign_replicas_to_dirs, controller_assign_replicas_to_dirs)
CONTROLLER_API_FAIL(assign_replicas_to_dirs)
CONTROLLER_API(assign_replicas_to_dirs, ACL_CLUSTER_ACTION)

const struct request_api api_assign_replicas_to_dirs = {.key = KP_API_ASSIGN_REPLICAS_TO_DIRS,
                                                        .version_min = 0,
                                                        .version_max = 0,
                                                        .advertised_min = 0,
                                                        .flags = REQUEST_CLUSTER_ACTION,

                                                        .on_controller = handle_on_controller};
