// SPDX-License-Identifier: MIT
// Tests configuration errors. Checks the full text of every message, its line number, and exit code 3.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/job.h"
#include "line.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define MODEL         "[model]\nlayers = 2\nhidden = 64\nheads = 4\nkv_heads = 2\nhead_dim = 16\nffn = 128\nvocab = 256\n"
#define SPACES_40     "                                        "

struct bad {
    const char *text, *expected;
};

static const struct bad syntax[] = {
    {"[run]\nsteps\n", "E-CONFIG bad.ini:2: steps: expected key = value\n"},
    {"[run]\nsteps 7\n", "E-CONFIG bad.ini:2: steps 7: expected key = value\n"},
    {"[run]\n= 7\n", "E-CONFIG bad.ini:2: = 7: expected key = value\n"},
    {"[run]\nsteps ; = 7\n", "E-CONFIG bad.ini:2: steps ; = 7: expected key = value\n"},
    {"[run]\noutput = a\n  b\n", "E-CONFIG bad.ini:3: b: expected key = value\n"},
    {"\n\n[run\nsteps = 7\n", "E-CONFIG bad.ini:3: [run: expected [section]\n"},
    {"[run] steps = 7\n", "E-CONFIG bad.ini:1: [run] steps = 7: expected [section]\n"},
    {"[run;]\n", "E-CONFIG bad.ini:1: [run;]: expected [section]\n"},
    {"[]\n", "E-CONFIG bad.ini:1: []: unknown section (gswbench options lists all)\n"},
    {"# comment\nsteps = 7\nseed = 1\n", "E-CONFIG bad.ini:2: steps = 7: key before any [section]\n"},
    {"\xff\xfe[\0r\0u\0n\0]\0", "E-CONFIG bad.ini: is UTF-16: save it as UTF-8\n"},
    {"\xfe\xff[run]", "E-CONFIG bad.ini: is UTF-16: save it as UTF-8\n"},
    {"[run]\nsteps = 7\x1b[31m\n", "E-CONFIG bad.ini:2: [run] steps = 7?[31m: expected an integer in 1..1000000\n"},
    {"[run]\rsteps = 7\r", "E-CONFIG bad.ini:1: [run]?steps = 7: expected [section]\n"},
};

static const struct bad names[] = {
    {"[rum]\nsteps = 7\n", "E-CONFIG bad.ini:1: [rum]: unknown section (did you mean [run]?)\n"},
    {"[Train]\n", "E-CONFIG bad.ini:1: [Train]: unknown section (did you mean [train]?)\n"},
    {"[run ]\n", "E-CONFIG bad.ini:1: [run ]: unknown section (did you mean [run]?)\n"},
    {"[optimizer]\nlr = 1\n", "E-CONFIG bad.ini:1: [optimizer]: unknown section (gswbench options lists all)\n"},
    {"[run]\nstep = 7\n", "E-CONFIG bad.ini:2: [run] step = 7: unknown key (did you mean \"steps\"?)\n"},
    {"[run]\nSeed = 7\n", "E-CONFIG bad.ini:2: [run] Seed = 7: unknown key (did you mean \"seed\"?)\n"},
    {"[train]\nlerning_rate = 1\n",
     "E-CONFIG bad.ini:2: [train] lerning_rate = 1: unknown key (did you mean \"learning_rate\"?)\n"},
    {"[train]\nsteps = 7\n", "E-CONFIG bad.ini:2: [train] steps = 7: unknown key (gswbench options lists all)\n"},
    {"[hardware]\ngpus_per_nod = 8\n",
     "E-CONFIG bad.ini:2: [hardware] gpus_per_nod = 8: unknown key (did you mean \"gpus_per_node\"?)\n"},
    {"[run]\nseed = 1\n[train]\n[run]\nseed = 1\n", "E-CONFIG bad.ini:5: [run] seed = 1: already set in line 2\n"},
    {"[run]\nseed = 1\nseed = 2\nseed = 3\n", "E-CONFIG bad.ini:3: [run] seed = 2: already set in line 2\n"
                                              "E-CONFIG bad.ini:4: [run] seed = 3: already set in line 2\n"},
};

