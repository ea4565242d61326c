// SPDX-License-Identifier: Apache-2.0
// Hostile and unlucky peers: bad lengths, random bytes, half frames, resets, many idle connections, no
// memory, no descriptors.
#include "tests/unit/net/net_fixture.h"

#include <sys/resource.h>

static struct node_listener *listener;
static uint16_t port;
static atomic_int accepted, closed_count, malformed, timeouts, frames, log_lines;

static int on_frame(struct node_conn *c, uint8_t *data, size_t len)
{
    atomic_fetch_add(&frames, 1);
    reply(c, data, len < 100 ? len : 100);
    return 0;
}
static void on_closed(struct node_conn *c, int reason)
{
    if (reason == ERR_MALFORMED)
        atomic_fetch_add(&malformed, 1);
    if (reason == ERR_TIMEOUT)
        atomic_fetch_add(&timeouts, 1);
    atomic_fetch_add(&closed_count, 1);
}
static const struct node_conn_ops ops = {on_frame, on_closed, NULL};
static int on_accept(struct node_conn *c, void *data)
{
    node_conn_set_ops(c, &ops);
    atomic_fetch_add(&accepted, 1);
    return 0;
}
static void count_line(struct log_sink *s, const struct log_line *line)
{
    atomic_fetch_add(&log_lines, 1);
}
static struct log_sink sink = {count_line, LOG_LEVEL_INFO};

static void up(uint64_t memory, uint32_t frame_max)
{
    struct errmsg msg;
    node_up(&(struct net_options){.log = &sink, .frame_memory_bytes = memory});
    struct node_listen_opts o = {.host = HOST,
                                 .backlog = 1000,
                                 .loops = loops,
                                 .loops_count = 2,
                                 .limits = {.frame_bytes_max = frame_max},
                                 .accept = on_accept};
    assert_int_equal(node_listen(node, &o, &listener, &msg), 0);
    port = node_listener_port(listener);
    atomic_store(&accepted, 0);
    atomic_store(&closed_count, 0);
    atomic_store(&malformed, 0);
    atomic_store(&timeouts, 0);
    atomic_store(&frames, 0);
    atomic_store(&log_lines, 0);
}
static int setup(void **state)
{
    up(0, 1 << 20);
    return 0;
}
static int teardown(void **state)
{
    node_down();
    assert_int_equal(atomic_load(&closed_count), atomic_load(&accepted));
    struct chunk_stats s;
    chunk_stats(&s);
    assert_int_equal(s.chunks_used, 0);
    return 0;
}
static void assert_alive(void)
{
    char buf[8];
    int fd = client_connect(port);
    client_send_frame(fd, "alive", 5);
    assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 5);
    close(fd);
}

static void lengths_out_of_bounds_close_the_connection(void **state)
{
    const uint32_t bad[] = {0xffffffff, 0x80000000, 0x7fffffff, (1 << 20) + 1, 0x47455420};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t head[4];
        int fd = client_connect(port);
        char buf[8];
        client_send_frame(fd, "x", 1);
        assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 1);
        bytes_store_be32(head, bad[i]);
        for (int k = 0; k < 4; k++) {
            client_send(fd, head + k, 1);
            nanosleep(&(struct timespec){.tv_nsec = 200000 * (i % 2)}, NULL);
        }
        assert_true(client_is_closed(fd));
        close(fd);
    }
    WAIT_UNTIL(atomic_load(&malformed) == 5);
    assert_alive();
}

static void many_bad_peers_make_few_lines(void **state)
{
    for (int i = 0; i < 100; i++) {
        int fd = client_connect(port);
        client_send(fd, "\xff\xff\xff\xff", 4);
        assert_true(client_is_closed(fd));
        close(fd);
    }
    assert_int_equal(atomic_load(&log_lines), 5);
}

static void random_bytes_do_no_harm(void **state)
{
    unsigned seed = 77;
    for (int i = 0; i < 300; i++) {
        uint8_t buf[5000];
        size_t n = (size_t)rand_r(&seed) % sizeof buf;
        for (size_t k = 0; k < n; k++)
            buf[k] = (uint8_t)rand_r(&seed);
        if (i % 2 && n > 4)
            bytes_store_be32(buf, (uint32_t)rand_r(&seed) % 6000);
        int fd = client_connect(port);
        (void)!send(fd, buf, n, MSG_NOSIGNAL);
        if (i % 3 == 0) {
            struct linger hard = {1, 0};
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        }
        close(fd);
    }
    assert_alive();
}

static void half_frames_end_with_their_connection(void **state)
{
    uint8_t head[4];
    bytes_store_be32(head, 1000000);
    for (int i = 0; i < 100; i++) {
        int fd = client_connect(port);
        client_send(fd, head, (size_t)(1 + i % 4));
        if (i % 4 == 3)
            client_send(fd, "some of it", 10);
        struct linger hard = {1, 0};
        if (i % 8 > 3)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fd);
    }
    WAIT_UNTIL(atomic_load(&closed_count) == 100);
    assert_int_equal(atomic_load(&frames), 0);
    assert_alive();
}

