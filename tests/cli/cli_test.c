// SPDX-License-Identifier: MIT
// Tests the command line: help, flags and their errors, and the output of `check` and `plan`. Also tests malformed
// command lines and the messages for them.
#include <criterion/criterion.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/internal.h"
#include "command.h"
#include "folder.h"

Test(cli, lists_its_commands)
{
    expect_success("--help");
    expect_output("usage: gswbench [COMMAND] [FLAG]...");
    expect_output("\n\nCheck and predict, without GPUs:\n  check ");
    expect_output("\n  plan ");
    expect_output("\n  configs ");
    expect_output("\n  options ");
    static char help[sizeof(output)];
    memcpy(help, output, sizeof(output));
    expect_success("");
    cr_expect_str_eq(output, help);
}

Test(cli, generates_help_from_the_flags)
{
    expect_success("options --help");
    cr_expect_str_eq(output, "usage: gswbench options [SECTION] [FLAG]...\n\n"
                             "print every config option: default, allowed values, meaning\n\n"
                             "  [SECTION]              print these sections only\n"
                             "  --markdown             print Markdown, as in docs/options.md\n"
                             "  --man 1|5              print a manual page: 1: commands and flags, 5: options\n"
                             "  --completion bash|zsh  print a shell completion script\n"
                             "\nExample:\n    gswbench options train\n");
    expect_success("check --ranks 4 -h");
    expect_output("\nConfig:\n  --config NAME|FILE       installed config, file, or - for standard input; NAME\n"
                  "                           may also be given without --config\n");
    expect_output("  --set SECTION.KEY=VALUE  override an option of the config; repeatable\n");
}

static void expect_low_precision(const char *text, const char *command)
{
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL)) {
        cr_expect_leq(strcspn(line, "\n"), 80, "%s: %.*s", command, (int)strcspn(line, "\n"), line);
    }
}

Test(cli, prints_help_in_80_columns_with_an_example)
{
    for (int i = 0; cli_commands[i].name != NULL; i++) {
        const char *command = line_of("%s --help", cli_commands[i].name);
        const char *example = line_of("gswbench %s", cli_commands[i].name);
        expect_success(command);
        expect_low_precision(output, command);
        const char *shown = strstr(output, "\nExample:\n");
        cr_expect_not_null(shown);
        cr_expect_not_null(strstr(shown != NULL ? shown : "", example), "%s", command);
    }
    expect_success("--help");
    expect_low_precision(output, "--help");
    expect_success("options");
    expect_low_precision(output, "options");
}

Test(cli, reports_every_error_of_a_configuration)
{
    expect_error("check --config tiny-llama --ranks 1 --set hardware.memory_gb=0.001", 11,
                 "CANNOT RUN: gswbench needs 669.53 MiB, the device has 976.56 KiB");
    expect_error("check --config llama3.1-70b --ranks 48 --set model.kv_heads=7", 3, "2 configuration errors");
    cr_expect_not_null(strstr(errors.text, "llama3.1-70b.ini: [model] kv_heads = 7 does not divide heads = 64 (at 48 "
                                           "ranks; kv_heads: --set model.kv_heads=7; heads: "));
    cr_expect_not_null(strstr(errors.text, "llama3.1-70b.ini: [parallel] pp = 4 does not divide the remaining 6 of 48 "
                                           "ranks (allowed: 1, 2, 3, 6) (at 48 ranks; pp: "));
}

Test(cli, checks_what_the_device_cannot_do_where_it_is_named)
{
    expect_error("check --config tiny-llama --ranks 1 --set run.backend=cuda --set precision.compute=fp32", 3,
                 "1 configuration error");
    expect_error(
        "check --config tiny-llama --ranks 1 --set run.backend=cuda --set precision.compute=fp8 --set "
        "train.sequence=100 --set train.micro_batch=1",
        3,
        "[run] backend = cuda: qkv: an FP8 GEMM of 100 x 256 x 128, whose sizes must be multiples of 16: change "
        "train.sequence, the model or its layout, or use precision.compute = bf16 (backend: --set run.backend=cuda)");
    expect_error(
        "check --config tiny-llama --ranks 2 --set run.backend=cuda --set precision.compute=fp8 --set "
        "parallel.pp=2 --set model.family=gswbench --set 'model.pattern=2 x dense, 2 x experts' --set "
        "model.experts=4 --set model.top_k=2 --set model.expert_ffn=40",
        3,
        "[run] backend = cuda: fc2: an FP8 GEMM of 128 x 128 x 40, whose sizes must be multiples of 16: change "
        "train.sequence, the model or its layout, or use precision.compute = bf16 (backend: --set "
        "run.backend=cuda)");
    expect_success("check --config tiny-llama --ranks 1 --set run.backend=cuda --set precision.compute=fp8");
    expect_success("check --config tiny-llama --ranks 1 --set precision.compute=fp8 --set train.sequence=100");
}