// Tests one option of each type with values that are refused in an INI file, such as a value with a comment after it.
// option_test and number_test have the other refused values.
static const struct bad values[] = {
    {"[run]\nsteps =\n", "E-CONFIG bad.ini:2: [run] steps = : expected an integer in 1..1000000\n"},
    {"[run]\nsteps = 7;few\n", "E-CONFIG bad.ini:2: [run] steps = 7;few: expected an integer in 1..1000000\n"},
    {"[run]\nsteps = 7 # few\n", "E-CONFIG bad.ini:2: [run] steps = 7 # few: expected an integer in 1..1000000\n"},
    {"[run]\nsteps = \"7\"\n", "E-CONFIG bad.ini:2: [run] steps = \"7\": expected an integer in 1..1000000\n"},
    {"[run]\nseed = 99999999999999999999\n",
     "E-CONFIG bad.ini:2: [run] seed = 99999999999999999999: expected an integer in 0..9007199254740991\n"},
    {"[train]\nsequence = 5Mi\n", "E-CONFIG bad.ini:2: [train] sequence = 5Mi: expected an integer in 1..4194304\n"},
    {"[train]\nglobal_batch = 0\n",
     "E-CONFIG bad.ini:2: [train] global_batch = 0: expected an integer in 1..1048576, or auto\n"},
    {"[train]\nbeta1 = 1\n", "E-CONFIG bad.ini:2: [train] beta1 = 1: expected a number in 0..0.999999\n"},
    {"[train]\nrecompute = some\n", "E-CONFIG bad.ini:2: [train] recompute = some: expected none, attention, full, "
                                    "block_every, selective or modules (did you mean \"none\"?)\n"},
    {"[train]\nrecompute_save = qkv, atention\n",
     "E-CONFIG bad.ini:2: [train] recompute_save = qkv, atention: expected none, or some of norm, qkv, attention, "
     "projection, fc1, activation, fc2, dispatch, latent\n"},
    {"[run]\ndata = random\n", "E-CONFIG bad.ini:2: [run] data = random: expected uniform or markov\n"},
    {"[run]\nattention = cudn\n",
     "E-CONFIG bad.ini:2: [run] attention = cudn: expected auto, cudnn or own (did you mean \"cudnn\"?)\n"},
    {"[run]\ncommunicator =\n", "E-CONFIG bad.ini:2: [run] communicator = : expected auto, local, mpi or nccl\n"},
    {"[run]\noutput =;b\n",
     "E-CONFIG bad.ini:2: [run] output = ;b: expected printable text of up to 4095 bytes, without \" ;\"\n"},
    {"[run]\noutput = \xe9t\xe9\n",
     "E-CONFIG bad.ini:2: [run] output = ?t?: expected printable text of up to 4095 bytes, without \" ;\"\n"},
    {"[model]\ntied = maybe\n", "E-CONFIG bad.ini:2: [model] tied = maybe: expected yes or no\n"},
    {"[parallel]\nfsdp = 0x10\n",
     "E-CONFIG bad.ini:2: [parallel] fsdp = 0x10: expected an integer in 1..65536, or auto\n"},
    {"[hardware]\npeak_bf16 = 989Q\n", "E-CONFIG bad.ini:2: [hardware] peak_bf16 = 989Q: expected a number in 0..1e+18 "
                                       "[ORIGIN SPREAD%]; units are read, as in "
                                       "80GB, 400Gb/s, 989T\n"},
};

