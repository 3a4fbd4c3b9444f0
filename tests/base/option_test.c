// SPDX-License-Identifier: MIT
// Tests options of every type: accepted values, refused values and how values are printed.
#include "gswbench/option.h"
#include "line.h"

#include <criterion/criterion.h>
#include <string.h>

struct sample_config {
    int64_t         whole, share, pause, tied, kind, saved;
    double          rate, width;
    char            name[8], word[8];
    struct quantity share_reached;
};

// clang-format off
#define UNITS "; units are read, as in 80GB, 400Gb/s, 989T"

static const char *const kinds[] = {"none", "half", "full", NULL};
static const char *const parts[] = {"norm", "qkv", "fc1", NULL};

static const struct option sample_options[] = {
    INTEGER_OPTION(sample_config, whole, "50", 1, 65536, "a number"),
    AUTO_OPTION   (sample_config, share, "auto", 1, 64, "a share"),
    BOOLEAN_OPTION(sample_config, tied, "no", "a switch"),
    CHOICE_OPTION (sample_config, kind, "half", kinds, "a kind"),
    SET_OPTION    (sample_config, saved, "qkv, fc1", parts, "a set"),
    REAL_OPTION   (sample_config, rate, "3e-4", 0, 1, "a rate"),
    PERCENT_OPTION(sample_config, width, "0.5%", 0, 50, "a width"),
    TEXT_OPTION   (sample_config, name, "results", "a name"),
    NAME_OPTION   (sample_config, word, "none", kinds, "a word"),
    QUANTITY_OPTION(sample_config, share_reached, "0.72 prior 5%", 0, 1, "a share"),
    AUTO_OPTION   (sample_config, pause, "0", 0, 64, "a number that may be none"),
    END_OPTIONS
};
// clang-format on

static struct sample_config defaults(void)
{
    struct sample_config sample;
    memset(&sample, 0x5a, sizeof(sample));
    option_set_defaults(sample_options, &sample);
    return sample;
}

Test(option, parses_its_defaults)
{
    struct sample_config sample = defaults();
    cr_assert_eq(sample.whole, 50);
    cr_assert_eq(sample.share, 0);
    cr_assert_eq(sample.pause, 0);
    cr_assert_eq(sample.tied, 0);
    cr_assert_eq(sample.kind, 1);
    cr_assert_eq(sample.saved, 6);
    cr_assert_eq(sample.rate, 3e-4);
    cr_assert_eq(sample.width, 0.5);
    cr_assert_str_eq(sample.name, "results");
    cr_assert_str_eq(sample.word, "none");
    cr_assert_eq(sample.share_reached.value, 0.72);
    cr_assert_eq(sample.share_reached.spread_percent, 5.0);
    cr_assert_eq(sample.share_reached.origin, QUANTITY_PRIOR);
}