// Expects one configuration error, with a message that contains this text.
static void expect_mistake(const char *command, const char *text)
{
    expect_error(command, 3, "1 configuration error");
    cr_expect_not_null(strstr(errors.text, text), "%s: %s", command, errors.text);
}

#define TINY    "check --config tiny-llama "
#define ON_CUDA TINY "--ranks 1 --set run.backend=cuda "
#define LATENT  "--set model.family=gswbench --set model.kv_heads=4 --set model.kv_rank=64 "

Test(cli, checks_widths_that_no_kernel_of_a_named_device_takes)
{
    static const char heads[] = ": attention of [run] backend = cuda supports up to 256 elements per head: use a "
                                "smaller value, or backend = host";
    static const struct {
        const char *widths, *said, *rest, *place;
    } wide[] = {
        {"--set model.head_dim=264", "[model] head_dim = 264", heads, "head_dim: --set model.head_dim=264"},
        {LATENT "--set model.rope_dim=1024", "[model] head_dim = 32 and rope_dim = 1024", heads,
         "rope_dim: --set model.rope_dim=1024"},
        {LATENT "--set model.rope_dim=16 --set model.value_dim=1024", "[model] value_dim = 1024", heads,
         "value_dim: --set model.value_dim=1024"},
        {LATENT "--set model.rope_dim=16 --set model.value_dim=30", "[model] value_dim = 30",
         " and head_dim + rope_dim = 48: attention of [run] backend = cuda needs both or neither to be multiples of 8: "
         "change one, or use backend = host",
         "value_dim: --set model.value_dim=30"},
        {"--set model.hidden=20488", "[model] hidden = 20488",
         ": norms of [run] backend = cuda support rows of up to 20480 elements: use a smaller value, or backend = host",
         "hidden: --set model.hidden=20488"},
        {LATENT "--set model.rope_dim=16 --set model.kv_rank=20488", "[model] kv_rank = 20488",
         ": norms of [run] backend = cuda support rows of up to 20480 elements: use a smaller value, or backend = host",
         "kv_rank: --set model.kv_rank=20488"},
    };
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
        const char *command = line_of(ON_CUDA "%s", wide[i].widths);
        expect_mistake(command, line_of("%s%s", wide[i].said, wide[i].rest));
        cr_expect_not_null(strstr(errors.text, wide[i].place), "%s", errors.text);
    }
    expect_success(ON_CUDA "--set model.head_dim=256 --set model.hidden=20480 --set model.layers=1");
    expect_success(ON_CUDA LATENT "--set model.rope_dim=224 --set model.value_dim=256");
    expect_success(ON_CUDA LATENT "--set model.rope_dim=12 --set model.value_dim=30");
    expect_success("check --config tiny-llama --ranks 1 --set model.head_dim=512 --set run.backend=host");
}

// Each command sets an option of a part, such as latent attention or experts, that no layer of the model has.
static const struct {
    const char *command, *text;
} mistakes[] = {
    {TINY "--ranks 1 --set train.recompute=selective --set train.recompute_save=latent",
     "[train] recompute_save has latent, but no layer of [model] pattern = dense has latent attention: remove latent, "
     "or set [model] kv_rank (at 1 rank; recompute_save: --set train.recompute_save=latent; pattern: default)"},
    {TINY "--set train.recompute=selective --set train.recompute_save=qkv,dispatch",
     "[train] recompute_save has dispatch, but no layer of [model] pattern = dense has experts: remove dispatch, or "
     "set "
     "[model] experts"},
    {TINY "--set train.recompute=modules --set train.recompute_modules=mlp,moe_act",
     "[train] recompute_modules has moe_act, but no layer of [model] pattern = dense has experts: remove "},
    {TINY "--ranks 1 --set model.family=gswbench --set model.window=5",
     "[model] window = 5, but pattern = dense has no window_attention: add it to pattern, or leave window out (at 1 "
     "rank; window: --set model.window=5; pattern: default)"},
};

