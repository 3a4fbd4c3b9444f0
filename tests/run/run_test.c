// SPDX-License-Identifier: MIT
// Whole runs of a small model: what reaches stdout and the run's folder, and with which exit code.
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "gswbench/waterfall.h"

#define TINY "run --config tiny-llama --layers 1 --steps 4 --warmup 1 --backend host"

static char folder[1024];    // of the results

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/gswbench-run-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[1100];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_expect_eq(system(command), 0);
    text_free(&errors);
}

TestSuite(run, .init = make_folder, .fini = remove_folder, .timeout = 100);

// "gswbench LINE" with results in the test's folder.
static status run_here(const char *line)
{
    char whole[4096];
    snprintf(whole, sizeof(whole), "%s --out %s/results", line, folder);
    return run(whole);
}

static json_t *run_json(const char *line, int exit_code)
{
    char whole[1024];
    snprintf(whole, sizeof(whole), "%s --json", line);
    status result = run_here(whole);
    cr_assert(result.exit_code == exit_code && result.text[0] == '\0', "%s: %d %s", line, result.exit_code,
              result.text);

    json_error_t error;
    json_t      *document = json_loads(output, JSON_REJECT_DUPLICATES, &error);
    cr_assert(document != NULL, "%s at %d of %s", error.text, error.position, output);
    return document;
}

static double step_real(json_t *document, size_t step, const char *key)
{
    return json_real_value(json_object_get(json_array_get(json_object_get(document, "steps"), step), key));
}

static const char *text_of(json_t *document, const char *key)
{
    return json_string_value(json_object_get(document, key));
}

// The folder that the run named in its last line.
static const char *run_folder(void)
{
    static char path[1024];
    const char *line = strstr(output, "\nfiles: ");
    cr_assert_not_null(line, "%s", output);
    cr_assert(sscanf(line, "\nfiles: %1023s", path) == 1);
    return path;
}

Test(run, prints_every_step_and_fills_its_folder)
{
    status result = run_here(TINY);

    cr_assert_eq(result.exit_code, EXIT_VALID, "%s", result.text);
    expect_output("# proxy  layers 1: no figure is one of the whole model\n");
    expect_output("\ncompleted step: 0, seconds: ");
    expect_output("\ncompleted step: 3, seconds: ");
    expect_output("total_weights: 1024, loss: 6.");
    expect_output(", phase: warmup, train_step_timing in s: ");
    expect_output("\nRESULT VALID PROXY of 1 layer  4 steps: 1 warm-up, 3 measured, ");
    expect_output("\nModel flops utilization: none (backend host has no known peak)\n");
    const char *names[] = {"result.json", "steps.csv", "ranks.csv", "config.merged.ini", "report.html"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char        path[1100];
        struct stat state;
        snprintf(path, sizeof(path), "%s%s", run_folder(), names[i]);
        cr_expect(stat(path, &state) == 0 && state.st_size > 0, "%s", path);
    }
}

Test(run, takes_a_flag_for_the_same_bits_on_a_device)
{
    cr_assert_eq(run_here(TINY " --deterministic").exit_code, EXIT_VALID);

    char command[1200];
    snprintf(command, sizeof(command), "grep -q '^deterministic = yes$' %sconfig.merged.ini", run_folder());
    cr_expect_eq(system(command), 0);
}

Test(run, prints_one_json_document_and_nothing_else)
{
    json_t *document = run_json(TINY, EXIT_VALID);

    cr_expect_str_eq(text_of(document, "status"), "valid");
    cr_expect(json_array_size(json_object_get(document, "steps")) == 4);
    cr_expect(step_real(document, 3, "loss") > 0 && step_real(document, 3, "grad_norm") > 0);
    cr_expect(json_real_value(json_object_get(json_object_get(document, "result"), "tokens_per_s")) > 0);
    json_decref(document);
}

Test(run, repeats_bit_for_bit)
{
    json_t *first  = run_json(TINY " --ranks 2", EXIT_VALID);
    json_t *second = run_json(TINY " --ranks 2", EXIT_VALID);

    for (size_t step = 0; step < 4; step++) {
        cr_expect(step_real(first, step, "loss") == step_real(second, step, "loss"));
        cr_expect(step_real(first, step, "grad_norm") == step_real(second, step, "grad_norm"));
    }
    cr_expect_str_neq(text_of(first, "run_id"), text_of(second, "run_id"));
    json_decref(first);
    json_decref(second);
}

