// SPDX-License-Identifier: Apache-2.0
// The limits of net/, each with its reason.
#ifndef KRAFT_NET_LIMITS_H
#define KRAFT_NET_LIMITS_H

#define NET_RECV_SHARED_BYTES                                                                                \
    ((1u << 20) - 64)                   // a loop's receive buffer, shared by its connections: stays in L2
#define NET_RECV_BYTES_MAX (256u << 10) // one receive into it: many small frames in one call
#define NET_RECV_BYTES_HEAD                                                                                  \
    (16u << 10)                     // the same between big frames, where only the next one's head is wanted
#define NET_RECV_BYTES_PRESSED 4096 // the same when memory is used up: requests that carry no data fit
#define NET_BIG_FRAME_BYTES (160u << 10) // between frames from here up little is received at a time
#define NET_TURN_BYTES_MAX (8u << 20)    // received in one turn by one loop; the rest waits for the next turn
#define NET_READ_BURST_BYTES (3u << 20)  // of it by one connection that has more all the time
#define NET_SMALL_SEND_BYTES 512         // shorter replies are copied together: fewer pieces than bytes saved
#define NET_SENDFILE_BYTES_MIN                                                                               \
    (16u << 10) // shorter file ranges are read and leave with the rest in one writev
#define NET_READ_PIECE_BYTES_MAX                                                                             \
    (128u << 10)                       // file bytes read to memory at a time where sendfile is not used
#define NET_FLUSH_BYTES_MAX (4u << 20) // one connection's output in one turn: no connection holds the loop
#define NET_IOV_MAX 128                // pieces of one writev
#define NET_SEND_QUEUE_BYTES_HIGH (1u << 20) // unsent output above which a connection is read no further
#define NET_ACCEPT_MAX 64                    // connections accepted in one turn
#define NET_DESCRIPTORS_DEFAULT 1024         // where the limit of open files cannot be told
#define NET_CONNS_MIN 16                     // connections that are taken however low that limit is
#define NET_CONNS_MORE                                                                                       \
    16 // connections of listeners with a magic number above the limit: the quorum comes first
#define NET_CLOSE_FLUSH_MS 1000            // a closing connection's last bytes have this long
#define NET_FRAME_MEMORY_MIN (64ull << 20) // least budget for frames, on the smallest machine
#define NET_CHARGE_STEP_BYTES                                                                                \
    (2u << 20)                             // a great frame is counted by what has come, in advance by this:
                                           // its memory comes in huge pages
#define NET_FIRST_BYTES ((16u << 10) - 64) // of a frame must be there before memory for all of it is taken
#define NET_STALL_MS 2000         // under memory pressure a frame is given up after this long without a byte
#define NET_SLOW_MS 60000         // ... and after this long in any case
#define NET_PRESSURE_CHECK_MS 20  // how often connections that wait for memory are looked at
#define NET_TIDY_MS 5000          // how often unused memory is given back while there is traffic
#define NET_TIDY_ROUNDS 4         // quiet rounds until nothing ticks any more
#define NET_SHUTDOWN_MS_MAX 10000 // posted tasks and jobs get this long at the end
#define NET_RESOLVER_THREADS 2    // a hanging name server holds up no more than this
#define NET_LOG_LINES 5           // of one kind in a period ...
#define NET_LOG_PERIOD_US 10000000ull // ... of this length

_Static_assert(NET_RECV_BYTES_MAX <= NET_RECV_SHARED_BYTES, "one receive fits");
_Static_assert(NET_FIRST_BYTES <= NET_RECV_BYTES_HEAD, "the first receive of a big frame is enough");
_Static_assert(NET_RECV_BYTES_HEAD < NET_BIG_FRAME_BYTES, "little is copied between big frames");

#endif
