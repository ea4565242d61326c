// SPDX-License-Identifier: Apache-2.0
// Who may do what: the question that every handler asks, and the table of what each API asks it about.
#ifndef KRAFT_SECURITY_AUTHORIZE_H
#define KRAFT_SECURITY_AUTHORIZE_H

#include "core/security/context.h"

// Codes of the wire protocol and of AccessControlEntryRecord.
enum acl_operation {
    ACL_OPERATION_UNKNOWN = 0,
    ACL_OPERATION_ANY = 1,
    ACL_ALL = 2,
    ACL_READ = 3,
    ACL_WRITE = 4,
    ACL_CREATE = 5,
    ACL_DELETE = 6,
    ACL_ALTER = 7,
    ACL_DESCRIBE = 8,
    ACL_CLUSTER_ACTION = 9,
    ACL_DESCRIBE_CONFIGS = 10,
    ACL_ALTER_CONFIGS = 11,
    ACL_IDEMPOTENT_WRITE = 12,
    ACL_CREATE_TOKENS = 13,
    ACL_DESCRIBE_TOKENS = 14,
    ACL_TWO_PHASE_COMMIT = 15
};
enum acl_resource {
    ACL_RESOURCE_UNKNOWN = 0,
    ACL_RESOURCE_ANY = 1,
    ACL_TOPIC = 2,
    ACL_GROUP = 3,
    ACL_CLUSTER = 4,
    ACL_TRANSACTIONAL_ID = 5,
    ACL_DELEGATION_TOKEN = 6,
    ACL_USER = 7
};
#define ACL_CLUSTER_NAME SLICE_LIT("kafka-cluster") // name of the one cluster resource

// Whether the principal may do it to the resource. While there is no authorizer (no ACLs are enforced by this
// release) everybody may do everything. Any thread; `ctx` is only read.
bool authorize(const struct request_context *ctx, enum acl_operation operation, enum acl_resource resource,
               struct slice name);

// What an API asks for. Handlers apply it at the place where Kafka does: often one of the lines, by what the
// request names.
struct api_permission {
    enum acl_operation operation; // what is to be done
    enum acl_resource resource;   // to what kind of resource
};
#define API_PERMISSIONS_MAX 3 // most lines of one API
// The lines of an API key; *count 0 where it asks nothing (ApiVersions, SASL, telemetry).
const struct api_permission *api_permissions(int16_t api_key, int *count);

#endif