#define EXPECTED_WHEN "expected [when ranks=N precision=NAME gpu=NAME variant=NAME], or some of these\n"
static const struct bad conditions[] = {
    {"[when]\n", "E-CONFIG bad.ini:1: [when]: " EXPECTED_WHEN},
    {"[when 512]\n", "E-CONFIG bad.ini:1: [when 512]: " EXPECTED_WHEN},
    {"[when rank=512]\n", "E-CONFIG bad.ini:1: [when rank=512]: " EXPECTED_WHEN},
    {"[when ranks=0]\n", "E-CONFIG bad.ini:1: [when ranks=0]: " EXPECTED_WHEN},
    {"[when ranks=]\n", "E-CONFIG bad.ini:1: [when ranks=]: " EXPECTED_WHEN},
    {"[when ranks = 8]\n", "E-CONFIG bad.ini:1: [when ranks = 8]: " EXPECTED_WHEN},
    {"[when ranks=8 ranks=16]\n", "E-CONFIG bad.ini:1: [when ranks=8 ranks=16]: " EXPECTED_WHEN},
    {"[when precision=fp8 precision=bf16]\n",
     "E-CONFIG bad.ini:1: [when precision=fp8 precision=bf16]: " EXPECTED_WHEN},
    {"[when precision=fp6]\n", "E-CONFIG bad.ini:1: [when precision=fp6]: " EXPECTED_WHEN},
    {"[when ranks=8, precision=fp8]\n", "E-CONFIG bad.ini:1: [when ranks=8, precision=fp8]: " EXPECTED_WHEN},
    {"[whenever ranks=8]\n", "E-CONFIG bad.ini:1: [whenever ranks=8]: unknown section (gswbench options lists all)\n"},
    {"[when ranks=8]\nsteps = 7\n",
     "E-CONFIG bad.ini:2: [when ranks=8] steps = 7: expected section.key (did you mean run.steps?)\n"},
    {"[when ranks=8]\nrum.steps = 7\n",
     "E-CONFIG bad.ini:2: [when ranks=8] rum.steps = 7: unknown section (did you mean \"run\"?)\n"},
    {"[when ranks=8]\nrun.stesp = 7\n",
     "E-CONFIG bad.ini:2: [when ranks=8] run.stesp = 7: unknown key (did you mean \"steps\"?)\n"},
    {"[when ranks=8]\nrun.steps = 0\n",
     "E-CONFIG bad.ini:2: [when ranks=8] run.steps = 0: expected an integer in 1..1000000\n"},
    {"[when ranks=8]\nrun.steps = 1\nrun.steps = 2\n",
     "E-CONFIG bad.ini:3: [when ranks=8] run.steps = 2: already set in line 2\n"},
    {"[when ranks=8]\nmodel.preset = a\n",
     "E-CONFIG bad.ini:2: [when ranks=8] model.preset = a: cannot be set in a [when ...] section\n"},
    {"[when ranks=8]\nprecision.compute = fp8\n",
     "E-CONFIG bad.ini:2: [when ranks=8] precision.compute = fp8: cannot be set in a [when ...] section\n"},
};

static const struct bad several[] = {
    {"steps = 1\n[run]\nsteps = x\nseed\n[modle]\nlayers = y\n[when ranks=4]\ntrain.clip = z\n",
     "E-CONFIG bad.ini:1: steps = 1: key before any [section]\n"
     "E-CONFIG bad.ini:3: [run] steps = x: expected an integer in 1..1000000\n"
     "E-CONFIG bad.ini:4: seed: expected key = value\n"
     "E-CONFIG bad.ini:5: [modle]: unknown section (did you mean [model]?)\n"
     "E-CONFIG bad.ini:8: [when ranks=4] train.clip = z: expected a number in 0..1e+09\n"},
};

static void expect(const char *got, const char *expected)
{
    cr_expect_str_eq(got, expected, "\nexpected %s     got %s", expected, got);
}

// Expects these errors for a configuration text. Returns the status, which states the number of errors.
static status check_request(const struct config_request *request, const char *text, size_t bytes, const char *expected)
{
    struct config      config;
    struct text_buffer errors = {0};
    status             result = config_read_text(&config, request, text, bytes, &errors);
    cr_expect_eq(result.exit_code, EXIT_CONFIG, "accepted: %s", text);
    expect(errors.length > 0 ? errors.text : "", expected);
    text_free(&errors);
    return result;
}

static status check_text(const char *text, size_t bytes, const char *expected)
{
    return check_request(&(struct config_request){.name = "bad.ini", .ranks = 16}, text, bytes, expected);
}

static void check_table(const struct bad *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_text(table[i].text, strlen(table[i].text), table[i].expected);
    }
}

Test(bad_config, explains_syntax_names_values_and_conditions)
{
    check_table(syntax, LENGTH(syntax));
    check_table(names, LENGTH(names));
    check_table(values, LENGTH(values));
    check_table(conditions, LENGTH(conditions));
}

Test(bad_config, reports_all_errors_at_once)
{
    check_table(several, LENGTH(several));
}

Test(bad_config, counts_its_errors)
{
    static const char a[] = "E-CONFIG bad.ini:1: [a]: unknown section (gswbench options lists all)\n",
                      b[] = "E-CONFIG bad.ini:1: [a]: unknown section (gswbench options lists all)\n"
                            "E-CONFIG bad.ini:2: [b]: unknown section (gswbench options lists all)\n";
    cr_assert_str_eq(check_text("[a]", 3, a).text, "1 configuration error");
    cr_assert_str_eq(check_text("[a]\n[b]", 7, b).text, "2 configuration errors");
}

