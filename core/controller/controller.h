// SPDX-License-Identifier: Apache-2.0
// The controller's decider: requests in, records and answers out; one operation a function, pure.
//
// An operation reads the context (the latest image, uncommitted changes included, the broker sessions, now,
// random bits) and gives back a filled response and the records that make it true. It changes nothing but the
// session table. The caller proposes the records as one batch (all or nothing), replays them on its own
// uncommitted image, and sends the response once they are committed; a response without records waits for the
// commit of the image it was computed from. When the proposal is refused or leadership is lost, the caller
// drops records and response and answers NOT_CONTROLLER.
//
// Nothing here fails: every refusal is in the response. What responses point to lies in the request or in the
// context's arena; what records point to may also lie in the image, which must live until they are encoded.
#ifndef KRAFT_CONTROLLER_CONTROLLER_H
#define KRAFT_CONTROLLER_CONTROLLER_H

#include "core/base/arena.h"
#include "core/controller/sessions.h"
#include "core/metadata/image.h"
#include "core/metadata/record_list.h"

// Most records that one request may ask for (one batch of the metadata log); more is answered
// POLICY_VIOLATION.
#define CONTROLLER_RECORDS_MAX 10000
#define CONTROLLER_PRODUCER_IDS_BLOCK 1000 // producer ids handed to a broker at a time
#define CONTROLLER_ELECTIONS_MAX 1000      // leader elections of one balance run

// Where random bits come from: the node interface in the server, a seed in tests.
struct controller_random {
    uint64_t (*next)(void *data); // 64 fresh bits
    void *data;                   // for `next`
};

// What config keys may say. core/config implements it; tests may give their own.
struct controller_config_info {
    bool known;     // the resource type has such a key
    bool list;      // its type is a list: APPEND and SUBTRACT are allowed
    bool read_only; // not alterable at run time
    bool sensitive; // value is not shown
    int8_t source;  // source of `value` as DescribeConfigs names it: 5 default, 4 server.properties, 3 or 2
                    // dynamic broker
    struct slice value; // value that holds when the resource itself does not set it; may be null
};
struct config_validator {
    void *data; // first argument of the functions
    // Looks a key of a resource type up. `arena` may take the value's bytes.
    void (*info)(void *data, const struct image *img, int8_t type, struct slice key, struct arena *arena,
                 struct controller_config_info *out);
    // Judges all entries that a resource will have (after the change). 0, or ERR_INVALID with a sentence for
    // the user.
    int (*validate)(void *data, int8_t type, struct slice name, const struct image_config_entry *entries,
                    int32_t count, struct errmsg *msg);
    // Calls `each` for every key of the type that a CreateTopics answer lists.
    void (*each_key)(void *data, int8_t type, void (*each)(void *to, struct slice key), void *to);
};

// Features that this controller itself supports, and that the registered nodes are checked against.
struct controller_opts {
    node_id id;                             // node.id of this controller
    struct slice cluster_id;                // text form
    struct slice listener;                  // name of the controller listener, which a voter to add must have
    int32_t num_partitions;                 // num.partitions: for CreateTopics with -1
    int16_t replication_factor;             // default.replication.factor: for CreateTopics with -1
    int32_t min_insync_replicas;            // min.insync.replicas of the file, where no config says otherwise
    bool unclean_election;                  // unclean.leader.election.enable of the file
    bool delete_topics;                     // delete.topic.enable
    uint32_t session_timeout_ms;            // broker.session.timeout.ms
    int16_t replication_factor_max;         // 1 until replication between brokers exists; 0 = no limit
    double imbalance_limit;                 // leader.imbalance.per.broker.percentage / 100
    const struct config_validator *configs; // NULL: every config is taken as it is
};