Test(run, trains_the_same_on_more_ranks)
{
    json_t *one  = run_json(TINY " --set precision.compute=fp32", EXIT_VALID);
    json_t *four = run_json(TINY " --set precision.compute=fp32 --ranks 4", EXIT_VALID);

    for (size_t step = 0; step < 4; step++) {
        double loss = step_real(one, step, "loss");
        cr_expect(fabs(step_real(four, step, "loss") - loss) < 1e-6 * loss);
    }
    json_t *validation = json_object_get(four, "validation");
    cr_expect(json_integer_value(json_object_get(validation, "replica_groups")) == 1);
    cr_expect(json_integer_value(json_object_get(validation, "replica_groups_equal")) == 1);
    cr_expect(json_array_size(json_object_get(four, "ranks")) == 4);
    json_decref(one);
    json_decref(four);
}

// 4 ranks hold all but the experts alike, and ranks 0 and 2, 1 and 3 the same experts; cp's ranks hold everything
// alike.
Test(run, compares_whatever_ranks_hold_alike)
{
    static const struct {
        const char *layout;
        json_int_t  groups;
    } cases[] = {
        {"--set model.family=mixtral --set model.experts=4 --set model.top_k=2 --set parallel.ep=2", 3},
        {"--set parallel.cp=2 --set parallel.fsdp=2 --set parallel.dp=1", 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[512];
        snprintf(line, sizeof(line), TINY " --ranks 4 %s", cases[i].layout);
        json_t *result     = run_json(line, EXIT_VALID);
        json_t *validation = json_object_get(result, "validation");
        cr_expect_eq(json_integer_value(json_object_get(validation, "replica_groups")), cases[i].groups);
        cr_expect_eq(json_integer_value(json_object_get(validation, "replica_groups_equal")), cases[i].groups);
        json_decref(result);
    }
}

static double part_of(json_t *document, const char *part)
{
    json_t *waterfall = json_object_get(document, "waterfall");
    return json_real_value(json_object_get(json_object_get(waterfall, "parts_s"), part));
}

Test(run, explains_a_step_that_is_not_measured)
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
    cr_expect_float_eq(sum, json_real_value(json_object_get(waterfall, "step_s")), 1e-12);
    cr_expect(part_of(traced, "gemm") > 0 && part_of(traced, "attention") > 0 && part_of(traced, "optimizer") > 0);
    cr_expect(part_of(traced, "exposed-fsdp") > 0 && part_of(traced, "exposed-tp") == 0);
    cr_expect_eq(json_array_size(json_object_get(traced, "steps")), 4);
    cr_expect_str_empty(text_of(json_object_get(plain, "waterfall"), "source"));
    for (size_t step = 0; step < 4; step++) {
        cr_expect(step_real(traced, step, "loss") == step_real(plain, step, "loss"));
    }
    json_decref(traced);
    json_decref(plain);
}

// Both ranks have the plan's ops, which a rank's result counts.
Test(run, draws_the_ranks_that_are_asked_for)
{
    cr_assert_eq(run_here(TINY " --ranks 3 --set parallel.dp=3 --set train.global_batch=12 --trace 0,2").exit_code, 0);
    char path[1200];
    snprintf(path, sizeof(path), "%strace.json", run_folder());
    json_t *trace = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    snprintf(path, sizeof(path), "%sresult.json", run_folder());
    json_t *result = json_load_file(path, 0, NULL);
    cr_assert(trace != NULL && result != NULL);

    json_int_t ops[3] = {0};
    size_t     i;
    json_t    *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        cr_assert_lt(json_integer_value(json_object_get(event, "pid")), 3);
        ops[json_integer_value(json_object_get(event, "pid"))] += strcmp(text_of(event, "ph"), "X") == 0;
    }
    json_int_t planned = json_integer_value(json_object_get(json_object_get(result, "plan"), "ops"));
    cr_expect(ops[0] == planned && ops[1] == 0 && ops[2] == planned);
    json_decref(trace);
    json_decref(result);
}

// Of a device nobody has here, but of the same plan: what takes time in the run takes time in the prediction.
Test(run, spends_its_time_on_what_a_prediction_says)
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
    cr_expect(part_of(measured, "recompute") > 0 && part_of(measured, "exposed-tp") > 0);
    json_decref(predicted);
    json_decref(measured);
}

Test(run, writes_weights_as_the_last_measured_step_left_them)
{
    char line[1200], command[2200];
    for (int traced = 0; traced < 2; traced++) {
        snprintf(line, sizeof(line), TINY " --weights-out %s/weights%d --set trace.steps=%d", folder, traced, traced);
        cr_assert_eq(run_here(line).exit_code, EXIT_VALID);
    }
    snprintf(command, sizeof(command), "cmp -s %s/weights0/model.safetensors %s/weights1/model.safetensors", folder,
             folder);
    cr_expect_eq(system(command), 0);
}