Test(bad_config, shows_a_hundred_errors_and_counts_the_rest)
{
    char *text = calloc(1, 4001);
    for (int i = 0; i < 1000; i++) {
        strcat(text + 4 * i, "[a]\n");
    }
    struct config         config;
    struct text_buffer    errors  = {0};
    struct config_request request = {.name = "bad.ini"};
    status                result  = config_read_text(&config, &request, text, 4000, &errors);
    cr_assert_str_eq(result.text, "1000 configuration errors");
    cr_assert_str_eq(
        strstr(errors.text, "E-CONFIG bad.ini:100:"),
        "E-CONFIG bad.ini:100: [a]: unknown section (gswbench options lists all)\nE-CONFIG 900 more errors\n");
    text_free(&errors);
    free(text);
}

Test(bad_config, refuses_a_nul_byte)
{
    check_text("[run]\nsteps = 7\0\n", 17, "E-CONFIG bad.ini:2: a NUL byte: a config must be a text file\n");
    check_text("[\0r\0u\0n\0]\0", 10, "E-CONFIG bad.ini:1: a NUL byte: a config must be a text file\n");
}

Test(bad_config, refuses_overlong_values_and_section_names)
{
    static const struct bad overlong[] = {
        {"[run_and_a_name_that_is_longer_than_fifty_characters_]\nsteps = x\n",
         "E-CONFIG bad.ini:1: [run_and_a_name_that_is_longer_than_fifty_characters_]: unknown section (gswbench "
         "options lists all)\n"},
        {"[when ranks=8" SPACES_40 "precisions=fp8]\n",
         "E-CONFIG bad.ini:1: [when ranks=8" SPACES_40 "precisions=]: " EXPECTED_WHEN},
    };
    char line[4200] = "[run]\noutput = ";
    memset(line + strlen(line), 'x', 4096);
    check_text(line, strlen(line),
               "E-CONFIG bad.ini:2: [run] output = xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: "
               "expected printable text of up to 4095 bytes, without \" ;\"\n");
    check_table(overlong, LENGTH(overlong));
}

Test(bad_config, limits_the_number_of_conditions)
{
    struct text_buffer text = {0};
    for (int i = 0; i < 257; i++) {
        text_append(&text, "[when ranks=8]\n");
    }
    check_text(text.text, text.length, "E-CONFIG bad.ini:257: [when ranks=8]: more than 256 [when ...] sections\n");
    text_free(&text);
}

Test(bad_config, explains_overrides)
{
    static const struct bad overrides[] = {
        {"steps", "E-CONFIG --set steps: expected section.key=value\n"},
        {"steps=7", "E-CONFIG --set steps=7: expected section.key (did you mean run.steps?)\n"},
        {"rum.steps=7", "E-CONFIG --set rum.steps=7: unknown section (did you mean \"run\"?)\n"},
        {"run.stpes=7", "E-CONFIG --set run.stpes=7: unknown key (did you mean \"steps\"?)\n"},
        {"run.steps=", "E-CONFIG --set run.steps=: expected an integer in 1..1000000\n"},
        {"run.output=a\nb",
         "E-CONFIG --set run.output=a?b: expected printable text of up to 4095 bytes, without \" ;\"\n"},
        {"model.preset=nosuch", "E-CONFIG --set model.preset=nosuch: no such file in /nonexistent/models\n"},
    };
    const char *good = "[model]\npreset =\n";
    setenv("GSWBENCH_CONFIGS", "/nonexistent", 1);
    for (size_t i = 0; i < LENGTH(overrides); i++) {
        struct config_request request = {.name = "good.ini", .overrides = &overrides[i].text, .override_count = 1};
        check_request(&request, good, strlen(good), overrides[i].expected);
    }
}

