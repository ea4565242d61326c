// SPDX-License-Identifier: Apache-2.0
// ElectLeaders (43): preferred and unclean elections on demand (KIP-460).
#include "core/server/controller_api.h"

#include "core/protocol/gen/elect_leaders_request.h"
#include "core/protocol/gen/elect_leaders_response.h"

CONTROLLER_API_DECIDE(elect_leaders, controller_elect_leaders)
CONTROLLER_API_FAIL(elect_leaders)
CONTROLLER_API(elect_leaders, ACL_ALTER)

const struct request_api api_elect_leaders = {.key = KP_API_ELECT_LEADERS,
                                              .version_min = 0,
                                              .version_max = 2,
                                              .advertised_min = 0,
                                              .on_broker = forward_handler,
                                              .on_controller = handle_on_controller};
