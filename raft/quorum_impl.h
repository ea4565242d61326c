// SPDX-License-Identifier: Apache-2.0
// The quorum from inside: one struct that libraft, log, transport, snapshots and membership hang from, and
// what the files share.
//
// The bracket. libraft is called only between quorum__enter and quorum__leave, from a loop turn, never nested
// (rules 3 and 4 of what its plug-in interface needs). Inside, our callbacks only note what happened;
// quorum__leave looks at it: state and term, what was applied, what failed. Hooks and answers go out from a
// task of their own (quorum__publish), never inside anything.
#ifndef KRAFT_RAFT_QUORUM_IMPL_H
#define KRAFT_RAFT_QUORUM_IMPL_H

#include <raft.h>
#include "core/base/arena.h"
#include "core/base/list.h"
#include "core/base/logline.h"
#include "core/base/node.h"
#include "raft/checkpoint.h"
#include "raft/limits.h"
#include "raft/message.h"
#include "raft/metadata_log.h"
#include "raft/quorum.h"
#include "raft/quorum_state.h"
#include "raft/transport.h"
#include "raft/voter_set.h"

struct image_builder;

// A request that libraft keeps linked: its memory stays until its entry is applied or leadership is gone
// (rule 20).
struct proposal {
    struct list_node link; // in quorum.proposals or quorum.answers
    union {
        struct raft_apply apply;
        struct raft_barrier barrier;
    } request;            // libraft's part
    raft_index index;     // of its entry
    raft_term term;       // it was proposed in
    log_offset base;      // first offset
    size_t bytes;         // of the batch
    quorum_propose_cb cb; // NULL for barriers
    void *data;           // its argument
    int err;              // answer
};

// The configuration (or only the endpoints) as of one entry.
struct set_at {
    raft_index index;      // of the entry; of a snapshot: its configuration index
    bool change;           // a configuration entry; false: new endpoints only
    struct voter_set *set; // one reference
};

// A snapshot that is complete on disk.
struct snapshot_file {
    struct manifest manifest; // name and size
    raft_index index;         // last entry in it
    raft_term term;           // of that entry
    time_ms written;          // when
};

// Own snapshot that is being written.
struct snapshot_take {
    struct node_job job;                  // on the short pool
    struct quorum *q;                     // owner
    struct raft_io_snapshot_put *request; // libraft's; NULL: none is written
    raft_io_snapshot_put_cb cb;           // its callback
    struct checkpoint_info info;          // what is written
    struct image *image;                  // pinned
    int err;                              // result
    struct errmsg msg;                    // of it
};

enum fetch_state { FETCH_NONE, FETCH_READING, FETCH_CHECKING };
// A snapshot that a leader offered: its message is held until the file is here and its image is built (rule
// 13).
struct snapshot_fetch {
    enum fetch_state state;      // what is going on
    struct node_job job;         // check on the short pool
    struct quorum *q;            // owner
    struct link *link;           // connection it came over; NULL: lost, the message is forgotten
    raft_id from;                // who offered it
    struct wire_install offer;   // the message; owns offer.voters
    struct vfs_file *part;       // file being filled
    uint64_t pos;                // bytes that are there
    struct checkpoint_info info; // result of the check
    struct image *image;         // the same
    int err;                     // the same
    struct errmsg msg;           // the same
};

enum change_step { CHANGE_NONE, CHANGE_ADD, CHANGE_PROMOTE, CHANGE_UNDO, CHANGE_REMOVE, CHANGE_ENDPOINTS };
struct change {
    enum change_step step;       // which call to libraft is out
    struct raft_change request;  // its memory; lives as long as the quorum
    struct quorum_server server; // who
    quorum_change_cb cb;         // answer
    void *data;                  // its argument
};
struct change_answer {
    struct list_node link; // in quorum.change_answers
    quorum_change_cb cb;   // to call
    void *data;            // argument
    int err;               // result
    char why[256];         // words
};

struct pending_append {
    struct list_node link;      // in quorum.appends
    struct quorum *q;           // owner
    struct raft_io_append *req; // libraft's
    raft_io_append_cb cb;       // its callback
};