// Each line is valid alone, but the values contradict each other on 16 ranks.
Test(bad_config, explains_contradictions)
{
    static const struct bad together[] = {
        {"[parallel]\nfsdp = 16\n[train]\nmicro_batch = 2\nglobal_batch = 100\n",
         "[train] global_batch = 100 is not a multiple of micro_batch x replicas = 2 x 16 = 32 (try 96 or 128)"},
        {"[parallel]\ndp = auto\n[train]\nglobal_batch = 8\n",
         "[train] global_batch = 8 is not a multiple of micro_batch x replicas = 1 x 16 = 16 (try 16)"},
        {"[parallel]\ndp = 4\nfsdp = 4\n[train]\nglobal_batch = 32\naccumulation = 4\n",
         "[train] accumulation = 4 contradicts global_batch = 32: micro_batch x replicas = 1 x 16 = 16 makes it 2"},
        {"[parallel]\nfsdp = 6\n", "[parallel] fsdp = 6 does not divide 16 ranks (allowed: 1, 2, 4, 8, 16)"},
        {"[parallel]\nfsdp = 4\n", "[parallel] the axes use 4 of 16 ranks (dp = 4, or auto, uses all)"},
        {"[parallel]\nfsdp = auto\ndp = auto\n", "[parallel] fsdp = auto and dp = auto: only one axis can be auto"},
        {"[parallel]\nfsdp = 4\ndp = 4\nep = 8\n", "[parallel] ep = 8 does not divide fsdp = 4"},
        {"[parallel]\ndp = 16\nep = 8\n", "[parallel] ep = 8 needs experts: set [model] experts, or leave ep out"},
        {"[parallel]\ndp = 16\n[train]\naccumulation = 2\noverlap_microbatches = yes\n",
         "[train] overlap_microbatches = yes needs experts, whose all-to-alls it overlaps, but [model] experts = 0: "
         "set overlap_microbatches = no"},
        {"experts = 4\ntop_k = 2\n[parallel]\ndp = 16\n[train]\naccumulation = 2\noverlap_microbatches = yes\n",
         "[train] overlap_microbatches = yes: with [parallel] ep = 1 there is no all-to-all to overlap (set ep > 1, or "
         "overlap_microbatches = no)"},
        {"experts = 4\ntop_k = 2\n[parallel]\ndp = 16\nep = 4\n[train]\noverlap_microbatches = yes\n",
         "[train] overlap_microbatches = yes needs two or more microbatches per step (raise global_batch or lower "
         "micro_batch)"},
        {"[parallel]\ntp = 8\ndp = 2\n", "[parallel] tp = 8 does not divide [model] heads = 4"},
        {"[parallel]\ncp = 16\n[train]\nsequence = 48\n",
         "[parallel] 2 x cp = 32 does not divide [train] sequence = 48"},
        {"[run]\nsteps = 10\nwarmup = 10\n[parallel]\ndp = auto\n",
         "[run] warmup = 10 leaves no measured step of steps = 10: use at most 9 (--set run.warmup=2)"},
        {"[parallel]\ndp = 16\n[trace]\ntimeline = 0,16\n",
         "[trace] timeline = 0,16: expected all, or ranks from 0 to 15, such as 0,8-15"},
        {"[parallel]\ndp = 16\n[trace]\ntimeline = 1 2\n",
         "[trace] timeline = 1 2: expected all, or ranks from 0 to 15, such as 0,8-15"},
        {"[parallel]\ndp = 16\n[trace]\ntimeline = all\nsteps = 0\n",
         "[trace] timeline = all needs a traced step, but steps = 0: set steps to 1 or more"},
        {"[parallel]\ndp = 16\n[profile]\nstart_step = 7\nstop_step = 6\n",
         "[profile] stop_step = 6 is before start_step = 7: set stop_step to start_step or later"},
        {"[parallel]\ndp = auto\n[profile]\nstop_step = 6\n",
         "[profile] stop_step = 6 has no effect without start_step: set start_step"},
        {"[parallel]\ndp = 16\n[run]\nsteps = 8\n[profile]\nstart_step = 7\nstop_step = 8\n",
         "[profile] stop_step = 8: [run] steps = 8 has steps 0 to 7: use one of these, or raise steps"},
        {"[parallel]\ndp = 16\n[profile]\nstart_step = 50\n",
         "[profile] start_step = 50: [run] steps = 50 has steps 0 to 49: use one of these, or raise steps"},
        {"[parallel]\ndp = 16\n[profile]\nstart_step = 7\nranks = 3,16\n",
         "[profile] ranks = 3,16: expected all, or ranks from 0 to 15, such as 0,8-15"},
        {"[parallel]\ndp = 16\n[profile]\nstart_step = 7\nranks =\n",
         "[profile] ranks is empty: use a list such as 0,8, or all"},
        {"[run]\noutput =\n[parallel]\ndp = auto\n",
         "[run] output is empty: set it to a folder, or to . for the current folder"},
    };
    for (size_t i = 0; i < LENGTH(together); i++) {
        const char           *text = line_of(MODEL "%s", together[i].text);
        struct config         config;
        struct text_buffer    errors  = {0};
        struct config_request request = {.name = "bad.ini", .ranks = 16};
        status                result  = config_read_text(&config, &request, text, strlen(text), &errors);
        cr_assert_str_empty(result.text, "%s", errors.text);
        struct plan_request resolved;
        result = job_check(&resolved, &config);
        cr_expect_eq(result.exit_code, EXIT_CONFIG);
        expect(result.text, together[i].expected);
    }
}
