// SPDX-License-Identifier: Apache-2.0
// Properties text, read and written as Java does.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "core/base/properties.h"

static struct properties p;

static int setup(void **state)
{
    properties_init(&p);
    return 0;
}
static int teardown(void **state)
{
    properties_fini(&p);
    return 0;
}
static void parse(const char *text)
{
    struct errmsg msg;
    assert_int_equal(properties_parse(&p, slice_str(text), &msg), 0);
}
static void assert_value(const char *key, const char *value)
{
    struct slice v = properties_get(&p, key);
    assert_non_null(v.data);
    assert_string_equal((const char *)v.data, value);
    assert_int_equal(v.len, strlen(value));
}

static void all_three_separators_work(void **state)
{
    parse("a=1\nb:2\nc 3\nd = 4\ne : 5\n  f\t6\ng\n=x\n");
    assert_value("a", "1");
    assert_value("b", "2");
    assert_value("c", "3");
    assert_value("d", "4");
    assert_value("e", "5");
    assert_value("f", "6");
    assert_value("g", "");
    assert_value("", "x");
    assert_int_equal(p.count, 8);
}
static void only_one_separator_is_taken(void **state)
{
    parse("a==b\nc = : d\ne  f = g\n");
    assert_value("a", "=b");
    assert_value("c", ": d");
    assert_value("e", "f = g");
}
static void comments_and_blank_lines_are_skipped(void **state)
{
    parse("# one=1\n! two=2\n\n   \n  # three=3 \\\\\nfour=4 # not a comment\n");
    assert_int_equal(p.count, 1);
    assert_value("four", "4 # not a comment");
}
static void a_comment_does_not_continue(void **state)
{
    parse("# comment \\\na=1\n");
    assert_value("a", "1");
}
static void a_backslash_joins_lines_and_drops_leading_white_space(void **state)
{
    parse("a=one,\\\n     two,\\\r\n\tthree\nb=x\\\\\nc=y\\");
    assert_value("a", "one,two,three");
    assert_value("b", "x\\");
    assert_value("c", "y");
}
static void a_continued_line_may_look_like_a_comment(void **state)
{
    parse("a=1\\\n#2\n");
    assert_value("a", "1#2");
}
static void escapes_are_undone(void **state)
{
    parse("a\\ b\\=c=\\t\\n\\r\\f\\q\\\\\n");
    assert_value("a b=c", "\t\n\r\fq\\");
}
static void unicode_escapes_become_utf8(void **state)
{
    parse("a=\\u00e4\\u20AC\\uD83D\\uDE00\nb=\\uD83Dx\n");
    assert_value("a", "\u00e4\u20ac\U0001F600");
    assert_value("b", "\ufffdx");
}
static void bytes_are_latin_1(void **state)
{
    parse("a=\xe4\n");
    assert_value("a", "\u00e4");
}
static void a_malformed_unicode_escape_is_an_error_with_its_line(void **state)
{
    struct errmsg msg;
    assert_int_equal(properties_parse(&p, SLICE_LIT("a=1\nb=\\u12G4\n"), &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "line 2"));
}
static void all_line_ends_work_and_lines_are_counted(void **state)
{
    parse("a=1\r\nb=2\rc=3\n\nd=4");
    assert_value("a", "1");
    assert_value("b", "2");
    assert_value("c", "3");
    assert_int_equal(properties_find(&p, SLICE_LIT("d"))->line, 5);
}
static void a_byte_order_mark_is_skipped(void **state)
{
    parse("\xef\xbb\xbf"
          "a=1\n");
    assert_value("a", "1");
}
static void the_last_of_equal_keys_wins_and_remembers_the_first(void **state)
{
    parse("a=1\nb=2\na=3\n");
    assert_value("a", "3");
    assert_int_equal(p.count, 2);
    assert_int_equal(p.items[0].line, 3);
    assert_int_equal(p.items[0].replaced_line, 1);
}
static void space_at_the_end_of_a_value_stays(void **state)
{
    parse("a=1  \nb=2\t\r\n");
    assert_value("a", "1  ");
    assert_value("b", "2\t");
}
static void an_absent_key_is_null(void **state)
{
    assert_null(properties_get(&p, "x").data);
}
static void what_is_written_is_read_back(void **state)
{
    struct properties q;
    struct strbuf out;
    properties_init(&q);
    strbuf_init(&out);
    properties_set(&q, SLICE_LIT("a key:=#!"), SLICE_LIT("  two  spaces \t\n\\ \u20ac\U0001F600"));
    properties_set(&q, SLICE_LIT("plain"), SLICE_LIT("host1:9092"));
    properties_set(&q, SLICE_LIT("empty"), SLICE_LIT(""));
    properties_write(&out, &q);
    assert_non_null(strstr(strbuf_text(&out), "plain=host1\\:9092\n"));
    parse(strbuf_text(&out));
    assert_int_equal(p.count, 3);
    for (size_t i = 0; i < q.count; i++) {
        assert_true(slice_equal(p.items[i].key, q.items[i].key));
        assert_true(slice_equal(p.items[i].value, q.items[i].value));
    }
    strbuf_fini(&out);
    properties_fini(&q);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(all_three_separators_work),
        T(only_one_separator_is_taken),
        T(comments_and_blank_lines_are_skipped),
        T(a_comment_does_not_continue),
        T(a_backslash_joins_lines_and_drops_leading_white_space),
        T(a_continued_line_may_look_like_a_comment),
        T(escapes_are_undone),
        T(unicode_escapes_become_utf8),
        T(bytes_are_latin_1),
        T(a_malformed_unicode_escape_is_an_error_with_its_line),
        T(all_line_ends_work_and_lines_are_counted),
        T(a_byte_order_mark_is_skipped),
        T(the_last_of_equal_keys_wins_and_remembers_the_first),
        T(space_at_the_end_of_a_value_stays),
        T(an_absent_key_is_null),
        T(what_is_written_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
