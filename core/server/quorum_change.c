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

static bool copy_text(char *to, size_t size, struct slice from)
{
    if (from.len >= size || from.len == 0)
        return false;
    memcpy(to, from.data, from.len);
    to[from.len] = 0;
    return true;
}

bool quorum_change_add_endpoint(struct quorum_voter *voter, struct slice name, struct slice host,
                                uint16_t port)
{
    if (voter->endpoints_count == QUORUM_ENDPOINTS_MAX || port == 0)
        return false;
    struct quorum_endpoint *e = &voter->endpoints[voter->endpoints_count];
    if (!copy_text(e->name, sizeof e->name, name) || !copy_text(e->host, sizeof e->host, host))
        return false;
    e->port = port;
    voter->endpoints_count++;
    return true;
}