Test(option, prints_what_it_reads)
{
    static const struct {
        const char *key, *text, *printed;
    } cases[] = {
        {"whole", "8_192", "8192"},
        {"whole", "64Ki", "65536"},
        {"whole", "1", "1"},
        {"share", "auto", "auto"},
        {"pause", "auto", "auto"},
        {"pause", "0", "0"},
        {"share", "64", "64"},
        {"tied", "on", "yes"},
        {"tied", "true", "yes"},
        {"tied", "1", "yes"},
        {"tied", "off", "no"},
        {"tied", "false", "no"},
        {"tied", "0", "no"},
        {"kind", "full", "full"},
        {"saved", "none", "none"},
        {"saved", "fc1,norm", "norm, fc1"},
        {"saved", "qkv ,qkv", "qkv"},
        {"saved", "norm, qkv, fc1", "norm, qkv, fc1"},
        {"rate", "1e-5", "1e-05"},
        {"rate", "0.1", "0.1"},
        {"rate", "0.30000000000000004", "0.30000000000000004"},
        {"rate", "1", "1"},
        {"width", "0.7%", "0.7%"},
        {"width", "1e-3%", "0.001%"},
        {"share_reached", "0.5", "0.5"},
        {"share_reached", "0.5 given", "0.5"},
        {"share_reached", "1 spec", "1 spec"},
        {"share_reached", " 0.30000000000000004  measured 0.7% ", "0.30000000000000004 measured 0.7%"},
        {"word", "half", "half"},
        {"name", "", ""},
        {"name", "a b", "a b"},
        {"name", "1234567", "1234567"},
        {"name", "\xc3\xa9=#", "\xc3\xa9=#"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sample_config sample = defaults(), again = defaults();
        const struct option *option = option_find(sample_options, cases[i].key);
        status               result = option_set(option, &sample, cases[i].text);
        cr_assert_str_empty(result.text, "%s = %s", cases[i].key, result.text);

        char printed[64];
        option_print(option, &sample, printed, sizeof(printed));
        cr_assert_str_eq(printed, cases[i].printed, "%s = %s: %s", cases[i].key, cases[i].text, printed);
        option_set(option, &again, printed);
        cr_assert_arr_eq((const char *)&again, (const char *)&sample, sizeof(sample));
    }
}

Test(option, names_what_it_refuses_and_what_it_expects)
{
    static const struct {
        const char *key, *text, *error;
    } cases[] = {
        {"whole", "0x10", "0x10: expected an integer in 1..65536"},
        {"whole", "0", "0: expected an integer in 1..65536"},
        {"whole", "65537", "65537: expected an integer in 1..65536"},
        {"whole", "-1", "-1: expected an integer in 1..65536"},
        {"whole", "", ": expected an integer in 1..65536"},
        {"whole", "8 Ki", "8 Ki: expected an integer in 1..65536"},
        {"whole", "auto", "auto: expected an integer in 1..65536"},
        {"share", "0", "0: expected an integer in 1..64, or auto"},
        {"share", "Auto", "Auto: expected an integer in 1..64, or auto"},
        {"tied", "maybe", "maybe: expected yes or no"},
        {"tied", "", ": expected yes or no"},
        {"kind", "bf61", "bf61: expected none, half or full"},
        {"kind", "hal", "hal: expected none, half or full (did you mean \"half\"?)"},
        {"saved", "qkv,", "qkv,: expected none, or some of norm, qkv, fc1"},
        {"saved", "qkv,,fc1", "qkv,,fc1: expected none, or some of norm, qkv, fc1"},
        {"saved", "", ": expected none, or some of norm, qkv, fc1"},
        {"saved", "qkv fc1", "qkv fc1: expected none, or some of norm, qkv, fc1"},
        {"saved", "none, qkv", "none, qkv: expected none, or some of norm, qkv, fc1"},
        {"rate", "1.5", "1.5: expected a number in 0..1"},
        {"rate", "nan", "nan: expected a number in 0..1"},
        {"rate", "inf", "inf: expected a number in 0..1"},
        {"rate", "0.1x", "0.1x: expected a number in 0..1"},
        {"rate", "-1e-300", "-1e-300: expected a number in 0..1"},
        {"width", "0.5", "0.5: expected a share in 0%..50%, such as 0.5%"},
        {"width", "51%", "51%: expected a share in 0%..50%, such as 0.5%"},
        {"width", "%", "%: expected a share in 0%..50%, such as 0.5%"},
        {"width", "", ": expected a share in 0%..50%, such as 0.5%"},
        {"width", "1%%", "1%%: expected a share in 0%..50%, such as 0.5%"},
        {"share_reached", "1.5 prior", "1.5 prior: expected a number in 0..1 [ORIGIN SPREAD%]" UNITS},
        {"share_reached", "0.5 guess", "0.5 guess: expected a number in 0..1 [ORIGIN SPREAD%]" UNITS},
        {"share_reached", "0.5 5%", "0.5 5%: expected a number in 0..1 [ORIGIN SPREAD%]" UNITS},
        {"share_reached", "0.5 prior 5", "0.5 prior 5: expected a number in 0..1 [ORIGIN SPREAD%]" UNITS},
        {"share_reached", "0.5 prior -5%", "0.5 prior -5%: expected a number in 0..1 [ORIGIN SPREAD%]" UNITS},
        {"share_reached", "0.5 prior 5% more", "0.5 prior 5% more: expected a number in 0..1 [ORIGIN SPREAD%]" UNITS},
        {"share_reached", "", ": expected a number in 0..1 [ORIGIN SPREAD%]" UNITS},
        {"name", "12345678", "12345678: expected printable text of up to 7 bytes, without \" ;\""},
        {"name", ";ab", ";ab: expected printable text of up to 7 bytes, without \" ;\""},
        {"name", "a ;b", "a ;b: expected printable text of up to 7 bytes, without \" ;\""},
        {"name", " a", " a: expected printable text of up to 7 bytes, without \" ;\""},
        {"name", "a ", "a : expected printable text of up to 7 bytes, without \" ;\""},
        {"name", "a\nb", "a?b: expected printable text of up to 7 bytes, without \" ;\""},
        {"word", "fulll", "fulll: expected none, half or full (did you mean \"full\"?)"},
        {"word", "", ": expected none, half or full"},
        {"name", "\xff", "?: expected printable text of up to 7 bytes, without \" ;\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sample_config sample = defaults(), before = defaults();
        status               result = option_set(option_find(sample_options, cases[i].key), &sample, cases[i].text);
        cr_assert_str_eq(result.text, cases[i].error, "%s: %s", cases[i].key, result.text);
        cr_assert_eq(result.exit_code, EXIT_CONFIG);
        cr_assert_arr_eq((const char *)&sample, (const char *)&before, sizeof(sample), "%s: changed", cases[i].key);
    }
}

Test(option, finds_keys_and_suggests_near_ones)
{
    cr_assert_eq(option_find(sample_options, "rate"), &sample_options[5]);
    cr_assert_null(option_find(sample_options, "Rate"));
    cr_assert_null(option_find(sample_options, ""));
    cr_assert_str_eq(option_suggest(sample_options, "rtae"), "rate");
    cr_assert_str_eq(option_suggest(sample_options, "wole"), "whole");
    cr_assert_null(option_suggest(sample_options, "sequence"));
}

// A synonym gets a hint only if it means the same as an accepted word. half is fp16, which is not bf16, and SHARP is a
// feature of networks, not a communicator: neither gets a hint.
Test(option, suggests_the_name_that_a_synonym_means)
{
    static const char *const words[] = {"fp32", "bf16", "fp8", "cuda", "host", "local", "nccl", NULL};
    static const struct {
        const char *text, *hint;
    } cases[]                  = {{"BFloat16", " (did you mean \"bf16\"?)"},
                                  {"e4m3", " (did you mean \"fp8\"?)"},
                                  {"gpu", " (did you mean \"cuda\"?)"},
                                  {"threads", " (did you mean \"local\"?)"},
                                  {"half", ""},
                                  {"sharp", ""}};
    const struct option option = {"kind", OPTION_CHOICE, 0, sizeof(int64_t), "fp32", 0, 0, words, "a kind"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t field  = 0;
        status  result = option_set(&option, &field, cases[i].text);
        cr_expect_str_eq(result.text, line_of("%s: expected fp32, bf16, fp8, cuda, host, local or nccl%s",
                                              cases[i].text, cases[i].hint));
    }
}
