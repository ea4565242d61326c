// SPDX-License-Identifier: Apache-2.0
// The small parts: slices, arenas, integers as bytes, lists, texts, paths, log lines, metrics.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/bytes.h"
#include "core/base/limits.h"
#include "core/base/list.h"
#include "core/base/logline.h"
#include "core/base/mem.h"
#include "core/base/metrics.h"
#include "core/base/path.h"
#include "core/base/strbuf.h"

static void null_and_empty_slices_differ(void **state)
{
    assert_true(slice_equal(SLICE_NULL, SLICE_NULL));
    assert_false(slice_equal(SLICE_NULL, SLICE_LIT("")));
    assert_true(slice_compare(SLICE_LIT("a"), SLICE_LIT("ab")) < 0);
    assert_true(slice_compare(SLICE_LIT("b"), SLICE_LIT("ab")) > 0);
}

static void utf8_is_checked_strictly(void **state)
{
    assert_true(slice_is_utf8(SLICE_LIT("a\u00e4\u20ac\U0001F600")));
    const char *bad[] = {"\x80",         "\xc0\x80",         "\xe0\x80\x80",
                         "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf0\x80\x80\x80",
                         "\xe2\x82"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(slice_is_utf8(slice_str(bad[i])));
}

static void arena_allocations_are_aligned_and_apart(void **state)
{
    struct arena a;
    arena_init(&a);
    for (int round = 0; round < 3; round++) {
        uint8_t *last = NULL;
        for (size_t i = 0; i < 5000; i++) {
            uint8_t *p = arena_zalloc(&a, i % 300);
            assert_int_equal((uintptr_t)p % 16, 0);
            assert_true(p != last);
            memset(p, 0xff, i % 300);
            last = p;
        }
        char *big = arena_alloc(&a, 1 << 20);
        big[(1 << 20) - 1] = 1;
        assert_string_equal(arena_printf(&a, "%d-%s", 5, "x"), "5-x");
        arena_reset(&a);
        assert_int_equal(a.used, 0);
    }
    arena_fini(&a);
}

static void arena_says_no_at_its_limit(void **state)
{
    struct arena a;
    arena_init(&a);
    a.limit = 1000;
    assert_non_null(arena_try_alloc(&a, 900));
    assert_null(arena_try_alloc(&a, 200));
    assert_null(arena_try_alloc(&a, SIZE_MAX));
    arena_fini(&a);
}

static size_t allocations;
static void *count_alloc(void *d, size_t n)
{
    allocations++;
    return malloc(n);
}
static void *plain_realloc(void *d, void *p, size_t n)
{
    return realloc(p, n);
}
static void *plain_aligned(void *d, size_t a, size_t n)
{
    return aligned_alloc(a, n);
}
static void plain_free(void *d, void *p)
{
    free(p);
}
static void a_reused_arena_allocates_nothing(void **state)
{
    static const struct mem_hooks counting = {NULL, count_alloc, plain_realloc, plain_aligned, plain_free};
    struct arena a;
    mem_set_hooks(&counting);
    arena_init(&a);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 50; i++)
            arena_alloc(&a, 1000);
        arena_reset(&a);
        if (round == 0)
            allocations = 0;
    }
    arena_fini(&a);
    mem_set_hooks(NULL);
    assert_int_equal(allocations, 0);
}

static void varints_go_both_ways(void **state)
{
    const int64_t values[] = {0,    1,    -1,        63,        64,        -64,      -65,
                              8191, 8192, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint8_t buf[VARLONG_BYTES_MAX];
        int64_t v64;
        int32_t v32;
        size_t n = varlong_write(buf, values[i]);
        assert_int_equal(n, varlong_size(values[i]));
        assert_int_equal(varlong_read(buf, n, &v64), n);
        assert_true(v64 == values[i]);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(varlong_read(buf, k, &v64), 0); // cut off anywhere: refused
        if (values[i] < INT32_MIN || values[i] > INT32_MAX) {
            assert_int_equal(varint_read(buf, n, &v32), 0);
            continue;
        }
        n = varint_write(buf, (int32_t)values[i]);
        assert_int_equal(n, varint_size((int32_t)values[i]));
        assert_int_equal(varint_read(buf, n, &v32), n);
        assert_int_equal(v32, values[i]);
    }
}

