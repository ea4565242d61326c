// SPDX-License-Identifier: Apache-2.0
// The members of the quorum at one point of the log: Raft ids and roles as libraft has them, endpoints as
// people have them.
//
// An immutable counted value of the controller loop. libraft knows a server by its Raft id; its address is
// that id in hex.
#ifndef KRAFT_RAFT_VOTER_SET_H
#define KRAFT_RAFT_VOTER_SET_H

#include <raft.h>
#include "core/base/strbuf.h"
#include "raft/quorum.h"

#define RAFT_ADDRESS_BYTES 17 // libraft's address of a server: 16 hex digits and the NUL

struct quorum_server {
    raft_id id;                // never 0
    int role;                  // RAFT_VOTER, RAFT_STANDBY or RAFT_SPARE
    struct quorum_voter voter; // node id, directory id, endpoints
};
struct voter_set {
    unsigned refs;                  // owners
    uint32_t count;                 // servers, in libraft's order
    struct quorum_server servers[]; // each Raft id and node id once
};

// Raft id of a member. Dynamic quorum: node id and directory id folded into 64 bits; static: node id + 1.
// Never 0.
raft_id quorum_raft_id(node_id id, struct uuid directory_id, bool dynamic);
void quorum_raft_address(raft_id id, char out[RAFT_ADDRESS_BYTES]);

struct voter_set *voter_set_new(uint32_t count); // zeroed servers, one reference
struct voter_set *voter_set_ref(struct voter_set *s);
void voter_set_unref(struct voter_set *s); // NULL allowed
const struct quorum_server *voter_set_find(const struct voter_set *s,
                                           raft_id id); // NULL: not there; `s` may be NULL
const struct quorum_server *voter_set_find_node(const struct voter_set *s, node_id node); // the same
uint32_t voter_set_voters(const struct voter_set *s); // with the role RAFT_VOTER
bool voter_set_equal_config(const struct voter_set *s,
                            const struct raft_configuration *c); // ids and roles, in order

// libraft's form. The configuration is filled with raft_malloc'd memory (raft_configuration_close frees it).
void voter_set_to_configuration(const struct voter_set *s, struct raft_configuration *out);
// The set that libraft's configuration means, endpoints taken from `known` and then from `extra` (both may be
// NULL).
struct voter_set *voter_set_from_configuration(const struct raft_configuration *c,
                                               const struct voter_set *known,
                                               const struct quorum_server *extra);

// Whole set as bytes, for the snapshot header's tag and the InstallSnapshot message:
//   u32 count, then for each server: u64 Raft id, u8 role, i32 node id, 16 bytes directory id, i16 + i16
//   range of kraft.version, u8 endpoints, then for each: u16 + name, u16 + host, u16 port.
void voter_set_encode(const struct voter_set *s, struct strbuf *out);
// NULL: malformed (bounds, id 0 or twice, unknown role, more than QUORUM_SERVERS_MAX).
struct voter_set *voter_set_decode(struct slice bytes);

// Value of a KRAFT_VOTERS control record. `configuration` = it is a configuration entry of libraft: the
// record then carries a tagged field with all servers in libraft's order. Each voter carries its Raft id in a
// tagged field.
void voter_set_encode_record(const struct voter_set *s, bool configuration, struct strbuf *out);
// Reads one. `*configuration` tells whether the tag is there. Voters without a tag get their Raft id by
// quorum_raft_id (dynamic). NULL: malformed.
struct voter_set *voter_set_decode_record(struct slice value, bool *configuration);
// `base` with the endpoints and ranges that `newer` has for the same Raft ids; a new set.
struct voter_set *voter_set_with_endpoints(const struct voter_set *base, const struct voter_set *newer);

#endif
