// SPDX-License-Identifier: Apache-2.0
// Listeners, security protocols, voters and host:port pairs, as server.properties writes them.
#ifndef KRAFT_CONFIG_ENDPOINT_H
#define KRAFT_CONFIG_ENDPOINT_H

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/base/slice.h"
#include "core/base/types.h"
#include "core/base/uuid.h"

// Numbers of the protocol (BrokerRegistration and others).
enum security_protocol {
    SECURITY_PLAINTEXT = 0,
    SECURITY_SSL = 1,
    SECURITY_SASL_PLAINTEXT = 2,
    SECURITY_SASL_SSL = 3,
};
const char *security_protocol_name(enum security_protocol p);
bool security_protocol_parse(struct slice name, enum security_protocol *out); // any case

struct config_endpoint {
    struct slice name;               // listener name in upper case; NUL-terminated
    struct slice host;               // "" = every address; brackets of IPv6 removed; NUL-terminated
    uint16_t port;                   // 0 only where `listeners` says so
    enum security_protocol security; // by listener.security.protocol.map
};

// Splits "host:port", "[v6]:port" or ":port". ERR_INVALID.
int endpoint_parse_host_port(struct slice text, struct slice *host, uint16_t *port, struct errmsg *msg);
// Reads "NAME://host:port" into name, host and port (bytes of `arena`); the security protocol is the caller's
// work. ERR_INVALID.
int endpoint_parse_listener(struct slice text, struct arena *arena, struct config_endpoint *out,
                            struct errmsg *msg);

// A voter of controller.quorum.voters ("1@host:9093") or of --initial-controllers
// ("1@host:9093:DIRECTORY-ID").
struct config_voter {
    node_id id;            // node.id
    struct slice host;     // NUL-terminated
    uint16_t port;         // of the controller listener
    struct uuid directory; // zero where the text has none
};
// Reads a comma-separated list; with_directory: the third part must be there, else it must not. ERR_INVALID,
// also for an id or a directory that appears twice.
int endpoint_parse_voters(struct slice text, bool with_directory, struct arena *arena,
                          struct config_voter **out, int32_t *count, struct errmsg *msg);

#endif
