// SPDX-License-Identifier: Apache-2.0
// Ropes: writing, sharing, moving and flattening.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/chunk.h"
#include "core/base/err.h"

static size_t chunks_used(void)
{
    struct chunk_stats s;
    chunk_stats(&s);
    return s.chunks_used;
}

static void assert_rope(const struct rope *r, const char *want)
{
    char buf[256];
    assert_int_equal(r->len, strlen(want));
    assert_int_equal(rope_flatten(r, (uint8_t *)buf), 0);
    assert_memory_equal(buf, want, r->len);
}

static void small_writes_share_one_piece(void **state)
{
    struct rope r;
    rope_init(&r);
    rope_write(&r, "abc", 3);
    memcpy(rope_reserve(&r, 2), "de", 2);
    assert_int_equal(r.count, 1);
    assert_rope(&r, "abcde");
    rope_clear(&r);
    assert_int_equal(r.len, 0);
    assert_int_equal(chunks_used(), 0);
}

static void pieces_keep_their_order(void **state)
{
    struct rope r;
    rope_init(&r);
    struct chunk *c = chunk_alloc(10);
    memcpy(c->data, "0123456789", 10);
    rope_write(&r, "a", 1);
    rope_add_chunk(&r, c, 2, 3);
    rope_write(&r, "b", 1);
    rope_add_static(&r, SLICE_LIT("static"));
    rope_add_chunk(&r, c, 0, 1);
    rope_add_chunk(&r, c, 9, 1);
    rope_write(&r, "c", 1);
    rope_add_static(&r, SLICE_LIT("!"));
    chunk_unref(c);
    assert_rope(&r, "a234bstatic09c!");
    rope_clear(&r);
    assert_int_equal(chunks_used(), 0);
}

static void a_long_write_is_spread_over_chunks(void **state)
{
    size_t size = 300000;
    uint8_t *data = malloc(size), *out = malloc(size);
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(i * 31 >> 3);
    struct rope r;
    rope_init(&r);
    rope_write(&r, data, size);
    assert_int_equal(r.len, size);
    assert_int_equal(rope_flatten(&r, out), 0);
    assert_memory_equal(data, out, size);
    rope_clear(&r);
    assert_int_equal(chunks_used(), 0);
    free(data);
    free(out);
}

static void moving_empties_the_source_and_appends(void **state)
{
    struct rope a, b;
    rope_init(&a);
    rope_init(&b);
    rope_write(&a, "head ", 5);
    for (int i = 0; i < 10; i++) {
        rope_add_static(&b, SLICE_LIT("x"));
        rope_write(&b, "y", 1);
    }
    rope_move(&a, &b);
    assert_int_equal(b.len, 0);
    assert_rope(&a, "head xyxyxyxyxyxyxyxyxyxy");
    rope_write(&b, "again", 5);
    rope_move(&b, &a);
    assert_rope(&b, "againhead xyxyxyxyxyxyxyxyxyxy");
    rope_write(&b, "z", 1);
    assert_rope(&b, "againhead xyxyxyxyxyxyxyxyxyxyz");
    rope_clear(&a);
    rope_clear(&b);
    assert_int_equal(chunks_used(), 0);
}

static void moving_into_an_empty_rope_takes_the_pieces(void **state)
{
    struct rope a, b;
    rope_init(&a);
    rope_init(&b);
    for (int i = 0; i < 20; i++)
        rope_add_static(&b, SLICE_LIT("."));
    rope_move(&a, &b);
    assert_rope(&a, "....................");
    rope_write(&b, "b", 1);
    rope_move(&a, &b);
    assert_rope(&a, "....................b");
    rope_clear(&a);
    rope_clear(&b);
}

struct fake_file {
    struct rope_file f;
    int freed;
};

static int fake_read(struct rope_file *f, void *buf, size_t len, uint64_t pos)
{
    if (pos >= 1000)
        return ERR_IO;
    for (size_t i = 0; i < len; i++)
        ((char *)buf)[i] = (char)('a' + (pos + i) % 26);
    return 0;
}

static void fake_free(struct rope_file *f)
{
    ((struct fake_file *)f)->freed++;
}

static void file_ranges_are_counted_joined_and_read(void **state)
{
    struct fake_file file = {{1, -1, fake_read, fake_free}, 0};
    struct rope r;
    rope_init(&r);
    rope_write(&r, "<", 1);
    rope_add_file(&r, &file.f, 2, 3);
    rope_add_file(&r, &file.f, 5, 2);
    assert_int_equal(r.count, 2);
    rope_write(&r, ">", 1);
    assert_rope(&r, "<cdefg>");
    rope_file_unref(&file.f);
    assert_int_equal(file.freed, 0);
    rope_clear(&r);
    assert_int_equal(file.freed, 1);
}

static void a_files_error_comes_out_of_flatten(void **state)
{
    struct fake_file file = {{1, -1, fake_read, fake_free}, 0};
    struct rope r;
    uint8_t out[4];
    rope_init(&r);
    rope_add_file(&r, &file.f, 1000, 4);
    assert_int_equal(rope_flatten(&r, out), ERR_IO);
    rope_clear(&r);
}

static void random_ropes_match_flat_bytes(void **state)
{
    unsigned seed = 7;
    static uint8_t model[1 << 20], out[1 << 20];
    for (int round = 0; round < 50; round++) {
        struct rope r[2];
        size_t len = 0;
        rope_init(&r[0]);
        rope_init(&r[1]);
        for (int i = 0; i < 60; i++) {
            uint8_t buf[5000];
            size_t n = (size_t)rand_r(&seed) % sizeof buf;
            memset(buf, rand_r(&seed) & 0xff, n);
            struct rope *to = &r[0];
            if (rand_r(&seed) % 3 == 0)
                to = &r[1];
            if (to == &r[1] || rand_r(&seed) % 2)
                rope_write(to, buf, n);
            else
                memcpy(rope_reserve(to, n), buf, n);
            if (to == &r[1])
                rope_move(&r[0], &r[1]);
            memcpy(model + len, buf, n);
            len += n;
        }
        assert_int_equal(r[0].len, len);
        assert_int_equal(rope_flatten(&r[0], out), 0);
        assert_memory_equal(out, model, len);
        rope_clear(&r[0]);
        rope_clear(&r[1]);
        assert_int_equal(chunks_used(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_writes_share_one_piece),
        cmocka_unit_test(pieces_keep_their_order),
        cmocka_unit_test(a_long_write_is_spread_over_chunks),
        cmocka_unit_test(moving_empties_the_source_and_appends),
        cmocka_unit_test(moving_into_an_empty_rope_takes_the_pieces),
        cmocka_unit_test(file_ranges_are_counted_joined_and_read),
        cmocka_unit_test(a_files_error_comes_out_of_flatten),
        cmocka_unit_test(random_ropes_match_flat_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
