// SPDX-License-Identifier: MIT
// Runs a small model completely, and tests the breakdown of the step time, expert loads, notes, and emulated jobs.
#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

#include "gswbench/waterfall.h"
#include "whole_run.h"

TestSuite(run_explained, .init = make_folder, .fini = remove_folder, .timeout = 100);

static double part_of(json_t *document, const char *part)
{
    const char *path = line_of("waterfall.parts_s.%s", part);
    return real_at(document, path);
}

Test(run_explained, explains_a_step_that_is_not_measured)
{
    json_t *traced = run_json(TINY " --ranks 2 --set parallel.fsdp=2 --set parallel.dp=1", EXIT_VALID);
    json_t *plain =
        run_json(TINY " --ranks 2 --set parallel.fsdp=2 --set parallel.dp=1 --set trace.steps=0", EXIT_VALID);

    json_t     *waterfall = json_object_get(traced, "waterfall"), *seconds;
    double      sum       = 0;
    const char *part;
    json_object_foreach(json_object_get(waterfall, "parts_s"), part, seconds)
    {
        sum += json_real_value(seconds);
    }
    cr_expect_str_eq(text_of(waterfall, "source"), "measured");
    cr_expect_float_eq(sum, real_at(traced, "waterfall.step_s"), 1e-12);
    cr_expect(part_of(traced, "gemm") > 0 && part_of(traced, "attention") > 0 && part_of(traced, "optimizer") > 0);
    cr_expect(part_of(traced, "exposed_fsdp") > 0 && part_of(traced, "exposed_tp") == 0);
    cr_expect_eq(json_array_size(json_object_get(traced, "steps")), 4);
    json_t *communication = json_array_get(json_object_get(traced, "transfer_times"), 0);
    cr_expect_str_eq(text_of(communication, "axes"), "fsdp");
    cr_expect_gt(real_at(communication, "alone_s"), 0);
    cr_expect_eq(json_array_size(json_object_get(plain, "transfer_times")), 0);
    cr_expect_str_empty(text_of(json_object_get(plain, "waterfall"), "source"));
    for (size_t step = 0; step < 4; step++) {
        cr_expect(step_real(traced, step, "loss") == step_real(plain, step, "loss"));
    }
    json_decref(traced);
    json_decref(plain);
}

// There are two stages of one rank each. Rank 0 receives the trace of the second stage.
Test(run_explained, knows_what_each_stage_does_when)
{
    json_t *document  = run_json("run --config tiny-llama --layers 2 --steps 3 --warmup 1 --backend host --ranks 2 "
                                  "--set parallel.pp=2 --set train.micro_batch=1",
                                 EXIT_VALID);
    json_t *waterfall = json_object_get(document, "waterfall"), *turn;
    json_t *course    = json_object_get(json_object_get(document, "memory"), "course");
    double  step = real_at(document, "waterfall.step_s"), end[2] = {0.0};
    int     forward[2] = {0}, backward[2] = {0};
    size_t  index;
    json_array_foreach(json_object_get(waterfall, "turns"), index, turn)
    {
        json_int_t stage = number_at(turn, "stage");
        cr_assert_lt(stage, 2);
        forward[stage] += strcmp(text_of(turn, "phase"), "forward") == 0;
        backward[stage] += strcmp(text_of(turn, "phase"), "backward") == 0;
        cr_expect_geq(real_at(turn, "begin_s"), end[stage]);
        end[stage] = real_at(turn, "end_s");
        cr_expect(end[stage] > 0 && end[stage] < 1.5 * step);
    }
    for (int stage = 0; stage < 2; stage++) {    // 8 microbatches of one sequence
        cr_expect_eq(forward[stage], 8);
        cr_expect_eq(backward[stage], 8);
    }
    cr_expect_eq(json_array_size(course), 128);
    json_decref(document);
}

// The prediction has the same plan for another device, so the same parts of its waterfall are not zero.
Test(run_explained, spends_its_time_on_what_a_prediction_says)
{
#define LAYOUT                                                                                                         \
    "--config tiny-llama --layers 1 --ranks 4 --set parallel.fsdp=2 --set parallel.tp=2 --set parallel.dp=1 "          \
    "--set train.recompute=full"
    json_t *measured = run_json("run " LAYOUT " --steps 2 --warmup 1 --backend host", EXIT_VALID);
    cr_assert_eq(run("predict " LAYOUT " --set hardware.profile=h100-sxm --no-range --json").exit_code, 0);
    json_t *predicted = json_loads(output, 0, NULL);
    json_t *row       = json_array_get(json_object_get(predicted, "rows"), 0);
    json_t *parts     = json_object_get(json_object_get(row, "predicted"), "parts_s");
    for (int part = WATERFALL_GEMM; part <= WATERFALL_EXPOSED_PP; part++) {
        const char *name    = waterfall_part_names[part];
        double      seconds = json_real_value(json_object_get(parts, name));
        cr_expect_eq(seconds != 0.0, part_of(measured, name) != 0.0, "%s: %g predicted, %g measured", name, seconds,
                     part_of(measured, name));
    }
    cr_expect(part_of(measured, "recompute") > 0 && part_of(measured, "exposed_tp") > 0);
    json_decref(predicted);
    json_decref(measured);
}

