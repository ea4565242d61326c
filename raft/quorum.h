// SPDX-License-Identifier: Apache-2.0
// The controller quorum as server code sees it: one replicated metadata log and the image that it makes.
//
// A quorum belongs to one loop (the controller loop). Every function is called on that loop, and every hook
// and callback comes on it, from a later turn than the call that caused it, never from inside a quorum_ call.
// What crosses threads are the images (immutable, counted) and the ropes that quorum_read fills.
//
// Order of life: quorum_create (reads the directory, blocks), hooks may come from the next turn on,
// quorum_shutdown, `stopped`, quorum_destroy.
#ifndef KRAFT_RAFT_QUORUM_H
#define KRAFT_RAFT_QUORUM_H

#include "core/base/err.h"
#include "core/base/node.h"
#include "core/base/rope.h"
#include "core/base/slice.h"
#include "core/base/types.h"
#include "core/base/uuid.h"

struct image;    // core/metadata/image.h
struct quorum;   // one member of the controller quorum
struct vfs;      // storage/vfs.h
struct log_sink; // core/base/logline.h

#define QUORUM_MAGIC 0xF04B5246u // first four bytes of a quorum connection, big-endian; no valid frame length
#define QUORUM_HOST_BYTES 256    // longest host name, with its NUL
#define QUORUM_LISTENER_BYTES 64 // longest listener name, with its NUL
#define QUORUM_ENDPOINTS_MAX 4   // endpoints kept per voter
#define QUORUM_SERVERS_MAX 32    // servers of a configuration

#define QUORUM_BATCH_RECORDS_MAX 10000 // records of one proposal (Kafka's limit of a controller operation)
#define QUORUM_BATCH_BYTES_MAX (8 * 1024 * 1024) // bytes of one batch

struct quorum_endpoint {
    char name[QUORUM_LISTENER_BYTES]; // listener name, as "CONTROLLER"
    char host[QUORUM_HOST_BYTES];     // name or address; resolved at every dial
    uint16_t port;                    // 0 = none
};

// A member as people name it: node id, the directory its log is in, and where to reach it.
struct quorum_voter {
    node_id id;               // node.id
    struct uuid directory_id; // meta.properties directory.id; all zero in a static quorum
    uint32_t endpoints_count; // endpoints in use
    struct quorum_endpoint endpoints[QUORUM_ENDPOINTS_MAX]; // the first one is dialled
    int16_t kraft_version_min;                              // supported range of kraft.version
    int16_t kraft_version_max;                              // (both 0 in a static quorum)
};

// What the quorum tells its owner. Each may be NULL. `data` is the owner's.
struct quorum_hooks {
    void *data; // first argument of every hook
    // The committed image advanced (also once after start, when a snapshot or earlier entries were loaded).
    // Comes in committed order. `image` is valid during the call; take a reference (image_ref) to keep it.
    // `end_offset` = offset after the last record in it, `epoch` = Raft term of that record.
    void (*on_image)(void *data, struct image *image, log_offset end_offset, leader_epoch epoch);
    // The high watermark moved (quorum_high_watermark): what is committed and on this disk, so what observers
    // may be given. Comes after on_image, where another member's disk was faster in a later turn than the
    // image.
    void (*on_high_watermark)(void *data, log_offset high_watermark);
    // Leadership or the known leader changed. `active`: this node leads and a barrier of its own term has
    // been applied; only then does quorum_propose take records. `leader` -1 = none known. `term` = current
    // Raft term (the controller epoch).
    void (*on_leadership)(void *data, bool active, node_id leader, leader_epoch term);
    // The set of voters or an endpoint changed (read it with quorum_describe).
    void (*on_voters)(void *data);
    // quorum_shutdown is done: the log is closed and synced, no hook comes after this one. quorum_destroy is
    // allowed inside.
    void (*stopped)(void *data);
};

