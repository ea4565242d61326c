// SPDX-License-Identifier: Apache-2.0
// A node's making, its signals and its orderly end.
//
// The end: listeners close; each loop closes its connections and cancels its dials; then the main thread
// waits until no posted task and no job is left; then loops and pools end. Whatever a task posts meanwhile is
// run, too.
#include "net/world.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/chunk.h"
#include "core/base/mem.h"

static const struct metric_def metric_defs[NET_METRICS] = {
    [NET_ACCEPTED] = {"net_connections_accepted_total", METRIC_COUNTER, "Connections accepted by listeners."},
    [NET_REFUSED_FULL] = {"net_connections_refused_total", METRIC_COUNTER,
                          "Connections refused because no file descriptor was left."},
    [NET_DIALLED] = {"net_dials_total", METRIC_COUNTER, "Outbound connections made."},
    [NET_DIAL_FAILED] = {"net_dials_failed_total", METRIC_COUNTER, "Outbound connections that failed."},
    [NET_CLOSED] = {"net_connections_closed_total", METRIC_COUNTER, "Connections that ended."},
    [NET_OPEN] = {"net_connections", METRIC_GAUGE, "Connections that are open."},
    [NET_MALFORMED] = {"net_frames_malformed_total", METRIC_COUNTER,
                       "Frames whose length was out of bounds."},
    [NET_BYTES_IN] = {"net_received_bytes_total", METRIC_COUNTER, "Bytes received."},
    [NET_BYTES_OUT] = {"net_sent_bytes_total", METRIC_COUNTER, "Bytes sent."},
    [NET_FRAMES_IN] = {"net_frames_total", METRIC_COUNTER, "Frames received."},
    [NET_RECEIVES] = {"net_receive_calls_total", METRIC_COUNTER, "Receive calls."},
    [NET_SENDS] = {"net_send_calls_total", METRIC_COUNTER, "Send calls."},
    [NET_MEMORY_WAITS] = {"net_frame_memory_waits_total", METRIC_COUNTER,
                          "Times a connection was not read because the memory for frames was used up."},
    [NET_TURNS] = {"net_loop_turns_total", METRIC_COUNTER,
                   "Turns of event loops in which something happened."},
};

void net_log_limited(struct node *n, struct log_limit *l, enum log_level level, const char *message,
                     const char *fmt, ...)
{
    uint32_t dropped;
    if (!n->opts.log || !log_limit_allow(l, node_clock(n), NET_LOG_PERIOD_US, NET_LOG_LINES, &dropped))
        return;
    char fields[LOG_FIELDS_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(fields, sizeof fields, fmt, args);
    va_end(args);
    if (dropped)
        log_write(n->opts.log, level, "net", message, "%s dropped_lines=%u", fields, dropped);
    else
        log_write(n->opts.log, level, "net", message, "%s", fields);
}

void net_pending_add(struct node *n, int64_t by)
{
    int64_t was = atomic_fetch_add_explicit(&n->pending, by, memory_order_acq_rel);
    MUST(was + by >= 0);
}

// ---- time, randomness, the hard end
// ------------------------------------------------------------------------------

time_ms node_wall(struct node *n)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (time_ms)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void node_random(struct node *n, void *buf, size_t len)
{
    uint8_t *at = buf;
    while (len) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            node_stop(n, "no random bytes: %s", strerror(errno));
        at += got;
        len -= (size_t)got;
    }
}

uint64_t node_random_u64(struct node *n)
{
    uint64_t v;
    node_random(n, &v, sizeof v);
    return v;
}

void node_stop(struct node *n, const char *fmt, ...)
{
    char reason[LOG_FIELDS_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(reason, sizeof reason, fmt, args);
    va_end(args);
    if (n->opts.log)
        log_error(n->opts.log, "net", "the process stops at once", "reason=\"%s\"", reason);
    else
        fprintf(stderr, "the process stops at once: %s\n", reason);
    fflush(stderr);
    _exit(1);
}

// ---- making
// ------------------------------------------------------------------------------------------------------

static uint64_t read_number(const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    unsigned long long v = 0;
    if (fscanf(f, "%llu", &v) != 1)
        v = 0;
    (void)fclose(f);
    return v;
}

// Memory of the machine or of the container, whichever is less.
static uint64_t memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t all = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 1ull << 30;
    const char *limits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint64_t v = read_number(limits[i]);
        if (v && v < all)
            all = v;
    }
    return all;
}