Test(cli, checks_that_layers_have_the_parts_that_options_name)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        expect_mistake(mistakes[i].command, mistakes[i].text);
    }
}

#define LLAMA2 "check --config llama2-70b-fsdp --ranks 64 "

// Each row has a command, up to three texts that its output must contain, and a text that it must not contain.
static const struct {
    const char *command, *parts[3], *absent;
} shown[] = {
    {"--version", {"gswbench 0.1.0", "\nbuild "}, NULL},
    // LLAMA2 is a job with published figures. The figures are not shown if layers are left out or the step differs.
    {LLAMA2,
     {"parameters     68976648192\n", "  published    1.82e+15 ",
      "published      6.999 s/step: 74909 tokens/s, 154.51 days to 1T tokens\n"
      "               MFU 52.59 % (printed: 52.59 %)\n"},
     NULL},
    {LLAMA2 "--layers 2", {"llama2-70b-fsdp, a proxy, at 64 ranks"}, "6.999"},
    {LLAMA2 "--set model.hidden=4096", {NULL}, "6.999"},
    {LLAMA2 "--set run.seed=2", {"MFU 52.59 % (printed: 52.59 %)"}, NULL},
    {TINY "--set hardware.profile=h100-sxm", {" on rank 0 (maximum)\n"}, NULL},
    // Tensor parallelism across nodes gives a warning. One node, or nodes that hold whole tp groups, give none.
    {TINY "--ranks 4 --set parallel.tp=2 --set hardware.gpus_per_node=3",
     {"warning: [parallel] tp = 2 crosses nodes ([hardware] gpus_per_node = 3): every\n"
      "         layer waits for links between nodes\n"},
     NULL},
    {TINY "--ranks 2 --set parallel.tp=2 --set hardware.gpus_per_node=3", {NULL}, "warning"},
    {TINY "--ranks 8 --set parallel.tp=2 --set hardware.gpus_per_node=4", {NULL}, "warning"},
    {TINY "--json --ranks 2 --set parallel.tp=2 --set hardware.gpus_per_node=1",
     {"\"warning\": \"[parallel] tp = 2 crosses nodes ([hardware] gpus_per_node = 1):"},
     NULL},
    // Flags override the configuration, and the last of two equal flags counts.
    {"check --config=tiny-llama --set train.sequence=64 --set train.sequence=32 --ranks=2",
     {"8 sequences of 32 tokens; micro batch 2, accumulation 2\n"},
     NULL},
    {TINY "--ranks 1 --set train.recompute=selective --set train.recompute_save=latent --set model.rope_dim=16 " LATENT,
     {NULL},
     NULL},
    // The list of ops has the shapes of the ops that merge ring attention results and clear arrays.
    {"plan --config tiny-llama --ranks 2 --set parallel.cp=2 --set parallel.context=ring --ops",
     {"attention merge                 batch 1, sequence 32, heads 4, kv_heads 2, head_dim 32; update run,",
      "q gradient clear                elements 16384; write q gradient sum,"},
     NULL},
    {"plan --config tiny-llama --ranks 2 --set parallel.pp=2 --set parallel.dp=1 --set train.accumulation=3 --set "
     "train.global_batch=auto --schedule",
     {"  stage 0   embedding, layers 0 to 1\n  stage 1   layers 2 to 3, head\n",
      "   0  F0 F1 .  .  B0 =  F2 B1 =  .  B2 =  \n   1  .  F0 B0 =  F1 B1 =  F2 B2 =  .  .  \n",
      "12 slots, each stage is busy in 9: the bubble is 33.33 % of the busy slots\n"},
     NULL},
    {"plan --config llama3.1-405b --ranks 64 --schedule",
     {"  stage 0   embedding | layer 3 | layer 7 | layer 11 |",
      "  stage 3   layer 2 | layer 6 | layer 10 | layer 14 | layer 18 | layer 22 | layer 26 | head\n",
      "the bubble is 0.59 % of the busy slots\n"},
     NULL},
    {"plan --config llama3.1-405b --ranks 1024 --schedule", {"the bubble is 1.37 % of the busy slots\n"}, NULL},
    {"plan --config llama3.1-70b --ranks 64 --schedule", {"the bubble is 0.94 % of the busy slots\n"}, NULL},
    {"plan --config llama3.1-70b --ranks 64 --set precision.compute=fp8 --schedule",
     {"the bubble is 2.19 % of the busy slots\n"},
     NULL},
};

