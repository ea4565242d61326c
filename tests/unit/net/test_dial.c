// SPDX-License-Identifier: Apache-2.0
// Dialling: connected, refused, timed out, unresolved, canceled.
#include "tests/unit/net/net_fixture.h"

static struct node_listener *listener;
static uint16_t port;
static atomic_int closed_count, last_reason;

static int on_frame(struct node_conn *c, uint8_t *data, size_t len)
{
    reply(c, data, len);
    return 0;
}
static void on_closed(struct node_conn *c, int reason)
{
    atomic_store(&last_reason, reason);
    atomic_fetch_add(&closed_count, 1);
}
static const struct node_conn_ops echo_ops = {on_frame, on_closed, NULL};
static int on_accept(struct node_conn *c, void *data)
{
    node_conn_set_ops(c, &echo_ops);
    return 0;
}
static atomic_int magics;
static int on_accept_magic(struct node_conn *c, void *data)
{
    atomic_fetch_add(&magics, 1);
    return 0;
}

#define MAGIC 0xcafef00du
static int setup(void **state)
{
    struct errmsg msg;
    node_up(&(struct net_options){.user_timeout_ms = 5000});
    struct node_listen_opts o = {.host = HOST,
                                 .backlog = 50,
                                 .loops = loops,
                                 .loops_count = 2,
                                 .limits = {.frame_bytes_max = 1 << 20},
                                 .magic = MAGIC,
                                 .accept = on_accept,
                                 .accept_magic = on_accept_magic};
    assert_int_equal(node_listen(node, &o, &listener, &msg), 0);
    port = node_listener_port(listener);
    atomic_store(&closed_count, 0);
    atomic_store(&magics, 0);
    return 0;
}
static int teardown(void **state)
{
    if (node)
        node_down();
    struct chunk_stats s;
    chunk_stats(&s);
    assert_int_equal(s.chunks_used, 0);
    return 0;
}

struct dialling {
    struct node_dial d;
    int err;
    bool done;
    sem_t answered;
    struct node_conn *conn;
    char got[64];
    sem_t got_frame;
};
static int on_answer_frame(struct node_conn *c, uint8_t *data, size_t len)
{
    struct dialling *x = node_conn_data(c);
    memcpy(x->got, data, len);
    sem_post(&x->got_frame);
    return 0;
}
static const struct node_conn_ops dial_ops = {on_answer_frame, on_closed, NULL};
static void on_dialled(struct node_conn *c, int err, void *data)
{
    struct dialling *x = data;
    assert_false(x->done);
    assert_int_equal(c == NULL, err != 0);
    x->done = true;
    x->err = err;
    x->conn = c;
    if (c) {
        node_conn_set_ops(c, &dial_ops);
        node_conn_set_data(c, x);
        reply(c, "ping", 4);
    }
    sem_post(&x->answered);
}
static void start_dial(void *arg)
{
    struct dialling *x = arg;
    node_dial(loops[0], &x->d);
    assert_false(x->done); // never from inside the call
}
static int dial(struct dialling *x, const char *host, uint16_t to, uint32_t timeout_ms, uint32_t magic)
{
    *x = (struct dialling){.d = {.host = host,
                                 .port = to,
                                 .timeout_ms = timeout_ms,
                                 .magic = magic,
                                 .limits = {.frame_bytes_max = 1 << 20},
                                 .done = on_dialled,
                                 .data = x}};
    sem_init(&x->answered, 0, 0);
    sem_init(&x->got_frame, 0, 0);
    on_loop(loops[0], start_dial, x);
    wait_sem(&x->answered);
    return x->err;
}

static void a_dialled_connection_carries_frames(void **state)
{
    struct dialling x;
    assert_int_equal(dial(&x, HOST, port, 1000, 0), 0);
    wait_sem(&x.got_frame);
    assert_memory_equal(x.got, "ping", 4);
}

static void the_magic_number_goes_first(void **state)
{
    struct dialling x;
    assert_int_equal(dial(&x, HOST, port, 1000, MAGIC), 0);
    wait_sem(&x.got_frame);
    assert_int_equal(atomic_load(&magics), 1);
}

