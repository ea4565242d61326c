// SPDX-License-Identifier: Apache-2.0
// Commit latency of the controller quorum in real processes on loopback: one at a time, many in flight, and a
// killed leader.
//
// Usage: bench_quorum DIR [VOTERS [SECONDS]]   starts VOTERS processes of itself (3, 2 s) under DIR, prints
// lines, removes nothing.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/metadata/image.h"
#include "core/protocol/metadata_record.h"
#include "net/net.h"
#include "raft/format.h"
#include "raft/quorum.h"

#define PORT 39393
#define SAMPLES_MAX 200000

struct member {
    struct node *node;
    struct node_loop *loop;
    struct node_pool *raft_log, *short_pool;
    struct quorum *q;
    char dir[512];
    int id, voters;
    double seconds;
    struct node_task start, stop;
    struct node_timer pause;
    mono_us began, sent[1024];
    uint32_t samples[SAMPLES_MAX];
    unsigned count, in_flight, width, next;
    bool running;
};

static struct quorum_voter voter(int id)
{
    struct quorum_voter v = {.id = id, .endpoints_count = 1, .kraft_version_max = 1};
    for (int k = 0; k < 16; k++)
        v.directory_id.b[k] = (uint8_t)(31 * (id + 1) + k);
    (void)snprintf(v.endpoints[0].name, sizeof v.endpoints[0].name, "CONTROLLER");
    (void)snprintf(v.endpoints[0].host, sizeof v.endpoints[0].host, "127.0.0.%d", id + 21);
    v.endpoints[0].port = PORT;
    return v;
}