struct quorum {
    struct quorum_opts opts; // with texts copied
    char *dir;               // opts.dir
    char *cluster_id;        // opts.cluster_id
    bool dynamic;            // kraft.version 1
    raft_id self;            // own Raft id
    char address[RAFT_ADDRESS_BYTES];
    struct log_sink *log; // may be NULL

    struct raft raft; // libraft's state
    struct raft_io io;
    struct raft_fsm fsm;
    bool raft_live;       // raft_init was called and raft_close has not finished
    int depth;            // inside libraft (0 or 1)
    raft_io_tick_cb tick; // libraft's
    raft_io_recv_cb recv; // "
    unsigned tick_ms;     // period
    struct node_timer tick_timer;
    struct node_job load_job;

    // disk
    struct mlog *log_store;    // the log
    struct quorum_state state; // term and vote on disk
    raft_term term_to_store;   // set_term remembered it; 0: none (rule 24)
    struct set_at *sets;       // configurations of the log, ascending; [0] is the snapshot's
    uint32_t sets_count, sets_cap;
    struct voter_set *set_put;       // endpoints of what was appended last, to tell on_voters
    struct list appends;             // pending_append
    struct snapshot_file *snapshots; // complete ones, ascending; without the bootstrap one
    uint32_t snapshots_count, snapshots_cap;
    struct snapshot_file current;  // what libraft's log goes on from (rule 16); index 0: none
    struct voter_set *current_set; // its configuration
    raft_index current_conf_index; // index of that
    struct slice *bootstrap;       // own formatted records
    uint32_t bootstrap_count;
    struct arena bootstrap_arena;

    // load, handed to libraft once
    struct raft_entry *load_entries; // raft_malloc
    size_t load_count, load_cap;
    bool load_image_ready; // quorum.image is the snapshot's

    // state machine
    struct image *image;           // newest committed image
    struct image_builder *builder; // records applied in this bracket
    struct arena replay_arena;
    uint64_t bytes_since_snapshot; // applied
    raft_index counted;            // entries up to here are in it, barriers and changes included
    mono_us snapshot_at;           // when the last one was made (or the start)
    bool snapshot_wanted;          // the threshold is set to 1
    mono_us snapshot_not_before;   // pause after one that failed
    struct snapshot_take take;
    struct snapshot_fetch fetch;
    struct image *install_image; // of the offer handed to libraft
    struct checkpoint_info install_info;
    struct raft_io_snapshot_put *install_request;
    raft_io_snapshot_put_cb install_cb;

    // leadership
    unsigned short seen_state; // as of the last bracket
    raft_term seen_term;
    raft_id seen_leader;
    raft_term barrier_term;        // term of our own barrier; 0: none asked
    raft_index barrier_index;      // its entry
    bool active;                   // it was applied in this term
    mono_us heard_leader_at;       // last AppendEntries
    raft_term heard_term;          // its term: the library remembers a leader over a vote for another one
    struct raft_transfer transfer; // memory of it
    raft_id timeout_now_to;        // transferee that is told to stand once it has everything; 0: none
    raft_id replaced_peer;         // voter that came back on a new disk in this leadership; 0: none
    struct node_timer takeover_timer;
    raft_term takeover_term; // term in which the leader's process died
    raft_id takeover_leader; // that leader
    int takeover_tries;      // so far

    // proposals
    struct list proposals; // in libraft, by index
    struct list answers;   // to call
    size_t outstanding;    // bytes of `proposals`
    struct change change;
    struct list change_answers;

    // what the owner was told
    struct node_task publish_task;
    bool publish_posted;
    struct image *told_image;       // last one given to on_image
    log_offset told_high_watermark; // last one given to on_high_watermark
    bool told_active;
    raft_id told_leader;
    raft_term told_term;
    bool told_any;             // on_leadership was called
    bool voters_changed;       // on_voters is due
    log_offset high_watermark; // never goes back

    struct transport transport;
    uint64_t free_bytes; // of the disk, as of the last tick