Test(cli, shows_what_a_job_is)
{
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        expect_success(shown[i].command);
        for (int part = 0; part < 3 && shown[i].parts[part] != NULL; part++) {
            expect_output(shown[i].parts[part]);
        }
        cr_expect(shown[i].absent == NULL || strstr(output, shown[i].absent) == NULL, "%s", shown[i].command);
    }
}

Test(cli, sums_up_what_is_proven_of_all_configurations)
{
    make_folder();
    cr_assert_eq(system(line_of("cd " GSWBENCH_SOURCE_DIR "/configs && cp -r models hardware tiny-*.ini %s", folder)),
                 0);
    configs = folder;
    expect_success("check --all");
    expect_output("tiny-geglu\n");
    expect_output("\n3 of 3 rows verified: 3 ranks, 3 plans built, 3 distinct with ");
    remove_folder();
}

Test(cli, prints_a_plan_with_all_its_ops)
{
    expect_success("plan --config tiny-geglu --ranks 2 --rank 1");
    expect_80_columns();
    expect_output("tiny-geglu, rank 1 of 2 (dp 2), bf16");
    expect_output("  all_reduce       dp ");
    int64_t shown_ops;
    cr_assert_eq(sscanf(strstr(output, "bf16: "), "bf16: %" SCNd64, &shown_ops), 1);

    expect_success("plan --config tiny-geglu --ranks 2 --rank 1 --ops");
    int64_t lines = 0;
    for (const char *end = output; (end = strchr(end, '\n')) != NULL; end++) {
        lines++;
    }
    cr_expect_eq(lines, shown_ops + 1);
}

Test(cli, prints_plans_of_groups_with_many_axes_in_80_columns)
{
    expect_success("plan --config tiny-llama --layers 4 --ranks 16 --set parallel.dp=2 --set parallel.tp=2 "
                   "--set parallel.cp=2 --set parallel.pp=2");
    expect_80_columns();
    expect_output("tp x cp x dp x pp\n                                    16 ");
}

Test(cli, prints_a_plan_that_programs_can_read)
{
    expect_success("plan --config tiny-geglu --json --layers 1 --set train.global_batch=2");
    json_t *plan = json_loads(output, 0, NULL);
    cr_assert_not_null(plan);
    cr_expect_str_eq(json_string_value(json_object_get(plan, "schema")), "gswbench.plan/2");
    json_t *ops = json_object_get(plan, "ops"), *tensors = json_object_get(plan, "tensors");
    json_t *gemm = json_array_get(ops, 2);
    cr_expect_str_eq(json_string_value(json_object_get(gemm, "role")), "qkv");
    cr_expect_eq(json_integer_value(json_object_get(json_object_get(gemm, "shape"), "n")), 384);
    json_t *read   = json_array_get(json_object_get(gemm, "operands"), 1);
    json_t *weight = json_array_get(tensors, (size_t)json_integer_value(json_object_get(read, "tensor")));
    cr_expect_str_eq(json_string_value(json_object_get(weight, "name")), "qkv weight");
    cr_expect_eq(json_integer_value(json_object_get(weight, "bytes")), 384 * 128 * 2);
    json_decref(plan);
}

Test(cli, refuses_to_plan_what_this_version_cannot_run)
{
    expect_error("plan --config tiny-llama --ranks 4 --set parallel.dp=2 --set parallel.fsdp=2 --set parallel.zero=1",
                 3,
                 "this version does not shard the optimizer over replicas of sharded weights ([parallel] zero = 1 with "
                 "fsdp): set zero = 0 (zero: --set parallel.zero=1; fsdp: --set parallel.fsdp=2)");
    expect_error("plan --config tiny-llama --rank 4 --ranks 2", 2, "--rank 4: the job has ranks 0 to 1");
}