unsigned net_descriptors_max(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return NET_DESCRIPTORS_DEFAULT;
    return r.rlim_max > INT_MAX ? INT_MAX : (unsigned)r.rlim_max;
}

static void raise_descriptors(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

static int make_descriptors(struct node *n)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    n->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    n->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    n->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return n->signal_fd < 0 || n->stop_fd < 0 || n->spare_fd < 0 ? -1 : 0;
}

static void close_descriptors(struct node *n)
{
    int fds[] = {n->signal_fd, n->stop_fd, n->spare_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

int node_create(const struct net_options *opts, struct node **out, struct errmsg *msg)
{
    struct node *n = mem_zalloc(sizeof *n);
    n->magic = NODE_MAGIC;
    n->opts = *opts;
    if (!n->opts.frame_memory_bytes) {
        n->opts.frame_memory_bytes = memory_bytes() / 4;
        if (n->opts.frame_memory_bytes < NET_FRAME_MEMORY_MIN)
            n->opts.frame_memory_bytes = NET_FRAME_MEMORY_MIN;
    }
    if (!n->opts.send_queue_bytes_high)
        n->opts.send_queue_bytes_high = NET_SEND_QUEUE_BYTES_HIGH;
    list_init(&n->loops);
    list_init(&n->pools);
    list_init(&n->listeners);
    n->signal_fd = n->stop_fd = n->spare_fd = -1;
    raise_descriptors();
    unsigned descriptors = net_descriptors_max();
    n->conns_max = descriptors > n->opts.descriptors_kept + NET_CONNS_MIN
                       ? descriptors - n->opts.descriptors_kept
                       : NET_CONNS_MIN;
    (void)signal(SIGPIPE, SIG_IGN);
    if (make_descriptors(n) != 0) {
        int err = err_set(msg, ERR_IO, "cannot make the node's descriptors: %s", strerror(errno));
        close_descriptors(n);
        mem_free(n);
        return err;
    }
    (void)pthread_mutex_init(&n->mutex, NULL);
    (void)pthread_cond_init(&n->changed, NULL);
    metrics_init(&n->own_metrics);
    n->metrics =
        metrics_register(opts->metrics ? opts->metrics : &n->own_metrics, metric_defs, NET_METRICS, NULL);
    *out = n;
    return 0;
}

// ---- signals
// -----------------------------------------------------------------------------------------------------

static void run_signal(struct node_task *t)
{
    struct signal_hook *h = LIST_ENTRY(t, struct signal_hook, task);
    atomic_store(&h->posted, false);
    h->user->run(h->user);
}

void node_on_signal(struct node *n, int signal_number, struct node_loop *loop, struct node_task *task)
{
    MUST(n->signals_count < SIGNAL_HOOKS_MAX);
    struct signal_hook *h = &n->signals[n->signals_count++];
    h->loop = loop;
    h->task.run = run_signal;
    h->user = task;
    h->number = signal_number;
}

static void tell_hooks(struct node *n, int number)
{
    for (unsigned i = 0; i < n->signals_count; i++) {
        struct signal_hook *h = &n->signals[i];
        if (h->number == number && !atomic_exchange(&h->posted, true))
            node_loop_post(h->loop, &h->task);
    }
}

int node_run_until_signal(struct node *n)
{
    int ended_by = -1;
    while (ended_by < 0) {
        struct pollfd fds[2] = {{.fd = n->signal_fd, .events = POLLIN}, {.fd = n->stop_fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            node_stop(n, "waiting for signals failed: %s", strerror(errno));
        struct signalfd_siginfo info;
        while (ended_by < 0 && read(n->signal_fd, &info, sizeof info) == sizeof info) {
            tell_hooks(n, (int)info.ssi_signo);
            if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
                ended_by = (int)info.ssi_signo;
        }
        uint64_t count;
        if (ended_by < 0 && read(n->stop_fd, &count, sizeof count) == sizeof count)
            ended_by = 0;
    }
    // The next one kills.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    return ended_by;
}

void node_request_stop(struct node *n)
{
    uint64_t one = 1;
    ssize_t r = write(n->stop_fd, &one, sizeof one);
    (void)r; // full: it is signalled already
}

// ---- the orderly end
// ---------------------------------------------------------------------------------------------

struct drain {
    struct node_task task;  // runs on the loop
    struct node_loop *loop; // which
    uint32_t flush_ms;      // for queued bytes
};

static void run_drain(struct node_task *t)
{
    struct drain *d = LIST_ENTRY(t, struct drain, task);
    d->loop->draining = true;
    dial_cancel_all(d->loop);
    conn_close_all(d->loop, d->flush_ms);
    mem_free(d);
}

struct probe {
    struct node_task task;  // runs on the loop
    struct node_loop *loop; // which
    size_t conns;           // its answer
    bool done;              // it has answered
};

static void run_probe(struct node_task *t)
{
    struct probe *p = LIST_ENTRY(t, struct probe, task);
    struct node *n = p->loop->node;
    pthread_mutex_lock(&n->mutex);
    p->conns = p->loop->conns_count;
    p->done = true;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->mutex);
}

// Asks a loop how many connections it still has.
static size_t count_conns(struct node_loop *l)
{
    struct node *n = l->node;
    struct probe p = {.task.run = run_probe, .loop = l};
    node_loop_post(l, &p.task);
    pthread_mutex_lock(&n->mutex);
    while (!p.done)
        pthread_cond_wait(&n->changed, &n->mutex);
    pthread_mutex_unlock(&n->mutex);
    // The probe's own count is taken back just after it ran; whoever reads `pending` next waits for that.
    return p.conns;
}

static void nap(void)
{
    struct timespec t = {.tv_nsec = 1000000};
    (void)nanosleep(&t, NULL);
}

static bool is_quiet(struct node *n)
{
    LIST_FOR_EACH(it, &n->loops)
    {
        if (count_conns(LIST_ENTRY(it, struct node_loop, link)))
            return false;
    }
    nap();
    return atomic_load(&n->pending) == 0;
}

void node_shutdown(struct node *n, uint32_t flush_ms)
{
    MUST(n->magic == NODE_MAGIC);
    LIST_FOR_EACH(it, &n->listeners)
    {
        node_listener_close(LIST_ENTRY(it, struct node_listener, link));
    }
    LIST_FOR_EACH(it, &n->loops)
    {
        struct drain *d = mem_alloc(sizeof *d);
        *d = (struct drain){
            .task.run = run_drain, .loop = LIST_ENTRY(it, struct node_loop, link), .flush_ms = flush_ms};
        node_loop_post(d->loop, &d->task);
    }
    mono_us end = node_clock(n) + ((uint64_t)flush_ms + NET_SHUTDOWN_MS_MAX) * 1000;
    while (!is_quiet(n) && node_clock(n) < end)
        ;
    struct list_node *at;
    while ((at = list_pop(&n->pools)) != NULL)
        pool_stop_join(LIST_ENTRY(at, struct node_pool, link));
    while ((at = list_pop(&n->loops)) != NULL)
        loop_stop_join(LIST_ENTRY(at, struct node_loop, link));
    while ((at = list_pop(&n->listeners)) != NULL)
        listener_free(LIST_ENTRY(at, struct node_listener, link));
    metrics_unregister(n->opts.metrics ? n->opts.metrics : &n->own_metrics, n->metrics);
    metrics_fini(&n->own_metrics);
    close_descriptors(n);
    (void)pthread_cond_destroy(&n->changed);
    (void)pthread_mutex_destroy(&n->mutex);
    n->magic = 0;
    mem_free(n);
}