static int smaller(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report(struct member *m, const char *what)
{
    double took = (double)(node_clock(m->node) - m->began) / 1e6;
    if (m->count == 0)
        return;
    qsort(m->samples, m->count, sizeof m->samples[0], smaller);
    printf("%s: %u commits, %.0f/s, p50 %.2f ms, p99 %.2f ms, max %.2f ms\n", what, m->count, m->count / took,
           m->samples[m->count / 2] / 1e3, m->samples[m->count * 99 / 100] / 1e3,
           m->samples[m->count - 1] / 1e3);
    (void)fflush(stdout);
    m->count = 0;
}

static void send_some(struct member *m);

static void committed(void *data, int err, log_offset base)
{
    struct member *m = data;
    (void)base;
    m->in_flight--;
    if (err)
        return;
    if (m->count < SAMPLES_MAX)
        m->samples[m->count++] = (uint32_t)(node_clock(m->node) - m->sent[m->next++ % 1024]);
    send_some(m);
}

static void send_some(struct member *m)
{
    uint8_t value[512];
    char text[180];
    struct metadata_record r;
    if (!m->running)
        return;
    if ((double)(node_clock(m->node) - m->began) / 1e6 > m->seconds) {
        if (m->in_flight == 0) {
            report(m, m->width == 1 ? "one at a time" : "256 in flight");
            m->width = m->width == 1 ? 256 : 0;
            m->began = node_clock(m->node);
            m->next = 0;
            if (m->width == 0) {
                m->running = false;
                if (m->voters == 1)
                    node_request_stop(m->node);
                else
                    kill(getpid(), SIGKILL); // the others show how long it takes to replace us
            }
        }
        if (m->in_flight || !m->running)
            return;
    }
    while (m->in_flight < m->width) {
        memset(text, 'x', sizeof text);
        metadata_record_init(&r, METADATA_CONFIG, 0);
        r.body.config.resource_type = CONFIG_RESOURCE_BROKER;
        r.body.config.resource_name = SLICE_LIT("0");
        r.body.config.name = SLICE_LIT("key");
        r.body.config.value = slice_of(text, sizeof text);
        size_t size = metadata_record_size(&r);
        if (size > sizeof value || metadata_record_encode_into(&r, value) != 0)
            abort();
        struct slice v = slice_of(value, size);
        m->sent[(m->next + m->in_flight) % 1024] = node_clock(m->node);
        if (quorum_propose(m->q, &v, 1, committed, m) != 0)
            return;
        m->in_flight++;
    }
}

static void begin(struct node_timer *t)
{
    struct member *m = (struct member *)(void *)((char *)t - offsetof(struct member, pause));
    m->running = true;
    m->width = 1;
    m->began = node_clock(m->node);
    send_some(m);
}

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_leadership(void *data, bool active, node_id leader, leader_epoch term)
{
    struct member *m = data;
    if (!active)
        return;
    printf("%.4f node %d is active in term %d\n", wall(), (int)leader, (int)term);
    (void)fflush(stdout);
    if (term == 2) {
        m->pause.fire = begin;
        node_timer_start(m->loop, &m->pause, 500);
    } else {
        node_request_stop(m->node);
    }
}

static int accept_magic(struct node_conn *c, void *data)
{
    return quorum_accept(((struct member *)data)->q, c);
}

static int refuse(struct node_conn *c, void *data)
{
    (void)data;
    node_conn_set_ops(c, &(struct node_conn_ops){0});
    return 0;
}

static void stopped(void *data)
{
    node_request_stop(((struct member *)data)->node);
}

static void start(struct node_task *t)
{
    struct member *m = (struct member *)(void *)((char *)t - offsetof(struct member, start));
    struct errmsg msg = {{0}};
    struct node_listener *l;
    struct quorum_opts o = {.node = m->node,
                            .loop = m->loop,
                            .raft_log = m->raft_log,
                            .short_pool = m->short_pool,
                            .fs = vfs_posix(),
                            .dir = m->dir,
                            .cluster_id = "4L6g3nShT-eMCtK--X86sw",
                            .id = m->id,
                            .directory_id = voter(m->id).directory_id,
                            .hooks = {.data = m, .on_leadership = on_leadership, .stopped = stopped}};
    o.endpoint = voter(m->id).endpoints[0];
    if (quorum_create(&o, &m->q, &msg) != 0) {
        fprintf(stderr, "node %d: %s\n", m->id, msg.text);
        exit(1);
    }
    struct node_listen_opts lo = {.host = o.endpoint.host,
                                  .port = PORT,
                                  .loops = &m->loop,
                                  .loops_count = 1,
                                  .limits = {.frame_bytes_max = QUORUM_FRAME_BYTES_MAX},
                                  .magic = QUORUM_MAGIC,
                                  .accept = refuse,
                                  .accept_magic = accept_magic,
                                  .data = m};
    if (node_listen(m->node, &lo, &l, &msg) != 0) {
        fprintf(stderr, "node %d: %s\n", m->id, msg.text);
        exit(1);
    }
}

static void stop(struct node_task *t)
{
    struct member *m = (struct member *)(void *)((char *)t - offsetof(struct member, stop));
    quorum_shutdown(m->q);
}

static int run_member(const char *dir, int id, int voters, double seconds)
{
    static struct member m; // the program's own
    struct quorum_voter all[7];
    struct errmsg msg = {{0}};
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    m.id = id;
    m.voters = voters;
    m.seconds = seconds;
    for (int i = 0; i < voters && i < 7; i++)
        all[i] = voter(i);
    (void)snprintf(m.dir, sizeof m.dir, "%s/%d", dir, id);
    (void)mkdir(m.dir, 0755);
    (void)snprintf(m.dir, sizeof m.dir, "%s/%d/__cluster_metadata-0", dir, id);
    struct raft_format f = {.dynamic = true, .voters = all, .voters_count = (uint32_t)voters, .now = 1};
    if (!raft_format_exists(vfs_posix(), m.dir) && raft_format_write(vfs_posix(), m.dir, &f, &msg) != 0) {
        fprintf(stderr, "format: %s\n", msg.text);
        return 1;
    }
    if (node_create(&(struct net_options){0}, &m.node, &msg) != 0)
        return 1;
    m.loop = node_loop_create(m.node, "controller");
    m.raft_log = node_pool_create(m.node, "raft-log", 1);
    m.short_pool = node_pool_create(m.node, "short", 1);
    m.start.run = start;
    node_loop_post(m.loop, &m.start);
    (void)node_run_until_signal(m.node);
    m.stop.run = stop;
    node_loop_post(m.loop, &m.stop);
    (void)node_run_until_signal(m.node);
    node_shutdown(m.node, 100);
    return 0;
}

int main(int argc, char **argv)
{
    int voters = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 3;
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 2;
    if (argc < 2 || voters < 1 || voters > 7) {
        fprintf(stderr, "usage: bench_quorum DIR [VOTERS [SECONDS]]\n");
        return 2;
    }
    if (argc > 4)
        return run_member(argv[1], (int)strtol(argv[4], NULL, 10), voters, seconds);
    (void)mkdir(argv[1], 0755);
    pid_t members[7] = {0};
    for (int i = 0; i < voters; i++) {
        members[i] = fork();
        if (members[i] == 0) {
            char id[16];
            (void)snprintf(id, sizeof id, "%d", i);
            execl("/proc/self/exe", argv[0], argv[1], argc > 2 ? argv[2] : "3", argc > 3 ? argv[3] : "2", id,
                  (char *)NULL);
            return 1;
        }
    }
    int status, ended = 0;
    pid_t pid;
    while ((pid = wait(&status)) > 0) {
        if (WIFSIGNALED(status))
            printf("%.4f a process was killed\n", wall());
        (void)fflush(stdout);
        for (int i = 0; i < voters; i++)
            members[i] = members[i] == pid ? 0 : members[i];
        ended++;
        for (int i = 0; i < voters && ended > 1; i++) { // one was killed, one took over: that is all
            if (members[i])
                kill(members[i], SIGTERM);
        }
    }
    return 0;
}