struct quorum_opts {
    struct node *node;            // the world
    struct node_loop *loop;       // controller loop
    struct node_pool *raft_log;   // pool of exactly one thread: log writes and syncs, in order
    struct node_pool *short_pool; // snapshot files
    struct vfs *fs;               // disk
    const char *dir; // the metadata log directory itself (".../__cluster_metadata-0"); created if missing
    const char *cluster_id;                   // text form, as in meta.properties
    node_id id;                               // node.id of this controller
    struct uuid directory_id;                 // directory.id of the directory that holds `dir`
    const struct quorum_voter *static_voters; // controller.quorum.voters; NULL = dynamic quorum
    uint32_t static_voters_count;             // voters in it
    struct quorum_endpoint endpoint;          // this node's own controller endpoint, as others reach it
    bool disk_replaced; // static quorum: this node's disk was replaced on purpose, peers shall forget the old
                        // directory id
    uint32_t election_timeout_ms; // controller.quorum.election.timeout.ms; 0 = 1000. The heartbeat is a tenth
                                  // of it.
    uint32_t snapshot_bytes;      // metadata.log.max.record.bytes.between.snapshots; 0 = 20 MiB
    uint64_t snapshot_interval_ms; // metadata.log.max.snapshot.interval.ms; 0 = never by time
    uint32_t segment_bytes;        // metadata.log.segment.bytes; 0 = 1 GiB
    int64_t retention_bytes;       // metadata.max.retention.bytes; -1 = no limit, 0 = 100 MiB
    int64_t retention_ms;          // metadata.max.retention.ms; -1 = no limit, 0 = 7 days
    uint32_t snapshot_fetch_bytes; // chunk of a snapshot fetch between voters; 0 = 1 MiB
    uint32_t trailing_bytes; // entries before a snapshot that stay in memory for members that lag a little; 0
                             // = 2 MiB
    uint32_t append_bytes;   // entries of one message between members; 0 = 1 MiB
    uint64_t reserve_bytes;  // free space below which proposals are refused (ERR_NOSPACE); 0 = 16 MiB
    uint64_t outstanding_bytes; // most bytes proposed and not yet committed before ERR_BUSY; 0 = 2 MiB (one
                                // batch always goes)
    struct log_sink *log;       // may be NULL
    struct quorum_hooks hooks;
};

// Reads the directory, repairs a torn tail (kept aside and reported), starts the quorum. Blocks on the disk;
// called on the loop. Errors: ERR_CORRUPT (damage in what was synced: names file and position and says how to
// rejoin), ERR_NOTFOUND (dynamic quorum and the directory was not formatted), ERR_INVALID (options, or the
// directory belongs to another quorum kind), ERR_IO.
int quorum_create(const struct quorum_opts *opts, struct quorum **out, struct errmsg *msg);

// Transfers leadership away if this node leads and another voter is up (bounded by the election timeout),
// closes every connection and the log, then calls hooks.stopped. Outstanding proposals are answered
// ERR_CANCELED before that.
void quorum_shutdown(struct quorum *q);
void quorum_destroy(struct quorum *q); // after `stopped` (or right after a failed node)

// ---- state
// ---------------------------------------------------------------------------------------------------
struct image *quorum_image(struct quorum *q);     // newest committed image, a new reference of the caller's
bool quorum_is_active(const struct quorum *q);    // leads, and its barrier was applied
node_id quorum_leader(const struct quorum *q);    // -1 none known
leader_epoch quorum_term(const struct quorum *q); // current term
log_offset quorum_high_watermark(
    const struct quorum *q); // end offset of what is committed and synced here; never goes back
log_offset quorum_log_start(const struct quorum *q); // first offset that quorum_read can give
log_offset quorum_log_end(const struct quorum *q);   // offset after the last batch, committed or not
bool quorum_endpoint_of(const struct quorum *q, node_id id,
                        struct quorum_endpoint *out); // false: no such voter

// ---- proposing
// ----------------------------------------------------------------------------------------------- Answer of a
// proposal: err 0 = committed and applied (the image that holds it was published before); ERR_CANCELED =
// leadership was lost or the node stops: the outcome is unknown. `base_offset` = offset of the first record.
typedef void (*quorum_propose_cb)(void *data, int err, log_offset base_offset);

// Offset that the first record of the next proposal gets. Compute records that hold their own offset (the
// broker epoch) from it and call quorum_propose in the same turn with no other quorum_ call between.
log_offset quorum_next_offset(const struct quorum *q);

// Proposes `count` records as one batch: all or nothing. Each value is a framed metadata record (frame
// version, api key, version, message), copied. Returns 0 and calls `cb` exactly once later, or one of these
// and never calls it: ERR_NOTLEADER (not active), ERR_BUSY (too much outstanding: try after the next answer),
// ERR_NOSPACE (disk reserve of this node or of a majority), ERR_TOO_LARGE (limits above), ERR_INVALID (count
// 0).
int quorum_propose(struct quorum *q, const struct slice *values, uint32_t count, quorum_propose_cb cb,
                   void *data);

// Proposes an idle no-op (metadata.max.idle.interval.ms): a barrier whose batch is a NoOpRecord. Same errors;
// not sent when something is outstanding.
int quorum_propose_noop(struct quorum *q);

// Metadata records of this node's own formatted checkpoint (feature levels, SCRAM users ...), framed values.
// An active controller whose image has no metadata.version proposes them as its first batch. Valid as long as
// the quorum; count 0 = none.
void quorum_bootstrap_records(const struct quorum *q, const struct slice **values, uint32_t *count);