static void overlong_varints_are_refused(void **state)
{
    const uint8_t bad[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x00};
    uint32_t v32;
    uint64_t v64;
    assert_int_equal(uvarint_read(bad, sizeof bad, &v32), 0);
    assert_int_equal(uvarlong_read(bad, sizeof bad, &v64), 0);
    const uint8_t five[] = {0xff, 0xff, 0xff, 0xff, 0x10};
    assert_int_equal(uvarint_read(five, 5, &v32), 0);
    const uint8_t most[] = {0xff, 0xff, 0xff, 0xff, 0x0f};
    assert_int_equal(uvarint_read(most, 5, &v32), 5);
    assert_true(v32 == UINT32_MAX);
}

static void integers_are_big_endian(void **state)
{
    uint8_t b[8];
    bytes_store_be64(b, 0x0102030405060708u);
    for (int i = 0; i < 8; i++)
        assert_int_equal(b[i], i + 1);
    assert_int_equal(bytes_load_be16(b), 0x0102);
    assert_int_equal(bytes_load_be32(b), 0x01020304);
    assert_true(bytes_load_be64(b) == 0x0102030405060708u);
    assert_int_equal(bytes_load_le32(b), 0x04030201);
}

static void lists_link_and_splice(void **state)
{
    struct list a, b;
    struct list_node n[4] = {{NULL, NULL}};
    list_init(&a);
    list_init(&b);
    list_add_tail(&a, &n[0]);
    list_add_tail(&a, &n[1]);
    list_add_head(&b, &n[3]);
    list_add_head(&b, &n[2]);
    list_splice_tail(&a, &b);
    assert_true(list_is_empty(&b));
    int i = 0;
    LIST_FOR_EACH(it, &a)
    assert_ptr_equal(it, &n[i++]);
    assert_int_equal(i, 4);
    assert_ptr_equal(list_last(&a), &n[3]);
    list_remove(&n[1]);
    list_remove(&n[1]);
    assert_false(list_is_linked(&n[1]));
    LIST_FOR_EACH_SAFE(it, &a)
    list_remove(it);
    assert_null(list_pop(&a));
}

static void texts_grow(void **state)
{
    struct strbuf b;
    strbuf_init(&b);
    assert_string_equal(strbuf_text(&b), "");
    for (int i = 0; i < 1000; i++)
        strbuf_printf(&b, "%03d,", i);
    assert_int_equal(b.len, 4000);
    strbuf_clear(&b);
    strbuf_add_str(&b, "ab");
    strbuf_add_char(&b, 'c');
    char *t = strbuf_take(&b);
    assert_string_equal(t, "abc");
    mem_free(t);
    strbuf_fini(&b);
}

static void paths_join_with_one_slash(void **state)
{
    char *a = path_join("/var", "x"), *b = path_join("/var/", "x"), *c = path_join("", "x");
    assert_string_equal(a, "/var/x");
    assert_string_equal(b, "/var/x");
    assert_string_equal(c, "x");
    assert_string_equal(path_base(a), "x");
    assert_string_equal(path_base("y"), "y");
    mem_free(a);
    mem_free(b);
    mem_free(c);
}

