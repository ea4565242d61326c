// SPDX-License-Identifier: Apache-2.0
// The configuration of one node: typed fields of the keys that this release obeys, and all values as given.
#ifndef KRAFT_CONFIG_SERVER_CONFIG_H
#define KRAFT_CONFIG_SERVER_CONFIG_H

#include "core/config/endpoint.h"
#include "core/config/values.h"

struct server_config {
    struct config_values values; // all that was given, for DescribeConfigs
    struct arena arena;          // holds what the fields point to

    // identity and roles
    node_id id;         // node.id
    bool is_broker;     // process.roles
    bool is_controller; // process.roles
    const char *rack;   // broker.rack; NULL none

    // directories, absolute or as given
    const char **log_dirs;        // log.dirs, else log.dir
    uint32_t log_dirs_count;      // at least 1
    const char *metadata_log_dir; // metadata.log.dir, else the first of log_dirs

    // listeners
    struct config_endpoint *listeners;  // listeners, in order
    uint32_t listeners_count;           // of them
    struct config_endpoint *advertised; // what clients and brokers are told: advertised.listeners, else the
                                        // listeners of the broker
    uint32_t advertised_count;          // of them; without controller listeners
    struct config_endpoint *controller_listener;  // the listener of this controller; NULL on a broker
    struct config_endpoint controller_advertised; // how others reach this controller; port 0 on a broker
    const char *const *controller_listener_names; // controller.listener.names, upper case
    uint32_t controller_listener_names_count;     // of them
    enum security_protocol controller_security;   // of the first of these names
    const char *inter_broker_listener;            // name of the listener that brokers use among themselves

    // quorum
    struct config_voter *voters;        // controller.quorum.voters; none in a dynamic quorum
    uint32_t voters_count;              // of them; > 0: static quorum
    struct config_voter *bootstrap;     // controller.quorum.bootstrap.servers; id -1
    uint32_t bootstrap_count;           // of them
    uint32_t election_timeout_ms;       // controller.quorum.election.timeout.ms
    uint32_t fetch_timeout_ms;          // controller.quorum.fetch.timeout.ms
    uint32_t quorum_request_timeout_ms; // controller.quorum.request.timeout.ms
    bool auto_join;                     // controller.quorum.auto.join.enable
    uint32_t snapshot_bytes;            // metadata.log.max.record.bytes.between.snapshots
    uint64_t snapshot_interval_ms;      // metadata.log.max.snapshot.interval.ms
    uint32_t metadata_segment_bytes;    // metadata.log.segment.bytes
    int64_t metadata_retention_bytes;   // metadata.max.retention.bytes
    int64_t metadata_retention_ms;      // metadata.max.retention.ms
    uint32_t metadata_idle_ms;          // metadata.max.idle.interval.ms

    // broker and controller lifecycle
    uint32_t broker_heartbeat_ms;     // broker.heartbeat.interval.ms
    uint32_t broker_session_ms;       // broker.session.timeout.ms
    uint32_t registration_timeout_ms; // initial.broker.registration.timeout.ms
    bool controlled_shutdown;         // controlled.shutdown.enable
    bool auto_rebalance;              // auto.leader.rebalance.enable
    uint32_t rebalance_check_seconds; // leader.imbalance.check.interval.seconds
    uint32_t imbalance_percent;       // leader.imbalance.per.broker.percentage

    // topics
    bool auto_create_topics;            // auto.create.topics.enable
    bool delete_topics;                 // delete.topic.enable
    int32_t num_partitions;             // num.partitions
    int16_t replication_factor;         // default.replication.factor
    int32_t min_insync_replicas;        // min.insync.replicas
    bool unclean_election;              // unclean.leader.election.enable
    int32_t offsets_partitions;         // offsets.topic.num.partitions
    int16_t offsets_replication_factor; // offsets.topic.replication.factor
    int32_t offsets_segment_bytes;      // offsets.topic.segment.bytes

    // sockets and requests
    uint32_t
        network_loops; // kraft.network.loops, else num.network.threads; the assembly bounds it by the cores
    bool network_loops_given;    // kraft.network.loops was set: not bounded by the cores
    uint64_t frame_memory_bytes; // kraft.memory.frames.bytes; 0 = the node's choice
    uint32_t request_bytes_max;  // socket.request.max.bytes
    int32_t send_buffer_bytes; // socket.send.buffer.bytes; -1 = the system's choice, also where it is not set
    int32_t receive_buffer_bytes;   // socket.receive.buffer.bytes; the same
    int32_t listen_backlog;         // socket.listen.backlog.size
    int64_t connection_idle_ms;     // connections.max.idle.ms
    int32_t fetch_max_bytes;        // fetch.max.bytes
    int32_t fetch_sessions_max;     // max.incremental.fetch.session.cache.slots
    int32_t request_partitions_max; // max.request.partition.size.limit

    // logs
    int32_t producer_id_expiration_ms;    // producer.id.expiration.ms
    int64_t log_retention_check_ms;       // log.retention.check.interval.ms
    int64_t high_watermark_checkpoint_ms; // replica.high.watermark.checkpoint.interval.ms
    int64_t recovery_point_checkpoint_ms; // log.flush.offset.checkpoint.interval.ms
    int64_t log_start_checkpoint_ms;      // log.flush.start.offset.checkpoint.interval.ms
    int64_t flush_scheduler_ms;           // log.flush.scheduler.interval.ms
    int64_t file_delete_delay_ms;         // log.segment.delete.delay.ms
    uint32_t recovery_threads;            // num.recovery.threads.per.data.dir

    // replication
    int32_t replica_lag_time_ms_max;          // replica.lag.time.max.ms
    int32_t replica_fetchers;                 // num.replica.fetchers
    int32_t replica_fetch_max_bytes;          // replica.fetch.max.bytes
    int32_t replica_fetch_response_max_bytes; // replica.fetch.response.max.bytes
    int32_t replica_fetch_wait_ms_max;        // replica.fetch.wait.max.ms
    int32_t replica_fetch_min_bytes;          // replica.fetch.min.bytes
    int32_t replica_fetch_backoff_ms;         // replica.fetch.backoff.ms

    bool unstable_api_versions; // unstable.api.versions.enable
};

// Called for each thing that is odd but no reason to stop: unknown key, removed key, key twice. One line,
// without line break.
struct config_warn {
    void (*warn)(void *data, const char *text); // `text` is valid during the call
    void *data;                                 // its first argument
};

// Makes the configuration from `values`, which is moved into it (empty afterwards, also on failure). Checks
// every key alone and the keys together. ERR_INVALID: *msg says which key, why, and what to write instead.
// `warn` may be NULL.
int server_config_make(struct config_values *values, const struct config_warn *warn,
                       struct server_config **out, struct errmsg *msg);
void server_config_free(struct server_config *c); // NULL allowed

// Puts the machine's own name where a listener names no host (listeners=PLAINTEXT://:9092), as Kafka does:
// others are told that name. The program calls it right after server_config_make; `host` is copied.
void server_config_set_host(struct server_config *c, const char *host);

// Listener of this name, NULL: none. Case does not matter.
const struct config_endpoint *server_config_listener(const struct server_config *c, const char *name);
// Is this listener one of controller.listener.names?
bool server_config_is_controller_listener(const struct server_config *c, struct slice name);

#endif