// ---- reading (Fetch, FetchSnapshot)
// -------------------------------------------------------------------------- Appends to `out` file ranges of
// whole committed batches from the one that holds `from`, at least one batch and about `bytes_max`, all below
// the high watermark. Nothing is appended at the high watermark. Errors: ERR_RANGE (before the log start or
// past the high watermark), ERR_IO.
int quorum_read(struct quorum *q, log_offset from, uint32_t bytes_max, struct rope *out);

// Leader epoch of the batch at `offset` - 1, or of the snapshot that ends there; -1 unknown. And the end
// offset of an epoch, for Kafka's diverging-epoch answer: *epoch_out = largest epoch <= `epoch`, answer = its
// end offset (log end for the newest); -1 when all epochs are larger.
leader_epoch quorum_epoch_at(const struct quorum *q, log_offset end_offset);
log_offset quorum_end_offset_of_epoch(const struct quorum *q, leader_epoch epoch, leader_epoch *epoch_out);

struct quorum_snapshot_id {
    log_offset end_offset; // offset after the last record in it
    leader_epoch epoch;    // epoch of that record
};
// Newest complete snapshot with end_offset > 0. false: none.
bool quorum_latest_snapshot(const struct quorum *q, struct quorum_snapshot_id *out);
// Appends bytes [pos, pos + bytes_max) of a snapshot file to `out` and gives its size. Errors: ERR_NOTFOUND,
// ERR_RANGE (pos past the end), ERR_IO.
int quorum_read_snapshot(struct quorum *q, const struct quorum_snapshot_id *id, uint64_t pos,
                         uint32_t bytes_max, struct rope *out, uint64_t *size);

// ---- membership
// ----------------------------------------------------------------------------------------------
struct quorum_member {
    struct quorum_voter voter; // who
    bool is_voter;             // false: is being added (SPARE or catching up)
    log_offset log_end_offset; // what is known to be in its log; -1 unknown (only the leader knows others)
    time_ms last_fetch_ms;     // wall clock of its last answer; -1 unknown
    time_ms last_caught_up_ms; // wall clock when it last had everything; -1 never
};
struct quorum_description {
    node_id leader;                                   // -1 none known
    leader_epoch term;                                // current term
    log_offset high_watermark;                        // committed end
    int16_t kraft_version;                            // 0 static, 1 dynamic
    uint32_t members_count;                           // members in use
    struct quorum_member members[QUORUM_SERVERS_MAX]; // in order of node id
};
void quorum_describe(const struct quorum *q, struct quorum_description *out);

// Answer of a change. 0 = done and committed; ERR_NOTLEADER, ERR_BUSY (another change is pending),
// ERR_EXISTS, ERR_NOTFOUND, ERR_TIMEOUT (the new voter did not catch up; it was taken out again), ERR_STATE
// (dynamic quorums only; or this is the last voter), ERR_CANCELED (leadership lost: look at quorum_describe).
// `why` says it in words.
typedef void (*quorum_change_cb)(void *data, int err, const char *why);
// Adds a voter: first as a server without a vote, then, caught up, as voter. `cb` always comes, in a later
// turn.
void quorum_add_voter(struct quorum *q, const struct quorum_voter *voter, quorum_change_cb cb, void *data);
// Removes one. Naming the active controller transfers leadership and answers ERR_NOTLEADER: the successor
// removes it when asked again.
void quorum_remove_voter(struct quorum *q, node_id id, struct uuid directory_id, quorum_change_cb cb,
                         void *data);
// New endpoints of a voter (UpdateRaftVoter). Active controller only.
void quorum_update_voter(struct quorum *q, const struct quorum_voter *voter, quorum_change_cb cb, void *data);
// Hands leadership to `to` (-1: the most advanced voter). Errors: ERR_NOTLEADER, ERR_NOTFOUND (no such voter,
// or nobody else), ERR_BUSY. What came of it shows in on_leadership.
int quorum_transfer_leadership(struct quorum *q, node_id to);

// ---- connections
// --------------------------------------------------------------------------------------------- Takes a
// connection that opened with QUORUM_MAGIC on the controller listener (node_listen_opts.accept_magic;
// listener magic = QUORUM_MAGIC). Sets ops and data. Non-zero: refused. The listener's frame limit for such
// connections must be at least QUORUM_FRAME_BYTES_MAX.
#define QUORUM_FRAME_BYTES_MAX (QUORUM_BATCH_BYTES_MAX + 1024 * 1024)
int quorum_accept(struct quorum *q, struct node_conn *c);

#endif