struct test_sink {
    struct log_sink sink;
    int lines;
    char fields[64];
};
static void sink_write(struct log_sink *s, const struct log_line *line)
{
    struct test_sink *t = (struct test_sink *)s;
    t->lines++;
    strncpy(t->fields, line->fields, sizeof t->fields - 1);
}
static void log_lines_are_filtered_and_stay_on_one_line(void **state)
{
    struct test_sink t = {{sink_write, LOG_LEVEL_INFO}, 0, ""};
    log_debug(&t.sink, "test", "not seen", "x=%d", 1);
    assert_int_equal(t.lines, 0);
    log_info(&t.sink, "test", "seen", "x=%s", "a\nb");
    assert_int_equal(t.lines, 1);
    assert_string_equal(t.fields, "x=a b");
    log_error(NULL, "test", "nobody listens", "%s", "");
}

static void the_limiter_counts_what_it_drops(void **state)
{
    struct log_limit l = {0};
    uint32_t dropped;
    int let = 0;
    for (int i = 0; i < 10; i++)
        let += log_limit_allow(&l, 0, 1000, 3, &dropped);
    assert_int_equal(let, 3);
    assert_true(log_limit_allow(&l, 2000, 1000, 3, &dropped));
    assert_int_equal(dropped, 7);
    assert_true(log_limit_allow(&l, 2001, 1000, 3, &dropped));
    assert_int_equal(dropped, 0);
}

static void histogram_buckets_hold_what_falls_into_them(void **state)
{
    static const struct metric_def defs[] = {{"requests_total", METRIC_COUNTER, "requests"},
                                             {"wait_us", METRIC_HISTOGRAM, "waits"}};
    struct metrics m;
    metrics_init(&m);
    struct metric_set *s = metrics_register(&m, defs, 2, NULL);
    metric_inc(s, 0);
    metric_add(s, 0, 4);
    assert_int_equal(metric_get(s, 0), 5);
    for (uint64_t v = 1; v <= 1000; v++)
        metric_record(s, 1, v);
    metric_record(s, 1, UINT64_MAX);
    const struct metric_histogram *h = s->values[1].histogram;
    assert_int_equal(h->count, 1001);
    uint64_t p50 = metric_quantile(h, 0.5);
    assert_true(p50 >= 500 && p50 <= 575);
    assert_true(metric_quantile(h, 1.0) == UINT64_MAX);
    assert_true(metric_quantile(h, 0) == 1);
    for (unsigned i = 1; i < METRIC_HISTOGRAM_BUCKETS; i++)
        assert_true(metric_bucket_limit(i) > metric_bucket_limit(i - 1));
    metrics_unregister(&m, s);
    metrics_fini(&m);
}

static void each_metric(void *data, const struct metric_def *def, const char *labels, int64_t number,
                        const struct metric_histogram *h)
{
    *(int64_t *)data += number + (long)strlen(labels);
}
static void the_registry_lists_all_sets(void **state)
{
    static const struct metric_def defs[] = {{"a", METRIC_GAUGE, "a"}};
    struct metrics m;
    metrics_init(&m);
    metric_set_value(metrics_register(&m, defs, 1, "x"), 0, 10);
    metric_set_value(metrics_register(&m, defs, 1, "yy"), 0, 200);
    int64_t sum = 0;
    metrics_each(&m, each_metric, &sum);
    assert_int_equal(sum, 213);
    metrics_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_and_empty_slices_differ),
        cmocka_unit_test(utf8_is_checked_strictly),
        cmocka_unit_test(arena_allocations_are_aligned_and_apart),
        cmocka_unit_test(arena_says_no_at_its_limit),
        cmocka_unit_test(a_reused_arena_allocates_nothing),
        cmocka_unit_test(varints_go_both_ways),
        cmocka_unit_test(overlong_varints_are_refused),
        cmocka_unit_test(integers_are_big_endian),
        cmocka_unit_test(lists_link_and_splice),
        cmocka_unit_test(texts_grow),
        cmocka_unit_test(paths_join_with_one_slash),
        cmocka_unit_test(log_lines_are_filtered_and_stay_on_one_line),
        cmocka_unit_test(the_limiter_counts_what_it_drops),
        cmocka_unit_test(histogram_buckets_hold_what_falls_into_them),
        cmocka_unit_test(the_registry_lists_all_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
