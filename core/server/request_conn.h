// SPDX-License-Identifier: Apache-2.0
// A Kafka connection as the request machinery keeps it; private to core/server/request*.c and the
// authentication exchange.
#ifndef KRAFT_SERVER_REQUEST_CONN_H
#define KRAFT_SERVER_REQUEST_CONN_H

#include "core/server/limits.h"
#include "core/server/request.h"

// Invariants: `first` is not answered (answered ones leave at once); unanswered = length of the list.
struct request_conn {
    uint32_t magic;                          // REQUEST_CONN_MAGIC
    struct node_conn *conn;                  // the connection; NULL once it is closed
    const struct request_listener *listener; // where it came in
    struct request_loop *loop;               // its loop
    struct request_context ctx;              // who is behind it
    char host[HOST_TEXT_BYTES];              // text behind ctx.client_host
    struct request *first, *last;            // requests in order of arrival, the oldest not yet answered
    uint32_t unanswered;                     // number of them
    struct request *current;                 // request whose handler runs now; NULL once it is finished
    struct rope out;                         // replies of this turn
    struct request_conn *next_dirty;         // list of the loop
    struct node_timer throttle;              // ends a throttled client's pause
    struct request_watch *watches;           // told when the connection is gone
    uint32_t appends;                        // produce requests of this turn that are not flushed yet
    bool dirty;                              // in the loop's list
    bool full;                               // paused because of too many unanswered requests
    bool congested;                          // paused because the client does not read
    bool close_after;                        // close once `out` is sent
    bool broken;                             // close at once
};
#define REQUEST_CONN_MAGIC 0x52434f4eu
#define REQUEST_MAGIC 0x52455155u

#endif
