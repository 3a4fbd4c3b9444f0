// SPDX-License-Identifier: MIT
// Runs a small model completely, and tests the output, the files in the run's folder, and the exit code. Also tests
// runs that are refused before their first step.
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "success.h"
#include "whole_run.h"

TestSuite(run, .init = make_folder, .fini = remove_folder, .timeout = 100);

Test(run, prints_every_step_and_fills_its_folder)
{
    status result = run_here(TINY);

    cr_assert_eq(result.exit_code, EXIT_VALID, "%s", result.text);
    expect_output("# proxy  layers 1: values are not those of the full model\n");
    expect_output("\ncompleted step: 0, seconds: ");
    expect_output("\ncompleted step: 3, seconds: ");
    expect_output("\ncompleted step: 0, seconds: ");
    expect_output(", loss: 6.");
    expect_output("\nRESULT DEGRADED PROXY of 1 layer, 4 steps: 1 warm-up, 3 measured\n");
    expect_output("\nMFU             none       backend host has no known peak\n");
    const char *names[] = {"result.json",       "steps.csv",         "ranks.csv",
                           "compute_times.csv", "config.merged.ini", "report.html"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct stat state;
        const char *path = line_of("%s%s", run_folder(), names[i]);
        cr_expect(stat(path, &state) == 0 && state.st_size > 0, "%s", path);
    }
}

// One step takes several seconds longer than the eight others, even with sanitizers. The run ends after nine steps,
// since with fewer the confidence interval would include all steps.
Test(run, goes_on_until_the_median_is_known_and_verifies_the_step_that_is_the_last)
{
    json_t *document = run_json(TINY " --steps 9 --warmup 1 --until 50% --ranks 2 --comm local --set fault.kind=delay "
                                     "--set fault.step=3 --set fault.amount=3",
                                EXIT_VALID);

    size_t steps = json_array_size(json_object_get(document, "steps"));
    cr_expect(steps > 9 && steps < 90, "%zu", steps);
    cr_expect_eq(number_at(document, "config.steps"), (json_int_t)steps);
    cr_expect_eq(number_at(document, "validation.repeated_steps"), 4);
    cr_expect_eq(number_at(document, "validation.repeated_steps_equal"), 4);
    json_decref(document);
    document = run_json(TINY " --steps 14 --warmup 1 --until 50%", EXIT_VALID);
    cr_expect_geq(json_array_size(json_object_get(document, "steps")), 14, "fewer than it was given");
    json_decref(document);
}

Test(run, notes_that_ten_times_as_many_steps_did_not_do)
{
    cr_assert_eq(run_here(TINY " --steps 2 --warmup 1 --until 0.000001% --verbose").exit_code, EXIT_VALID);

    expect_output("\ncompleted step: 19, ");
    expect_output(" PROXY of 1 layer, 20 steps: 1 warm-up, 19 measured\n");
    expect_output("\nnote: until: run.until = 1e-06% was not reached: stopped at the limit of 20 steps; the "
                  "median's 95 % CI is +-");
}

Test(run, takes_a_flag_for_the_same_bits_on_a_device)
{
    cr_assert_eq(run_here(TINY " --deterministic").exit_code, EXIT_VALID);

    cr_expect_eq(system(line_of("grep -q '^deterministic = yes$' %sconfig.merged.ini", run_folder())), 0);
}

Test(run, prints_one_json_document_and_nothing_else)
{
    json_t *document = run_json(TINY, EXIT_VALID);

    cr_expect_str_eq(text_of(document, "status"), "degraded");
    cr_expect_str_eq(text_of(reason_of(document, "few-steps"), "message"),
                     "3 measured steps: too few to judge their spread; measure 10 or more (--steps)");
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
    cr_expect_eq(number_at(four, "validation.replica_groups"), 1);
    cr_expect_eq(number_at(four, "validation.replica_groups_equal"), 1);
    cr_expect(json_array_size(json_object_get(four, "ranks")) == 4);
    json_decref(one);
    json_decref(four);
}

// With ep 2, four ranks replicate all weights except experts; ranks 0 and 2 have the same experts, and so do ranks 1
// and 3. cp ranks replicate all weights.
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
        json_t *result = run_json(line_of(TINY " --ranks 4 %s", cases[i].layout), EXIT_VALID);
        cr_expect_eq(number_at(result, "validation.replica_groups"), cases[i].groups);
        cr_expect_eq(number_at(result, "validation.replica_groups_equal"), cases[i].groups);
        json_decref(result);
    }
}

Test(run, writes_weights_as_the_last_measured_step_left_them)
{
    for (int traced = 0; traced < 2; traced++) {
        cr_assert_eq(run_here(line_of(TINY " --weights-out %s/weights%d --set trace.steps=%d", folder, traced, traced))
                         .exit_code,
                     EXIT_VALID);
    }
    cr_expect_eq(system(line_of("cmp -s %s/weights0/model.safetensors %s/weights1/model.safetensors", folder, folder)),
                 0);
}

