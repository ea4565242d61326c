// SPDX-License-Identifier: Apache-2.0
// Outcomes of voter changes as Kafka's error codes (KIP-853).
#include "core/server/quorum_change.h"

enum kafka_error quorum_change_error(int err, enum quorum_change_kind kind)
{
    switch (err) {
    case 0:
        return KE_NONE;
    case ERR_NOTLEADER:
    case ERR_CANCELED:
        return KE_NOT_CONTROLLER;
    case ERR_EXISTS:
        return KE_DUPLICATE_VOTER;
    case ERR_NOTFOUND:
        return KE_VOTER_NOT_FOUND;
    case ERR_STATE:
        return kind == CHANGE_REMOVE ? KE_INVALID_REQUEST : KE_UNSUPPORTED_VERSION;
    case ERR_BUSY:
    case ERR_TIMEOUT:
        return KE_REQUEST_TIMED_OUT;
    default:
        return KE_UNKNOWN_SERVER_ERROR;
    }
}