Test(cli, marks_the_rows_that_this_version_cannot_run)
{
    expect_success("configs");
    expect_output("\ntiny-llama\n    any  bf16  none               4          -  one rank\n");
    expect_output("     64  bf16  h100-sxm          80    6.999 s  fsdp 64\n");
    expect_output("     64  fp8   h100-sxm          80    4.324 s  fsdp 64\n");
    cr_expect_null(strstr(output, "cannot run"), "%s", output);
    expect_success("configs --json");
    json_t *document = json_loads(output, 0, NULL), *list = json_object_get(document, "configs");
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(list, 0), "name")), "grok1-314b");
    json_decref(document);
}

Test(cli, prints_the_rows_of_named_configs_as_json)
{
    expect_success("configs --gpu h100-sxm --model grok1");
    expect_80_columns();
    expect_success("configs --json tiny-llama llama3.1-8b --precision fp8");
    json_t *document = json_loads(output, 0, NULL), *list = json_object_get(document, "configs");
    cr_assert_eq(json_array_size(list), 1, "%s", output);
    json_t *config = json_array_get(list, 0), *rows = json_object_get(config, "rows");
    cr_expect_str_eq(json_string_value(json_object_get(config, "name")), "llama3.1-8b");
    cr_expect_eq(json_integer_value(json_object_get(json_array_get(rows, 0), "ranks")), 8);
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(rows, 0), "precision")), "fp8");
    json_decref(document);
    expect_error("configs --json nonsense", 2, "nonsense: no such configuration: gswbench configs lists them");
}

Test(cli, checks_and_verifies_every_row_when_no_ranks_are_given)
{
    expect_success("check --config llama2-70b-fsdp");
    expect_output("\n     64  bf16  68.98 B        128 ");
    expect_output(" 37.31 %\n         fsdp 128 dp 16; verified: 6 plans built, 1 distinct\n");
    expect_output("\n12 of 12 rows verified: 8064 ranks, 932 plans built, 12 distinct with 38696 ops,\n"
                  "  3450 of them transfers\n");
    expect_80_columns();
}

Test(command_line, is_not_echoed_to_a_terminal_as_it_is)
{
    expect_error("\x1b[31mx\xe2\x80\xae", 2, "unknown command ?[31mx?: gswbench --help lists the commands");
    expect_error("run --\x1b]0;x", 2, "unknown flag --?]0;x: gswbench run --help lists the flags");
    expect_error("report \x9b", 2,
                 "?: No such file or directory: name the folder of a run, as in the last line of its output, or its "
                 "result.json");
}

Test(command_line, frees_the_batch_size_that_an_override_contradicts)
{
    expect_success("check --config llama3.1-8b --ranks 8 --set train.global_batch=256");
    expect_output("256 sequences of 8192 tokens; micro batch 1, accumulation 64\n");
    expect_error("check --config llama3.1-8b --ranks 8 --set train.global_batch=256 --set train.accumulation=3", 3,
                 "1 configuration error");
    cr_expect_not_null(strstr(errors.text, "[train] accumulation = 3 contradicts global_batch = 256: "), "%s",
                       errors.text);
}

Test(command_line, takes_fewer_steps_than_the_usual_warmup)
{
    expect_success("run --config tiny-llama --ranks 1 --steps 5 --layers 1 --backend null --out /tmp/gswbench-cli-run");
    expect_output("1 warm-up");
    expect_error("run --config tiny-llama --ranks 1 --steps 5 --warmup 5", 3, "1 configuration error");
}

Test(command_line, sweeps_whatever_layout_the_configuration_has)
{
    expect_error("check --config llama3.1-70b --ranks 8 --layers 2 --set train.global_batch=8", EXIT_CONFIG,
                 "1 configuration error");
    expect_success("predict --config llama3.1-70b --ranks 8 --layers 2 --set train.global_batch=8 --sweep --json");
    json_t *swept = json_loads(output, 0, NULL);
    cr_expect_eq(json_array_size(json_object_get(swept, "best")), 10);
    cr_expect(json_is_null(json_object_get(swept, "own")));
    json_decref(swept);
    expect_error(
        "predict --config llama3.1-70b --ranks 7 --layers 2 --set train.global_batch=8 --sweep", EXIT_CONFIG,
        "no layout of 7 ranks is valid for 8 sequences of 8192 tokens per step: change --ranks, or train.global_batch");
}
