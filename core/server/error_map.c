// SPDX-License-Identifier: Apache-2.0
// The one place where our error codes become the protocol's.
#include "core/server/error_map.h"

enum kafka_error error_map(int err)
{
    switch (err) {
    case ERR_OK:
        return KE_NONE;
    case ERR_RANGE:
        return KE_OFFSET_OUT_OF_RANGE;
    case ERR_IO:
    case ERR_NOSPACE:
    case ERR_OFFLINE:
    case ERR_CORRUPT: // of our own disk: what a client sent has a verdict of its own
        return KE_KAFKA_STORAGE_ERROR;
    case ERR_NOTFOUND:
        return KE_UNKNOWN_TOPIC_OR_PARTITION;
    case ERR_EXISTS:
        return KE_TOPIC_ALREADY_EXISTS;
    case ERR_INVALID:
    case ERR_MALFORMED:
        return KE_INVALID_REQUEST;
    case ERR_TOO_LARGE:
        return KE_MESSAGE_TOO_LARGE;
    case ERR_UNSUPPORTED:
        return KE_UNSUPPORTED_VERSION;
    case ERR_NOTLEADER:
        return KE_NOT_LEADER_OR_FOLLOWER;
    case ERR_FENCED:
        return KE_FENCED_LEADER_EPOCH;
    case ERR_TIMEOUT:
        return KE_REQUEST_TIMED_OUT;
    case ERR_BUSY:
    case ERR_AGAIN:
    case ERR_CANCELED:
        return KE_NOT_LEADER_OR_FOLLOWER; // retriable: the client looks for the leader again
    default:
        return KE_UNKNOWN_SERVER_ERROR;
    }
}

enum kafka_error error_map_validate(enum validate_verdict verdict)
{
    switch (verdict) {
    case VALIDATE_OK:
        return KE_NONE;
    case VALIDATE_CORRUPT:
        return KE_CORRUPT_MESSAGE;
    case VALIDATE_TOO_LARGE:
        return KE_MESSAGE_TOO_LARGE;
    case VALIDATE_BAD_TIMESTAMP:
        return KE_INVALID_TIMESTAMP;
    case VALIDATE_UNSUPPORTED_CODEC:
        return KE_UNSUPPORTED_COMPRESSION_TYPE;
    case VALIDATE_BAD_RECORD:
        return KE_INVALID_RECORD;
    }
    return KE_UNKNOWN_SERVER_ERROR;
}

enum kafka_error error_map_producer(enum producer_verdict verdict)
{
    switch (verdict) {
    case PRODUCER_OK:
    case PRODUCER_DUPLICATE:
        return KE_NONE;
    case PRODUCER_OUT_OF_ORDER:
        return KE_OUT_OF_ORDER_SEQUENCE_NUMBER;
    case PRODUCER_FENCED:
        return KE_INVALID_PRODUCER_EPOCH;
    }
    return KE_UNKNOWN_SERVER_ERROR;
}

bool error_map_tells_log_start(int16_t error)
{
    switch (error) {
    case KE_UNKNOWN_TOPIC_OR_PARTITION:
    case KE_UNKNOWN_TOPIC_ID:
    case KE_TOPIC_AUTHORIZATION_FAILED:
    case KE_NOT_LEADER_OR_FOLLOWER:
    case KE_FENCED_LEADER_EPOCH:
    case KE_MESSAGE_TOO_LARGE:
    case KE_CORRUPT_MESSAGE:
    case KE_KAFKA_STORAGE_ERROR:
        return false;
    default:
        return true;
    }
}