static long rss_kib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}
static void two_thousand_idle_connections_cost_little(void **state)
{
    enum { N = 2000 };
    static int fds[N];
    struct rlimit r;
    getrlimit(RLIMIT_NOFILE, &r);
    if (r.rlim_cur < 2 * N + 100)
        skip();
    char buf[8];
    for (int i = 0; i < 50; i++)
        assert_alive();
    long before = rss_kib();
    for (int i = 0; i < N; i++) {
        fds[i] = client_connect(port);
        client_send_frame(fds[i], "x", 1);
        assert_int_equal(client_recv_frame(fds[i], buf, sizeof buf), 1);
    }
    long per_conn = (rss_kib() - before) * 1024 / N;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(per_conn < 2048);
#endif
    (void)per_conn;
    assert_alive();
    for (int i = 0; i < N; i++)
        close(fds[i]);
    WAIT_UNTIL(atomic_load(&closed_count) == atomic_load(&accepted));
}

static void no_descriptor_left_is_refused_and_heals(void **state)
{
    struct rlimit old, low;
    getrlimit(RLIMIT_NOFILE, &old);
    int first = dup(0);
    close(first);
    int fds[60], n = 0, spare = socket(AF_INET, SOCK_STREAM, 0);
    low = old;
    low.rlim_cur = (rlim_t)first + 40;
    setrlimit(RLIMIT_NOFILE, &low);
    for (; n < 60; n++) { // both ends are ours: at some point one of them gets none
        fds[n] = socket(AF_INET, SOCK_STREAM, 0);
        if (fds[n] < 0)
            break;
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
        inet_pton(AF_INET, HOST, &a.sin_addr);
        assert_int_equal(connect(fds[n], (struct sockaddr *)&a, sizeof a), 0);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, HOST, &a.sin_addr);
    assert_int_equal(connect(spare, (struct sockaddr *)&a, sizeof a), 0);
    struct timeval limit = {.tv_sec = 5};
    setsockopt(spare, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_true(client_is_closed(spare));
    assert_true(atomic_load(&log_lines) >= 1);
    close(spare);
    for (int i = 0; i < n; i++)
        close(fds[i]);
    setrlimit(RLIMIT_NOFILE, &old);
    WAIT_UNTIL(atomic_load(&closed_count) == atomic_load(&accepted));
    assert_alive();
}

struct flood {
    pthread_t t;
    int id;
    atomic_int answered;
};
static void *flood_main(void *arg)
{
    struct flood *f = arg;
    static uint8_t data[3 << 20];
    char buf[128];
    int fd = client_connect(port);
    for (int i = 0; i < 6; i++) {
        client_send_frame(fd, data, (uint32_t)sizeof data);
        assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 100);
        atomic_fetch_add(&f->answered, 1);
    }
    close(fd);
    return NULL;
}
static void more_frames_than_memory_wait_and_all_get_through(void **state)
{
    up(8 << 20, 4 << 20);
    static struct flood f[16];
    for (int i = 0; i < 16; i++) {
        atomic_store(&f[i].answered, 0);
        assert_int_equal(pthread_create(&f[i].t, NULL, flood_main, &f[i]), 0);
    }
    for (int i = 0; i < 16; i++) {
        pthread_join(f[i].t, NULL);
        assert_int_equal(atomic_load(&f[i].answered), 6);
    }
}

static void unfinished_frames_cannot_hold_the_memory_for_ever(void **state)
{
    up(4 << 20, 4 << 20);
    static uint8_t data[900000];
    uint8_t head[4];
    int fds[8];
    bytes_store_be32(head, 3 << 20);
    for (int i = 0; i < 8; i++) { // each says three megabytes and stops
        fds[i] = client_connect(port);
        client_send(fds[i], head, 4);
        (void)!send(fds[i], data, sizeof data, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    for (int i = 0; i < 20; i++)
        assert_alive(); // small frames get through at once
    assert_int_equal(atomic_load(&timeouts), 0);
    char buf[128];
    int fd = client_connect(port);
    client_send_frame(fd, data, sizeof data); // a great one within its sender's patience
    assert_int_equal(client_recv_frame(fd, buf, sizeof buf), 100);
    close(fd);
    assert_true(atomic_load(&timeouts) >= 1);
    for (int i = 0; i < 8; i++)
        close(fds[i]);
}

// With "slow" as argument: the tests that wait for limits in seconds.
int main(int argc, char **argv)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define OWN(f) cmocka_unit_test_teardown(f, teardown)
    const struct CMUnitTest tests[] = {
        T(lengths_out_of_bounds_close_the_connection),
        T(many_bad_peers_make_few_lines),
        T(random_bytes_do_no_harm),
        T(half_frames_end_with_their_connection),
        T(two_thousand_idle_connections_cost_little),
        T(no_descriptor_left_is_refused_and_heals),
        OWN(more_frames_than_memory_wait_and_all_get_through),
    };
    const struct CMUnitTest slow[] = {
        OWN(unfinished_frames_cannot_hold_the_memory_for_ever),
    };
    if (argc > 1 && strcmp(argv[1], "slow") == 0)
        return cmocka_run_group_tests(slow, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