static void a_name_is_resolved(void **state)
{
    struct dialling x;
    struct node_listener *l;
    struct errmsg msg;
    struct node_listen_opts o = {
        .loops = loops, .loops_count = 1, .limits = {.frame_bytes_max = 1000}, .accept = on_accept};
    assert_int_equal(node_listen(node, &o, &l, &msg), 0); // every address, IPv6 too
    assert_int_equal(dial(&x, "localhost", node_listener_port(l), 5000, 0), 0);
    wait_sem(&x.got_frame);
}

static void nobody_listening_is_refused(void **state)
{
    struct dialling x;
    node_listener_close(listener);
    assert_int_equal(dial(&x, HOST, port, 1000, 0), ERR_REFUSED);
    assert_int_equal(dial(&x, "localhost", port, 5000, 0), ERR_REFUSED);
}

static void an_unknown_name_does_not_resolve(void **state)
{
    struct dialling x;
    int err = dial(&x, "no.such.host.invalid", port, 9000, 0);
    assert_true(err == ERR_RESOLVE || err == ERR_TIMEOUT);
}

// A listening socket whose queue is full answers nothing, as a cut cable does.
static void silence_times_out(void **state)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;
    inet_pton(AF_INET, "127.0.0.10", &a.sin_addr);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    int fill[4];
    for (int i = 0; i < 4; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fill[i], (struct sockaddr *)&a, sizeof a);
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    struct dialling x;
    mono_us before = node_clock(node);
    assert_int_equal(dial(&x, "127.0.0.10", ntohs(a.sin_port), 100, 0), ERR_TIMEOUT);
    assert_true(node_clock(node) - before >= 100000);
    assert_true(node_clock(node) - before < 900000);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(fd);
}

static void a_peer_that_dies_is_a_reset(void **state)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;
    inet_pton(AF_INET, HOST, &a.sin_addr);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    struct dialling x;
    assert_int_equal(dial(&x, HOST, ntohs(a.sin_port), 1000, 0), 0);
    int peer = accept(fd, NULL, NULL);
    struct linger hard = {1, 0};
    setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(peer);
    WAIT_UNTIL(atomic_load(&closed_count) == 1);
    assert_int_equal(atomic_load(&last_reason), ERR_RESET);
    close(fd);
}

static void many_dials_at_once_are_all_answered(void **state)
{
    enum { N = 200 };
    static struct dialling x[N];
    static struct call calls[N];
    for (int i = 0; i < N; i++) {
        x[i] = (struct dialling){.d = {.host = i % 4 ? HOST : "localhost",
                                       .port = i % 3 ? port : 1,
                                       .timeout_ms = 5000,
                                       .limits = {.frame_bytes_max = 1 << 20},
                                       .done = on_dialled,
                                       .data = &x[i]}};
        sem_init(&x[i].answered, 0, 0);
        sem_init(&x[i].got_frame, 0, 0);
        calls[i] = (struct call){.task.run = run_call, .run = start_dial, .arg = &x[i]};
        node_loop_post(loops[0], &calls[i].task);
    }
    for (int i = 0; i < N; i++) {
        wait_sem(&x[i].answered);
        bool up = i % 3 && i % 4;
        assert_int_equal(x[i].err, up ? 0 : ERR_REFUSED);
    }
}

static void shutdown_cancels_dials(void **state)
{
    static struct dialling x;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;
    inet_pton(AF_INET, "127.0.0.10", &a.sin_addr);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    int fill[4];
    for (int i = 0; i < 4; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fill[i], (struct sockaddr *)&a, sizeof a);
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    x = (struct dialling){.d = {.host = "127.0.0.10",
                                .port = ntohs(a.sin_port),
                                .timeout_ms = 60000,
                                .done = on_dialled,
                                .data = &x}};
    sem_init(&x.answered, 0, 0);
    on_loop(loops[0], start_dial, &x);
    node_down();
    assert_true(x.done);
    assert_int_equal(x.err, ERR_CANCELED);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(fd);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_dialled_connection_carries_frames),
        T(the_magic_number_goes_first),
        T(a_name_is_resolved),
        T(nobody_listening_is_refused),
        T(an_unknown_name_does_not_resolve),
        T(silence_times_out),
        T(a_peer_that_dies_is_a_reset),
        T(many_dials_at_once_are_all_answered),
        T(shutdown_cancels_dials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