    // the end
    bool closing;              // quorum_shutdown was called
    bool stopped;              // raft_close finished
    mono_us stop_by;           // transfer no longer than this
    int close_waits;           // log and snapshot jobs still out
    bool close_begun;          // the log's close is queued
    raft_io_close_cb close_cb; // libraft's
    struct node_timer stop_timer;
};

static inline struct quorum *quorum_of_io(struct raft_io *io)
{
    return io->impl;
}

// ---- quorum.c ----
void quorum__enter(struct quorum *q); // before a call into libraft
void quorum__leave(struct quorum *q); // after it; sees to what came of it
void quorum__publish_soon(struct quorum *q);
struct voter_set *quorum__voters(const struct quorum *q); // newest set, borrowed; NULL: none known
const struct set_at *quorum__change_at(const struct quorum *q,
                                       raft_index upto); // newest configuration entry at or below
const struct set_at *quorum__set_at(const struct quorum *q,
                                    raft_index upto); // newest of either kind at or below
void quorum__sets_push(struct quorum *q, raft_index index, bool change,
                       struct voter_set *set); // takes a reference
void quorum__sets_cut(struct quorum *q, raft_index from);
void quorum__sets_trim(struct quorum *q, raft_index upto);
void quorum__sets_reset(struct quorum *q, raft_index index, struct voter_set *set);
void quorum__note_space(struct quorum *q);

// ---- raft_io.c, raft_fsm.c ----
void quorum__io_init(struct quorum *q);
void quorum__fsm_init(struct quorum *q);
void quorum__timeout_now_settle(struct quorum *q); // after each bracket
void quorum__image_catch_up(struct quorum *q);     // ends the builder: quorum.image is that of last_applied
int quorum__load(struct quorum *q, struct errmsg *msg); // quorum_load.c: reads the directory

// ---- raft_receive.c: frames of a link that shook hands; non-zero closes it ----
int quorum__receive(struct quorum *q, struct link *l, enum wire_kind kind, struct slice body);
void quorum__deliver(struct quorum *q, struct raft_message *m,
                     raft_id from); // one message into libraft, repaired

// ---- snapshots.c, snapshot_fetch.c ----
void quorum__snapshot_poll(struct quorum *q);    // asks for a snapshot when our rule says so
void quorum__snapshot_start(struct quorum *q);   // writes quorum.take
bool quorum__snapshot_allowed(struct quorum *q); // rule 15
void quorum__snapshots_add(struct quorum *q, const struct snapshot_file *f);
int quorum__fetch_offer(struct quorum *q, struct link *l, struct wire_install *offer); // takes offer->voters
int quorum__fetch_data(struct quorum *q, struct link *l, const struct wire_snapshot_data *d);
void quorum__fetch_link_lost(struct quorum *q, struct link *l);
void quorum__fetch_drop(struct quorum *q);
int quorum__serve_snapshot(struct quorum *q, struct link *l, const struct wire_snapshot_read *r);

// ---- propose.c, membership.c ----
void quorum__proposals_settle(struct quorum *q); // after each bracket
// Submits a batch of ours (raft_malloc, taken). 0: `cb` comes later; ERR_NOTLEADER, ERR_NOSPACE: it does not.
int quorum__submit_batch(struct quorum *q, uint8_t *batch, size_t size, quorum_propose_cb cb, void *data);
void quorum__barrier(struct quorum *q); // own barrier of a new term (rule 23)
void quorum__change_settle(struct quorum *q);
// A leader's match index of a peer never goes back, so one that came back on an empty disk is sent nothing:
// another voter must lead. Called at every tick.
void quorum__replaced_settle(struct quorum *q);
void quorum__change_answer(struct quorum *q, int err, const char *why);

// ---- take_over.c ----
void quorum__leader_process_gone(struct quorum *q, raft_id leader);
void quorum__take_over_stop(struct quorum *q);

// ---- quorum_stop.c ----
void quorum__append_done(void *pending); // mlog_done of an append
void quorum__close_settle(struct quorum *q);

#endif