// What an operation works on. Fill it anew for each operation.
struct controller {
    const struct controller_opts *opts;   // for the life of the controller
    const struct image *image;            // latest image, uncommitted changes included
    struct controller_sessions *sessions; // heartbeats of brokers; an operation may change it
    mono_us now;                          // monotonic time
    time_ms wall;                         // wall clock
    int16_t kraft_version;                // of the quorum: 0 static voters, 1 dynamic
    log_offset next_offset;               // offset that the first record of this operation gets
    struct controller_random random;      // random bits
    struct arena *arena;                  // takes responses, records and texts
    struct slice
        why; // set by operations whose answer has no room for a sentence: what was refused; for the log
};

// ---- brokers and controllers (controller_brokers.c, controller_heartbeat.c, controller_nodes.c)
// -----------------
struct kp_broker_registration_request;
struct kp_broker_registration_response;
struct kp_broker_heartbeat_request;
struct kp_broker_heartbeat_response;
struct kp_unregister_broker_request;
struct kp_unregister_broker_response;
struct kp_unregister_controller_request;
struct kp_unregister_controller_response;
struct kp_controller_registration_request;
struct kp_controller_registration_response;

// BrokerRegistration (62). The broker epoch in the answer is the offset of the RegisterBrokerRecord, so
// next_offset must be right. A registration takes the broker out of every ISR and leadership that its
// predecessor held.
void controller_register_broker(struct controller *c, const struct kp_broker_registration_request *in,
                                int16_t version, struct kp_broker_registration_response *out,
                                struct record_list *records);
// BrokerHeartbeat (63): fences, unfences, moves leaders away for a shutdown. An unfencing broker must have
// replayed its own registration; a stopping one is let go when it leads nothing and all active brokers have
// replayed what moved its leaders.
void controller_broker_heartbeat(struct controller *c, const struct kp_broker_heartbeat_request *in,
                                 struct kp_broker_heartbeat_response *out, struct record_list *records);
// Fences brokers whose session has run out (a tick; call it every few hundred ms). Records for all that fit
// in one batch.
void controller_expire_sessions(struct controller *c, struct record_list *records);
// Fences a broker at once: its process is known to be gone. Nothing happens when `epoch` is not its epoch or
// it is fenced already.
void controller_fence_gone_broker(struct controller *c, broker_id id, broker_epoch epoch,
                                  struct record_list *records);
// UnregisterBroker (64). A live (unfenced) broker is refused.
void controller_unregister_broker(struct controller *c, const struct kp_unregister_broker_request *in,
                                  struct kp_unregister_broker_response *out, struct record_list *records);
// ControllerRegistration (70).
void controller_register_controller(struct controller *c, const struct kp_controller_registration_request *in,
                                    struct kp_controller_registration_response *out,
                                    struct record_list *records);
// UnregisterController (94). `is_voter` says whether the node is a voter now: such a one is refused.
void controller_unregister_controller(struct controller *c, const struct kp_unregister_controller_request *in,
                                      bool is_voter, struct kp_unregister_controller_response *out,
                                      struct record_list *records);
struct kp_assign_replicas_to_dirs_request;
struct kp_assign_replicas_to_dirs_response;
// AssignReplicasToDirs (73).
void controller_assign_replicas_to_dirs(struct controller *c,
                                        const struct kp_assign_replicas_to_dirs_request *in,
                                        struct kp_assign_replicas_to_dirs_response *out,
                                        struct record_list *records);

// ---- topics (controller_topics.c, controller_partitions.c)
// ------------------------------------------------------
struct kp_create_topics_request;
struct kp_create_topics_response;
struct kp_delete_topics_request;
struct kp_delete_topics_response;
struct kp_create_partitions_request;
struct kp_create_partitions_response;

// CreateTopics (19). `may_describe_configs` false leaves the configs out of the answer (v5+) with
// TOPIC_AUTHORIZATION_FAILED.
void controller_create_topics(struct controller *c, const struct kp_create_topics_request *in,
                              bool may_describe_configs, struct kp_create_topics_response *out,
                              struct record_list *records);
