// SPDX-License-Identifier: MIT
// Tests bounded copies, edit distance, growing buffers and printable text. Also tests that error messages quote text
// from users without control characters.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/status.h"
#include "gswbench/text.h"
#include "success.h"

Test(text, copies_what_fits_and_says_when_it_cut)
{
    char to[4] = "zzz";
    cr_assert(text_copy(to, sizeof(to), "abc"));
    cr_assert_str_eq(to, "abc");
    cr_assert_not(text_copy(to, sizeof(to), "defg"));
    cr_assert_str_eq(to, "def");
    cr_assert(text_copy(to, sizeof(to), ""));
    cr_assert_str_eq(to, "");
}

Test(text, splits_an_assignment_from_its_comment)
{
    static const struct {
        const char *line, *name, *value;    // name is NULL if the line has no assignment
    } cases[] = {
        {"a = b", "a", "b"},
        {"\ta b=  c d ; e = f", "a b", "c d"},
        {"a: b = c\n", "a", "b = c"},
        {"a = b;c ;d", "a", "b;c"},
        {"a =", "a", ""},
        {"a =;b", "a", ";b"},
        {"a = ;b", "a", ""},
        {"; a = b", NULL, NULL},
        {"a ; = b", NULL, NULL},
        {" = b", NULL, NULL},
        {"a", NULL, NULL},
        {"", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[32], *name, *value;
        text_copy(line, sizeof(line), cases[i].line);
        cr_assert_eq(text_split_assignment(line, &name, &value), cases[i].name != NULL, "%s", cases[i].line);
        if (cases[i].name != NULL) {
            cr_assert_str_eq(name, cases[i].name);
            cr_assert_str_eq(value, cases[i].value);
        }
    }
}

Test(text, finds_whole_words_only)
{
    cr_assert(text_has_word("n_head n_heads  heads", "n_heads"));
    cr_assert(text_has_word("n_head n_heads  heads", "heads"));
    cr_assert_not(text_has_word("n_heads", "n_head"));
    cr_assert_not(text_has_word("n_heads heads", "ds heads"));
    cr_assert_not(text_has_word("n_heads  heads", ""));
}

Test(text, measures_insertions_deletions_and_substitutions)
{
    cr_assert_eq(text_distance("", ""), 0);
    cr_assert_eq(text_distance("", "abc"), 3);
    cr_assert_eq(text_distance("abc", ""), 3);
    cr_assert_eq(text_distance("kitten", "sitting"), 3);
    cr_assert_eq(text_distance("hidden", "hiden"), 1);
    cr_assert_eq(text_distance("flaw", "lawn"), 2);
    cr_assert_eq(text_distance("H100-SXM", "h100-sxm"), 0);
}

Test(text, caps_the_distance_at_64_characters)
{
    char a[200], b[200];
    memset(a, 'a', sizeof(a));
    memset(b, 'b', sizeof(b));
    a[199] = b[199] = '\0';
    cr_assert_eq(text_distance(a, b), 64);
}

Test(text, suggests_the_nearest_name_but_no_unlike_one)
{
    const char *const names[] = {"hidden", "heads", "head_dim", "tp", NULL};
    cr_assert_str_eq(text_closest("hiden", names), "hidden");
    cr_assert_str_eq(text_closest("head", names), "heads");
    cr_assert_str_eq(text_closest("headdim", names), "head_dim");
    cr_assert_str_eq(text_closest("pp", names), "tp");
    cr_assert_null(text_closest("x", names));
    cr_assert_str_eq(text_closest("h100", (const char *const[]){"h200", "h100-sxm", NULL}), "h100-sxm");
    cr_assert_str_eq(text_closest("H200-SXM", (const char *const[]){"h100-sxm", "h200-sxm", NULL}), "h200-sxm");
    cr_assert_str_eq(text_closest("HID", names), "hidden");
    cr_assert_null(text_closest("sequence", names));
    cr_assert_null(text_closest("", names));
}

Test(text, grows_a_buffer)
{
    struct text_buffer buffer = {0};
    for (int i = 0; i < 1000; i++) {
        text_append(&buffer, "%d,", i % 10);
    }
    cr_assert_eq(buffer.length, 2000);
    cr_assert_eq(strlen(buffer.text), 2000);
    cr_assert_str_eq(buffer.text + 1990, "5,6,7,8,9,");
    text_free(&buffer);
    cr_assert_null(buffer.text);
}

Test(text, replaces_what_a_terminal_would_obey_or_json_refuses)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"plain", "plain"},
        {"a\x1b[31mb\tc\n\x7f", "a?[31mb?c??"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xc3", "?"},
        {"\xc0\xaf", "??"},
        {"\xe0\x80\xaf", "???"},
        {"\xed\xa0\x80", "???"},
        {"\xf4\x90\x80\x80", "????"},
        {"\xc2\x9b", "?"},
        {"\xff\xfe", "??"},
        {"\xe2\x82", "??"},
        {"a\xe2\x80\xae"
         "b\xe2\x81\xa6"
         "c\xe2\x80\x8f",
         "a?b?c?"},    // these characters change the direction of text
        {"a\xd8\x9c"
         "b\xe2\x80\xa8"
         "c\xe2\x80\xa9",
         "a?b?c?"},    // these characters end a line
        {"\xe2\x80\x93\xe2\x80\xaf\xe2\x81\xa5\xd8\x9b",
         // These code points are next to the ones above, and are printed.
         "\xe2\x80\x93\xe2\x80\xaf\xe2\x81\xa5\xd8\x9b"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char to[32];
        text_printable(to, sizeof(to), cases[i].from);
        cr_assert_str_eq(to, cases[i].to, "case %zu: %s", i, to);
    }
}

Test(text, cuts_printable_text_between_characters)
{
    char to[4];
    text_printable(to, sizeof(to), "ab\xc3\xa9");
    cr_assert_str_eq(to, "ab");
    text_printable(to, sizeof(to), "a\xc3\xa9z");
    cr_assert_str_eq(to, "a\xc3\xa9");
}

Test(text, wraps_no_percent_from_its_number)
{
    struct text_stream text;
    text_stream_open(&text);
    cr_expect_eq(text_print_wrapped(text.file, "cv 60.3 %, drift +23.2 %", 0, 22, "  "), 2);
    text_stream_close(&text);
    cr_expect_str_eq(text.data, "cv 60.3 %, drift\n  +23.2 %\n");
    free(text.data);
}

Test(status, quotes_nothing_that_a_terminal_would_obey)
{
    EXPECT_ERROR(fail_as(EXIT_USAGE, "unknown command %s: try another", "\x1b[31mx\xe2\x80\xaey\ngswbench: forged"),
                 EXIT_USAGE, "unknown command ?[31mx?y?gswbench: forged: try another");
}

Test(status, joins_errors_by_lines)
{
    status errors = OK;
    status_add(&errors, fail_as(EXIT_LAUNCH, "one"));
    status_add(&errors, fail("two"));

    cr_expect_eq(errors.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(errors.text, "one\ntwo");
}
