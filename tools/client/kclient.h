// SPDX-License-Identifier: Apache-2.0
// A small blocking client of the Kafka protocol, for programs and tests: connections, calls, brokers of a
// cluster.
//
// One thread uses a client at a time. Every wait ends after the timeout of the options.
#ifndef KRAFT_TOOLS_KCLIENT_H
#define KRAFT_TOOLS_KCLIENT_H

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/base/types.h"
#include "core/protocol/codec.h"
#include "core/protocol/gen/apis.h"

#define KCLIENT_HOST_BYTES 256              // longest host name, with its NUL
#define KCLIENT_FRAME_BYTES_MAX (256 << 20) // largest response that is taken

struct kclient_options {
    const char *client_id; // name that the server sees
    int timeout_ms;        // for connecting, and for each call
};

// ---- one connection

struct kclient_conn {
    struct kclient_options opts;       // as given
    int fd;                            // socket; -1 after an error: the connection is of no more use
    char host[KCLIENT_HOST_BYTES];     // where it leads
    uint16_t port;                     // where it leads
    int32_t next_correlation;          // of the next request
    int32_t awaited;                   // lowest correlation id that the next response may have
    int16_t min_version[KP_API_COUNT]; // what the server advertises; 0 to -1 where it has no such API
    int16_t max_version[KP_API_COUNT];
};

// Connects and asks which versions the server has. The address is HOST and port; a name is tried at all its
// addresses. Errors: ERR_RESOLVE, ERR_REFUSED, ERR_TIMEOUT, ERR_RESET, ERR_UNSUPPORTED (no common version of
// ApiVersions).
int kclient_dial(struct kclient_conn **out, const char *host, uint16_t port,
                 const struct kclient_options *opts, struct errmsg *err);
void kclient_hangup(struct kclient_conn *c); // NULL allowed

// Highest version of an API, at most `limit` (-1: no limit), that both sides have. -1: none.
int kclient_version(const struct kclient_conn *c, int api_key, int limit);

// Sends a request and reads its response. `version` -1: the highest of both sides. What the response points
// to is in `arena`. Errors: ERR_UNSUPPORTED (the server has not this API or version), ERR_TIMEOUT, ERR_RESET,
// ERR_MALFORMED; after the last three the connection is closed. Error codes inside the response are the
// caller's to look at.
int kclient_call(struct kclient_conn *c, int api_key, int version, const void *request, void *response,
                 struct arena *arena, struct errmsg *err);

// The two halves of a call, for several requests in flight. Responses come in the order of the requests, and
// each is read with the key and version of its request. Produce with acks 0 has none.
int kclient_send(struct kclient_conn *c, int api_key, int version, const void *request, struct errmsg *err);
int kclient_receive(struct kclient_conn *c, int api_key, int version, void *response, struct arena *arena,
                    struct errmsg *err);

// Sends bytes as they are, framed (for tests of what servers do with malformed requests).
int kclient_send_raw(struct kclient_conn *c, struct slice frame, struct errmsg *err);

// ---- a cluster

struct kclient_broker {
    node_id id;                    // node.id
    char host[KCLIENT_HOST_BYTES]; // as the cluster advertises it
    uint16_t port;                 // as the cluster advertises it
    struct kclient_conn *conn;     // connection, or NULL
};

struct kclient {
    struct kclient_options opts;    // as given
    char *bootstrap;                // list of addresses, as given
    struct kclient_conn *first;     // connection to one of them
    struct kclient_broker *brokers; // as of the last refresh
    size_t brokers_count;           // of them
    node_id controller;             // as of the last refresh; -1: none
};

// Connects to the first address of "host:port,host:port" that answers. ERR_INVALID: the list cannot be read;
// else the error of the last address, with all of them in the message.
int kclient_open(struct kclient **out, const char *bootstrap, const struct kclient_options *opts,
                 struct errmsg *err);
void kclient_close(struct kclient *c); // NULL allowed

// A live connection to some broker (the bootstrap one, or a new one where that has broken).
int kclient_any(struct kclient *c, struct kclient_conn **out, struct errmsg *err);
// Asks which brokers there are.
int kclient_refresh(struct kclient *c, struct errmsg *err);
// A live connection to a broker of the last refresh. ERR_NOTFOUND: the cluster has no such broker.
int kclient_node(struct kclient *c, node_id id, struct kclient_conn **out, struct errmsg *err);

// Takes "host:port", "[v6]:port"; false: not an address.
bool kclient_parse_address(const char *text, size_t len, char host[KCLIENT_HOST_BYTES], uint16_t *port);

#endif