// DeleteTopics (20), by name or by id.
void controller_delete_topics(struct controller *c, const struct kp_delete_topics_request *in,
                              int16_t version, struct kp_delete_topics_response *out,
                              struct record_list *records);
// CreatePartitions (37).
void controller_create_partitions(struct controller *c, const struct kp_create_partitions_request *in,
                                  struct kp_create_partitions_response *out, struct record_list *records);

// ---- leaders (controller_elections.c, controller_alter_partition.c, controller_balance.c)
// -----------------------
struct kp_alter_partition_request;
struct kp_alter_partition_response;
struct kp_elect_leaders_request;
struct kp_elect_leaders_response;

// AlterPartition (56): the ISR as compare-and-swap.
void controller_alter_partition(struct controller *c, const struct kp_alter_partition_request *in,
                                int16_t version, struct kp_alter_partition_response *out,
                                struct record_list *records);
// ElectLeaders (43). A null list of topics means all partitions: then only those that changed or failed are
// answered.
void controller_elect_leaders(struct controller *c, const struct kp_elect_leaders_request *in,
                              struct kp_elect_leaders_response *out, struct record_list *records);
// Moves leaders back to the preferred replicas of brokers that are out of balance by more than the limit, at
// most CONTROLLER_ELECTIONS_MAX. True: there is more to do, call again soon.
bool controller_balance_leaders(struct controller *c, struct record_list *records);
// Elects leaders uncleanly where topics allow it and nothing else is left; a periodic call. True: more is
// left than fitted.
bool controller_elect_unclean(struct controller *c, struct record_list *records);

// ---- configs (controller_configs.c)
// ---------------------------------------------------------------------------
struct kp_incremental_alter_configs_request;
struct kp_incremental_alter_configs_response;
struct kp_alter_configs_request;
struct kp_alter_configs_response;

// IncrementalAlterConfigs (44).
void controller_incremental_alter_configs(struct controller *c,
                                          const struct kp_incremental_alter_configs_request *in,
                                          struct kp_incremental_alter_configs_response *out,
                                          struct record_list *records);
// AlterConfigs (33): what is not named goes back to its default.
void controller_alter_configs(struct controller *c, const struct kp_alter_configs_request *in,
                              struct kp_alter_configs_response *out, struct record_list *records);

// ---- features, producer ids, quorum (controller_features.c, controller_producer_ids.c, controller_voters.c)
// ------
struct kp_update_features_request;
struct kp_update_features_response;
struct kp_allocate_producer_ids_request;
struct kp_allocate_producer_ids_response;
struct kp_add_raft_voter_request;
struct kp_add_raft_voter_response;
struct kp_remove_raft_voter_request;
struct kp_remove_raft_voter_response;

// UpdateFeatures (57).
void controller_update_features(struct controller *c, const struct kp_update_features_request *in,
                                int16_t version, struct kp_update_features_response *out,
                                struct record_list *records);
// AllocateProducerIds (67).
void controller_allocate_producer_ids(struct controller *c, const struct kp_allocate_producer_ids_request *in,
                                      struct kp_allocate_producer_ids_response *out,
                                      struct record_list *records);
// True: the request makes sense and the quorum may carry it out. False: `out` holds the refusal.
bool controller_check_add_voter(struct controller *c, const struct kp_add_raft_voter_request *in,
                                struct kp_add_raft_voter_response *out);
bool controller_check_remove_voter(struct controller *c, const struct kp_remove_raft_voter_request *in,
                                   struct kp_remove_raft_voter_response *out);

// First records of an empty cluster: what the own formatted checkpoint holds (`boot`, feature levels first),
// completed with the metadata.version that this release defaults to where `boot` has none. Also aborts a
// metadata transaction that a predecessor left open. No records: nothing to do. Call it on becoming active,
// before anything is answered.
void controller_activate(struct controller *c, const struct metadata_record *boot, uint32_t boot_count,
                         struct record_list *records);

#endif
