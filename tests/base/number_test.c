// SPDX-License-Identifier: MIT
// Tests how numbers with units are parsed and printed.
#include "gswbench/number.h"

#include <criterion/criterion.h>
#include <inttypes.h>

Test(number, reads_integers_as_people_write_them)
{
    static const struct {
        const char *text;
        int64_t     value;
    } cases[] = {
        {"0", 0},
        {"8192", 8192},
        {"8_192", 8192},
        {"1_000_000", 1000000},
        {"8k", 8192},
        {"8K", 8192},
        {"8Ki", 8192},
        {"128Mi", 134217728},
        {"2M", 2000000},
        {"1Gi", 1073741824},
        {"3G", 3000000000},
        {"1Ti", 1099511627776},
        {"1T", 1000000000000},
        {"1e6", 1000000},
        {"1E+3", 1000},
        {"1.5e3", 1500},
        {"1.5k", 1536},
        {"1.5Ki", 1536},
        {"0.5Ki", 512},
        {"32.0", 32},
        {"007", 7},
        {"-5", -5},
        {"9223372036854775807", INT64_MAX},
        {"9e18", 9000000000000000000},
        {"1.2500e2", 125},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t value = -1;
        cr_assert(number_parse_integer(cases[i].text, &value), "%s", cases[i].text);
        cr_assert_eq(value, cases[i].value, "%s: %" PRId64, cases[i].text, value);
    }
}

Test(number, refuses_what_is_no_integer)
{
    static const char *const texts[] = {
        "",
        " ",
        "abc",
        "8 ",
        " 8",
        "8k ",
        "8ki",
        "8kB",
        "8Q",
        "0x10",
        "8__192",
        "_8",
        "8_",
        "1e",
        "1e-3",
        "1.5",
        "1e6.0",
        "1.25e1",
        "--5",
        "+5",
        "5-",
        "1e400",
        "0e99999999999",
        "1e19",
        "9223372036854775808",
        "8Pi",
        "10e18",
        "9007199254740993Ki",
        "1.",
        ".5",
        "1e6k",
        "inf",
        "nan",
        "1.0001k",
        "0.3Ki",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int64_t value = 77;
        cr_assert_not(number_parse_integer(texts[i], &value), "%s", texts[i]);
        cr_assert_eq(value, 77, "%s", texts[i]);
    }
}

Test(number, reads_finite_decimal_numbers)
{
    static const struct {
        const char *text;
        double      value;
    } cases[] = {
        {"1e-5", 1e-5}, {"3.35e12", 3.35e12}, {"0", 0},      {"-2.5", -2.5}, {"+1", 1}, {".5", 0.5},
        {"5.", 5},      {"1E3", 1e3},         {"1e-400", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double value = -1;
        cr_assert(number_parse_real(cases[i].text, &value), "%s", cases[i].text);
        cr_assert_eq(value, cases[i].value, "%s: %g", cases[i].text, value);
    }
}

Test(number, refuses_what_is_no_finite_number)
{
    static const char *const texts[] = {"",   " 1", "1 ",  "1e400", "-1e400", "inf", "nan", "0x1p3", ".",
                                        "e5", "1e", "1e+", "1..2",  "1,5",    "1k",  "-",   "1f",    "1_0"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        double value = 77;
        cr_assert_not(number_parse_real(texts[i], &value), "%s", texts[i]);
        cr_assert_eq(value, 77, "%s", texts[i]);
    }
}

Test(number, prints_bytes)
{
    static const struct {
        double      bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},           {512, "512 B"},           {1023, "1023 B"},
        {1024, "1.00 KiB"},   {1610612736, "1.50 GiB"}, {1048575, "1.00 MiB"},
        {1e15, "909.49 TiB"}, {1e21, "888178.42 PiB"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[32];
        cr_assert_str_eq(number_bytes(text, sizeof(text), cases[i].bytes), cases[i].text);
    }
}

Test(number, prints_counts_with_four_digits)
{
    static const struct {
        double      count;
        const char *text;
    } cases[] = {
        {0, "0"},
        {7, "7"},
        {999, "999"},
        {1000, "1.000 K"},
        {8030261248, "8.030 B"},
        {70553706496, "70.55 B"},
        {405853388800, "405.9 B"},
        {999949, "999.9 K"},
        {999950, "1.000 M"},
        {9.9999e9, "10.00 B"},
        {999.9e12, "999.9 T"},
        {1.820637e16, "1.821e+16"},
        {-12346, "-12.35 K"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[32];
        cr_assert_str_eq(number_count(text, sizeof(text), cases[i].count), cases[i].text, "%s: %s", text,
                         cases[i].text);
    }
}