Test(run, notes_tensor_parallelism_across_nodes)
{
    status result = run_here(TINY " --ranks 2 --set parallel.tp=2 --set hardware.gpus_per_node=1");
    cr_assert_eq(result.exit_code, EXIT_VALID, "%s", result.text);
    expect_output(
        "\nnote: tp-across-nodes: [parallel] tp = 2 crosses nodes of [hardware] gpus_per_node = 1: every layer "
        "waits for the links between them\n");
}

#define MIXTURE                                                                                                        \
    TINY " --set model.family=mixtral --set model.experts=4 --set model.top_k=2 --set model.auxiliary_loss=0.01"

static double load_real(json_t *document, const char *of, const char *key)
{
    json_t *layer = json_array_get(json_object_get(document, "expert_load"), 0);
    return json_real_value(json_object_get(json_object_get(layer, of), key));
}

// Two microbatches on each of two ranks, each with an equal part of the choices.
Test(run, reports_a_balanced_load_as_fair)
{
    json_t *document = run_json(MIXTURE " --ranks 2 --set train.routing=balanced", EXIT_VALID);

    cr_assert(json_array_size(json_object_get(document, "expert_load")) == 1);
    for (int i = 0; i < 2; i++) {
        const char *of = i == 0 ? "last" : "mean";
        cr_expect(load_real(document, of, "busiest") == 1 && load_real(document, of, "idlest") == 1);
        cr_expect(load_real(document, of, "dropped") == 0);
        cr_expect(fabs(load_real(document, of, "auxiliary_loss") - 0.01) < 1e-8);
    }
    cr_expect(step_real(document, 3, "dropped") == 0);
    json_decref(document);
}

// Experts that take no more than a fair share drop what the busy ones are chosen for beyond it.
Test(run, reports_what_experts_drop)
{
    json_t *document = run_json(MIXTURE " --set model.capacity_factor=1", EXIT_VALID);

    double busiest = load_real(document, "last", "busiest"), dropped = load_real(document, "last", "dropped");
    cr_expect(busiest > 1 && dropped >= (busiest - 1) / 4 && dropped < 0.5, "%g %g", busiest, dropped);
    cr_expect(step_real(document, 3, "dropped") == dropped);
    json_decref(document);
}

Test(run, shows_no_figure_of_a_backend_that_computes_nothing)
{
    status result = run_here(TINY " --backend null");

    cr_expect_eq(result.exit_code, EXIT_INVALID);
    expect_output("\nRESULT UNVERIFIED PROXY of 1 layer  4 steps");
    expect_output("\nunverified: not-computed: backend null computes no numbers that could be checked\n");
    cr_expect_null(strstr(output, "Throughput"));
}

Test(run, finds_an_unwritable_folder_before_the_first_step)
{
    status result = run(TINY " --ranks 2 --out /dev/null/results");

    cr_expect_eq(result.exit_code, EXIT_OUTPUT);
    cr_expect_str_eq(result.text, "cannot create /dev/null/results: Not a directory");
    cr_expect_str_eq(output, "");
}

Test(run, finds_a_used_folder_for_weights_before_the_first_step)
{
    char line[1200], expected[1200];
    snprintf(line, sizeof(line), TINY " --weights-out %s", folder);
    snprintf(expected, sizeof(expected), "%s: is not empty: name a new folder", folder);

    status result = run_here(line);

    cr_expect_eq(result.exit_code, EXIT_OUTPUT);
    cr_expect_str_eq(result.text, expected);
    cr_expect_str_eq(output, "");
}