// Sends a signal to the run after the journal has its first step.
static void *send_signal(void *argument)
{
    const char *command = line_of("grep -rqs --include=run.jsonl '\"step\":' %s", folder);
    for (int i = 0; i < 600 && system(command) != 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
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

// Secrets may appear in no file of the run's folder, and not in the output.
Test(run, records_no_secret)
{
    static const char *const names[] = {
        "HF_TOKEN",    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "WANDB_API_KEY", "GITHUB_TOKEN",
        "NGC_API_KEY", "https_proxy",           "SLURM_JWT",         "SSH_AUTH_SOCK",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        setenv(names[i], "https://user:hunter2@example.org", 1);
    }
    setenv("OMP_NUM_THREADS", "3", 1);

    json_t *document = run_json(TINY, EXIT_VALID);

    cr_expect_null(strstr(output, "hunter2"));
    cr_expect_eq(number_at(document, "environment.OMP_NUM_THREADS"), 3);
    cr_expect_eq(system(line_of("test -n \"$(find %s -name run.jsonl)\" && ! grep -rq hunter2 %s", folder, folder)), 0);
    json_decref(document);
}

Test(run, notes_a_profiler_and_which_steps_it_was_to_collect)
{
    setenv("NSYS_PROFILING_SESSION_ID", "1", 1);
    json_t *document = run_json(TINY " --ranks 2 --comm local", EXIT_VALID);
    cr_expect_str_eq(text_of(document, "status"), "degraded");
    cr_expect_str_eq(
        text_of(reason_of(document, "profiled"), "message"),
        "a profiler watched rank 0 (NSYS_PROFILING_SESSION_ID is set): step times are not those of a normal run");
    json_decref(document);

    unsetenv("NSYS_PROFILING_SESSION_ID");
    document =
        run_json(TINY " --set profile.start_step=1 --set profile.stop_step=2 --set profile.ranks=all", EXIT_VALID);
    cr_expect_eq(number_at(reason_of(document, "profiled"), "step"), 1);
    cr_expect_str_eq(text_of(reason_of(document, "profiled"), "message"),
                     "profilers collect steps 1 to 2 of ranks all: step times are not those of a normal run");
    json_decref(document);
}

Test(run, is_shown_again_by_report)
{
    cr_assert_eq(run_here(TINY " --verbose").exit_code, EXIT_VALID);
    char       *first                 = strdup(output);
    const char *line                  = line_of("report %s", run_folder());
    *(strstr(first, "\nfiles: ") + 1) = '\0';

    EXPECT_SUCCESS(run(line));
    expect_output("\nsource: its journal agrees; not signed\n");
    *(strstr(output, "\nsource: ") + 1) = '\0';
    cr_expect_str_eq(strstr(output, "\nRESULT"), strstr(first, "\nRESULT"));
    free(first);
}

TestSuite(run_refused, .init = make_folder, .fini = remove_folder, .timeout = 100);

Test(run_refused, before_the_first_step_with_the_reason)
{
    static const struct {
        const char *launched, *line;    // launched: number of processes of the launcher; "": no launcher
        int         exit_code;
        const char *text;
    } cases[] = {
        {"", TINY " --ranks 1024 --set train.global_batch=auto", EXIT_LAUNCH,
         "1024 ranks as threads of one process are more than the limit of 256: start them with mpirun or srun, or use "
         "fewer (--ranks)"},
        {"4", TINY " --comm local", EXIT_LAUNCH,
         "4 processes were launched, but communicator local runs all ranks in one: start it without a launcher, or use "
         "--comm mpi"},
        {"4", TINY " --ranks 2", EXIT_LAUNCH, "--ranks 2, but 4 ranks were launched: leave --ranks out"},
        {"", TINY " --comm nccl", EXIT_LAUNCH,
         "[run] communicator = nccl: it connects devices, but backend host has none: use mpi or local (communicator: "
         "--comm nccl)"},
        {"", TINY " --comm nccl --ranks 2", EXIT_LAUNCH,
         "[run] communicator = nccl: 2 ranks need one process each: start them with mpirun or srun (communicator: "
         "--comm nccl)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsetenv("OMPI_COMM_WORLD_SIZE");
        if (cases[i].launched[0] != '\0') {
            setenv("OMPI_COMM_WORLD_SIZE", cases[i].launched, 1);
        }
        status result = run_here(cases[i].line);
        cr_expect_eq(result.exit_code, cases[i].exit_code, "%s", cases[i].line);
        cr_expect_str_eq(result.text, cases[i].text);
        cr_expect_str_eq(output, "");
    }
}

static void expect_output_error(status result, const char *text)
{
    cr_expect_eq(result.exit_code, EXIT_OUTPUT);
    cr_expect_not_null(strstr(result.text, text), "%s", result.text);
    cr_expect_str_eq(output, "");
}

Test(run_refused, finds_folders_that_it_cannot_use_before_the_first_step)
{
    expect_output_error(run(TINY " --ranks 2 --out /dev/null/results"),
                        "cannot create /dev/null/results: Not a directory");
    const char *line = line_of(TINY " --weights-out %s", folder);
    expect_output_error(run_here(line), line_of("%s: is not empty: name a new folder", folder));
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(run_refused, finds_too_small_a_limit_of_files_before_the_first_step)
{
    limit_files(20000);
    status result = run_here(TINY);
    limit_files(RLIM_INFINITY);
    expect_output_error(result, ": File too large: it needs 180.00 KiB, but the limit of a file is 19.53 KiB");

    const char *line = line_of(TINY " --weights-out %s/weights", folder);
    limit_files(300000);
    result = run_here(line);
    limit_files(RLIM_INFINITY);
    expect_output_error(result, "/weights: File too large: it needs 1.20 MiB, but the limit of a file is ");
}