Test(run_explained, notes_tensor_parallelism_across_nodes)
{
    status result = run_here(TINY " --ranks 2 --set parallel.tp=2 --set hardware.gpus_per_node=1 --verbose");
    cr_assert_eq(result.exit_code, EXIT_VALID, "%s", result.text);
    expect_output("\nnote: tp-across-nodes: [parallel] tp = 2 crosses nodes ([hardware] gpus_per_node = 1): every "
                  "layer waits for links between nodes\n");
}

#define MIXTURE                                                                                                        \
    TINY " --set model.family=mixtral --set model.experts=4 --set model.top_k=2 --set model.auxiliary_loss=0.01"

static double load_real(json_t *document, const char *path)
{
    return real_at(json_array_get(json_object_get(document, "expert_load"), 0), path);
}

// Two ranks run two microbatches each. Balanced routing assigns the same number of tokens to each expert.
Test(run_explained, reports_a_balanced_load_as_fair)
{
    json_t *document = run_json(MIXTURE " --ranks 2 --set train.routing=balanced", EXIT_VALID);

    cr_assert(json_array_size(json_object_get(document, "expert_load")) == 1);
    cr_expect(load_real(document, "last.busiest") == 1 && load_real(document, "mean.busiest") == 1);
    cr_expect(load_real(document, "last.idlest") == 1 && load_real(document, "mean.idlest") == 1);
    cr_expect(load_real(document, "last.dropped") == 0 && load_real(document, "mean.dropped") == 0);
    cr_expect_float_eq(load_real(document, "last.auxiliary_loss"), 0.01, 1e-8);
    cr_expect_float_eq(load_real(document, "mean.auxiliary_loss"), 0.01, 1e-8);
    cr_expect(step_real(document, 3, "dropped") == 0);
    json_decref(document);
}

// With capacity factor 1, experts drop all tokens beyond an equal share.
Test(run_explained, reports_what_experts_drop)
{
    json_t *document = run_json(MIXTURE " --set model.capacity_factor=1", EXIT_VALID);

    double busiest = load_real(document, "last.busiest"), dropped = load_real(document, "last.dropped");
    cr_expect(busiest > 1 && dropped >= (busiest - 1) / 4 && dropped < 0.5, "%g %g", busiest, dropped);
    cr_expect(step_real(document, 3, "dropped") == dropped);
    json_decref(document);
}

Test(run_explained, shows_no_figure_of_a_backend_that_computes_nothing)
{
    status result = run_here(TINY " --backend null");

    cr_expect_eq(result.exit_code, EXIT_INVALID);
    expect_output("\nRESULT UNVERIFIED PROXY of 1 layer, 4 steps");
    expect_output("\nunverified: not-computed: backend null computes no numbers to verify\n");
    cr_expect_null(strstr(output, "throughput"));
}

#define EMULATION "run --config tiny-llama --backend host --set hardware.node_bandwidth=1e10 --repeat 1 "

Test(run_explained, emulates_a_job_on_one_device)
{
    json_t *document = run_json(EMULATION "--emulate 4 --set parallel.pp=4 --stages all", EXIT_VALID);
    cr_expect_str_eq(text_of(document, "status"), "emulated");
    cr_expect_eq(json_object_get(document, "result"), NULL, "no program takes it for a measured one");
    cr_expect_not_null(json_object_get(document, "emulated"));
    cr_expect_eq(number_at(document, "emulation.stages"), 4);
    cr_expect_eq(number_at(document, "emulation.executed"), 4);
    cr_expect_gt(number_at(document, "emulation.ops"), 0);
    cr_expect_eq(number_at(document, "emulation.measured_ops"), number_at(document, "emulation.ops"));
    double share = real_at(document, "emulation.measured_share");
    cr_expect(share > 0.0 && share < 1.0, "%g", share);
    json_decref(document);

    cr_assert_eq(run_here(EMULATION "--emulate 4 --set parallel.pp=4").exit_code, EXIT_VALID);
    cr_expect_not_null(strstr(output, "\nRESULT EMULATED 4 ranks emulated on one device: 2 of 4 stages executed, "),
                       "%s", output);
}

Test(run_explained, says_what_an_emulation_lacks)
{
    static const struct {
        const char *line;
        int         exit_code;
        const char *text;
    } cases[] = {
        {EMULATION "--emulate 2 --ranks 2", EXIT_USAGE, "leave --ranks and --weights-out out"},
        {EMULATION "--emulate 2 --stages last", EXIT_USAGE, "--stages last: expected distinct, all or first"},
        {TINY " --stages all", EXIT_USAGE, "--stages needs --emulate N"},
        {"run --config tiny-llama --backend host --emulate 2", EXIT_CONFIG, "[hardware] node_bandwidth is unknown"},
        {EMULATION "--emulate 2 --set parallel.pp=2 --stages first", EXIT_CONFIG, "[hardware] peak_bf16 is unknown"},
        {EMULATION "--emulate 3", EXIT_CONFIG, "1 configuration error"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        status result = run_here(cases[i].line);
        cr_expect_eq(result.exit_code, cases[i].exit_code, "%s: %d", cases[i].line, result.exit_code);
        cr_expect_not_null(strstr(result.text, cases[i].text), "%s: %s", cases[i].line, result.text);
    }
}