Test(run, refuses_to_be_one_of_several_that_do_not_know_each_other)
{
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);

    status local = run_here(TINY " --comm local");
    status other = run_here(TINY " --ranks 2");

    cr_expect_eq(local.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(local.text, "4 processes were launched, but communicator local runs all ranks in one: start it "
                                 "without a launcher, or use --comm mpi");
    cr_expect_eq(other.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(other.text, "--ranks 2 of a job that was launched with 4: leave --ranks out");
}

Test(run, has_nothing_for_nccl_to_carry_without_a_device)
{
    status one = run_here(TINY " --comm nccl");
    status two = run_here(TINY " --comm nccl --ranks 2");

    cr_expect_eq(one.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(one.text, "[run] communicator = nccl: backend host has no device whose memory it could carry");
    cr_expect_eq(two.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(two.text, "[run] communicator = nccl: 2 ranks are as many processes: start them with mpirun or "
                               "srun");
}

static void *send_signal(void *argument)
{
    nanosleep(&(struct timespec){.tv_nsec = 700000000}, NULL);
    kill(getpid(), *(int *)argument);
    return NULL;
}

Test(run, keeps_what_a_stopped_run_has_done)
{
    int       number = SIGUSR1;
    pthread_t sender;
    cr_assert_eq(pthread_create(&sender, NULL, send_signal, &number), 0);

    json_t *document = run_json("run --config tiny-llama --steps 100000 --ranks 2", EXIT_STOPPED);
    pthread_join(sender, NULL);

    size_t steps = json_array_size(json_object_get(document, "steps"));
    cr_expect_str_eq(text_of(document, "status"), "partial");
    cr_expect(steps > 0 && steps < 100000);
    cr_expect_null(json_object_get(document, "result"));
    cr_expect_str_eq(text_of(json_array_get(json_object_get(document, "reasons"), 0), "id"), "stopped");
    json_decref(document);
}

#define EMULATION "run --config tiny-llama --backend host --set hardware.node_bandwidth=1e10 --repeats 1 "

Test(run, emulates_a_job_on_one_device)
{
    json_t *document  = run_json(EMULATION "--emulate 4 --set parallel.pp=4 --stages all", EXIT_VALID);
    json_t *emulation = json_object_get(document, "emulation");
    json_t *verdict   = json_object_get(document, "status");
    cr_expect_str_eq(json_string_value(verdict), "emulated");
    cr_expect_eq(json_object_get(document, "result"), NULL, "no program takes it for a measured one");
    cr_expect_not_null(json_object_get(document, "emulated"));
    cr_expect_eq(json_integer_value(json_object_get(emulation, "stages")), 4);
    cr_expect_eq(json_integer_value(json_object_get(emulation, "executed")), 4);
    cr_expect_gt(json_integer_value(json_object_get(emulation, "ops")), 0);
    cr_expect_eq(json_integer_value(json_object_get(emulation, "measured_ops")),
                 json_integer_value(json_object_get(emulation, "ops")));
    double share = json_real_value(json_object_get(emulation, "measured_share"));
    cr_expect(share > 0.0 && share < 1.0, "%g", share);
    json_decref(document);

    cr_assert_eq(run_here(EMULATION "--emulate 4 --set parallel.pp=4").exit_code, EXIT_VALID);
    cr_expect_not_null(strstr(output, "\nRESULT EMULATED  4 ranks by one device: 2 of 4 stages executed, "), "%s",
                       output);
}

static void expect_refusal(const char *line, int exit_code, const char *text)
{
    status result = run_here(line);
    cr_expect_eq(result.exit_code, exit_code, "%s: %d", line, result.exit_code);
    cr_expect_not_null(strstr(result.text, text), "%s: %s", line, result.text);
}

Test(run, says_what_an_emulation_lacks)
{
    expect_refusal(EMULATION "--emulate 2 --ranks 2", EXIT_USAGE, "leave --ranks and --weights-out out");
    expect_refusal(EMULATION "--emulate 2 --stages last", EXIT_USAGE, "--stages last: expected distinct, all or first");
    expect_refusal(TINY " --repeats 2", EXIT_USAGE, "--stages and --repeats are of --emulate");
    expect_refusal("run --config tiny-llama --backend host --emulate 2", EXIT_CONFIG,
                   "[hardware] node_bandwidth is not known");
    expect_refusal(EMULATION "--emulate 2 --set parallel.pp=2 --stages first", EXIT_CONFIG,
                   "[hardware] peak_bf16 is not known");
    expect_refusal(EMULATION "--emulate 3", EXIT_CONFIG, "1 configuration error");
}

Test(run, records_no_secret)
{
    setenv("HF_TOKEN", "hunter2", 1);
    setenv("OMP_NUM_THREADS", "3", 1);

    json_t *document = run_json(TINY, EXIT_VALID);

    cr_expect_null(strstr(output, "hunter2"));
    cr_expect_str_eq(text_of(json_object_get(document, "environment"), "OMP_NUM_THREADS"), "3");
    json_decref(document);
}

Test(run, notes_a_profiler)
{
    setenv("NSYS_PROFILING_SESSION_ID", "1", 1);

    json_t *document = run_json(TINY " --ranks 2 --comm local", EXIT_VALID);
    json_t *reasons  = json_object_get(document, "reasons");
    json_t *reason   = json_array_get(reasons, json_array_size(reasons) - 1);

    cr_expect_str_eq(text_of(reason, "id"), "profiled");
    cr_expect_str_eq(text_of(reason, "message"),
                     "a profiler watched rank 0 (NSYS_PROFILING_SESSION_ID is set): the times "
                     "are no measure of a run without it");
    json_decref(document);
}

Test(run, is_shown_again_by_report)
{
    cr_assert_eq(run_here(TINY).exit_code, EXIT_VALID);
    char *first = strdup(output), line[1100];
    snprintf(line, sizeof(line), "report %s", run_folder());
    *(strstr(first, "\nfiles: ") + 1) = '\0';

    status text = run(line);

    cr_expect(!failed(&text), "%s", text.text);
    cr_expect_str_eq(output, first);
    free(first);
}
