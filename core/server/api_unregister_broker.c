// SPDX-License-Identifier: Apache-2.0
// UnregisterBroker (64): takes a stopped broker out of the cluster.
#include "core/server/controller_api.h"

#include "core/protocol/gen/unregister_broker_request.h"
#include "core/protocol/gen/unregister_broker_response.h"

CONTROLLER_API_DECIDE(unregister_broker, controller_unregister_broker)
CONTROLLER_API_FAIL(unregister_broker)
CONTROLLER_API(unregister_broker, ACL_ALTER)

const struct request_api api_unregister_broker = {.key = KP_API_UNREGISTER_BROKER,
                                                  .version_min = 0,
                                                  .version_max = 0,
                                                  .advertised_min = 0,
                                                  .on_broker = forward_handler,
                                                  .on_controller = handle_on_controller};
