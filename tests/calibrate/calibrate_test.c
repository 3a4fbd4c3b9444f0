// SPDX-License-Identifier: MIT
// Tests that calibrated profiles are complete, can be read, and contain every op of the job. The measured times are not
// checked.
#include "gswbench/calibrate.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "calibrate/internal.h"
#include "command.h"
#include "gswbench/clock.h"
#include "gswbench/config.h"
#include "layouts.h"
#include "training.h"

enum { RANKS_MAX = 8 };

// A job to calibrate, with ranks as threads. Rank 0 writes the profile.
struct subject {
    struct plan_request    request;
    struct run_config      run;
    struct local_hub      *hub;
    struct hardware_config hardware;
    bool                   of_machine;        // also measures the values of section [hardware]
    bool                   is_slow;           // collectives are delayed by slow_run
    int                    ranks_per_node;    // 0: all ranks are on one node
    char                   path[64];
};

struct calibrating_rank {
    struct subject *calibration;
    int             rank;
    pthread_t       thread;
};

enum { SLOW_NS = 20000000 };    // five times the time of the slowest compute op under sanitizers
static struct comm_ops local_ops, slow_ops;

static void slow_run(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    const struct timespec pause = {.tv_nsec = SLOW_NS};
    nanosleep(&pause, NULL);
    local_ops.run(group, op, in, out, format);
}

static void prepare_slow_ops(struct local_hub *hub)
{
    struct comm comm;
    comm_open_local(&comm, hub, 0);
    local_ops = slow_ops = *comm.ops;
    slow_ops.run         = slow_run;
    comm_close(&comm);
}

#define FAST_SECONDS 1e-9    // of a GEMM of the job: no processor is so fast

static int32_t find_gemm(const struct distinct_ops *list)
{
    int32_t gemm = 0;
    while (list->ops[gemm].op.kind != OP_GEMM) {
        gemm++;
    }
    return gemm;
}

static void *calibrate(void *argument)
{
    struct calibrating_rank *self        = argument;
    struct subject          *calibration = self->calibration;
    struct hardware_config   hardware    = calibration->hardware;
    struct distinct_ops      list;
    struct backend           backend;
    struct comm              comm;
    comm_open_local(&comm, calibration->hub, self->rank);
    if (calibration->is_slow) {
        comm.ops = &slow_ops;
    }
    if (calibration->ranks_per_node > 0) {
        comm.topology.local_ranks = calibration->ranks_per_node;
    }
    training_require(backend_open(&backend, "host", &(struct backend_setup){.threads = 1}));
    struct calibrate_setup setup = {.request    = &calibration->request,
                                    .run        = &calibration->run,
                                    .backend    = &backend,
                                    .comm       = &comm,
                                    .cores      = 2,
                                    .core_ranks = calibration->request.mesh.world,
                                    .has_cores  = self->rank < 2,
                                    .steps      = 1,
                                    .passes     = 1};
    training_require(calibrate_collect(&list, &calibration->request, &setup.working_bytes));
    training_require(calibrate_steps(&list, &setup));
    training_require(calibrate_communications(&list, &setup));
    if (calibration->of_machine) {
        list.ops[find_gemm(&list)].seconds.value = FAST_SECONDS;
        training_require(calibrate_hardware(&hardware, &list, &setup));
    }
    if (self->rank == 0) {
        FILE *file = fopen(calibration->path, "w");
        calibrate_write(file, &(struct calibration_origin){.version = "of a test"}, &hardware, &list);
        fclose(file);
    }
    calibrate_free(&list);
    backend_close(&backend);
    comm_close(&comm);
    return NULL;
}

static void calibrate_job(struct subject *calibration, const char *layout)
{
    struct calibrating_rank ranks[RANKS_MAX];
    calibration->request = layout_request(layout);
    int64_t world        = calibration->request.mesh.world;
    calibration->hub     = local_hub_open((int)world);
    prepare_slow_ops(calibration->hub);
    option_set_defaults(hardware_options, &calibration->hardware);
    option_set_defaults(run_options, &calibration->run);
    snprintf(calibration->path, sizeof(calibration->path), "/tmp/gswbench-profile-%d.ini", getpid());
    for (int rank = 0; rank < world; rank++) {
        ranks[rank] = (struct calibrating_rank){.calibration = calibration, .rank = rank};
        pthread_create(&ranks[rank].thread, NULL, calibrate, &ranks[rank]);
    }
    for (int rank = 0; rank < world; rank++) {
        pthread_join(ranks[rank].thread, NULL);
    }
    local_hub_close(calibration->hub);
}

// Expects that the profile has a measured time for every op of the first rank of each pipeline stage.
static void expect_complete(const struct subject *calibration, const char *layout)
{
    struct measured_ops measured;
    training_require(measured_read(&measured, calibration->path));
    for (int64_t stage = 0; stage < calibration->request.mesh.size[AXIS_PP]; stage++) {
        int64_t            rank = mesh_rank(&calibration->request.mesh, (const int64_t[AXIS_COUNT]){[AXIS_PP] = stage});
        const struct plan *plan = tiny_plan_of(layout, rank);
        for (int32_t i = 0; i < plan->op_count; i++) {
            char                   name[160];
            const struct quantity *seconds = measured_find(&measured, plan, &plan->ops[i]);
            plan_op_name(plan, i, name, sizeof(name));
            cr_assert(seconds != NULL, "rank %d: %s was not measured", (int)rank, name);
            cr_expect(seconds->value > 0.0 && isfinite(seconds->value), "rank %d: %s takes %g", (int)rank, name,
                      seconds->value);
            cr_expect_eq(seconds->origin, QUANTITY_MEASURED);
        }
    }
    measured_free(&measured);
}

TestSuite(calibrate, .timeout = 200);

// The jobs are one rank, 8 ranks with collectives on all axes, a pipeline with several stages, and a model with
// experts.
Test(calibrate, measures_every_op_and_communication)
{
    static const char *const jobs[] = {"", "fsdp 2; tp 2; cp 2; compute bf16; global_batch 4",
                                       "layers 3; dp 2; pp 3; accumulation 3; zero 1",
                                       "dp 2; ep 2; experts 4; top_k 2; auxiliary_loss 0.05; global_batch 4"};
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        struct subject calibration = {.of_machine = false};
        calibrate_job(&calibration, jobs[i]);
        expect_complete(&calibration, jobs[i]);
        unlink(calibration.path);
    }
}

Test(calibrate, takes_no_time_of_communications_for_that_of_ops_that_compute)
{
    struct subject      calibration = {.is_slow = true};
    struct measured_ops measured;
    calibrate_job(&calibration, "fsdp 2; global_batch 4");

    training_require(measured_read(&measured, calibration.path));
    for (int32_t i = 0; i < measured.count; i++) {
        char   key[OP_KEY_BYTES];
        double seconds          = measured.ops[i].seconds.value;
        bool   is_communication = op_is_communication((enum op_kind)measured.ops[i].key.kind);
        cr_expect_eq(seconds > 0.5e-9 * SLOW_NS, is_communication, "%s takes %g s",
                     op_key_print(&measured.ops[i].key, key), seconds);
    }
    measured_free(&measured);
    unlink(calibration.path);
}

// Reads the config of a job on 4 ranks with this hardware profile.
static void read_profile(struct config *config, const char *path)
{
    struct text_buffer found = {.text = NULL};
    const char        *line  = line_of("hardware.profile=%s", path);
    setenv("GSWBENCH_CONFIGS", configs, 1);
    training_require(
        config_read(config,
                    &(struct config_request){
                        .name = "tiny-llama", .overrides = (const char *[]){line}, .override_count = 1, .ranks = 4},
                    &found));
}

Test(calibrate, leaves_a_profile_that_a_prediction_reads)
{
    struct subject calibration = {.of_machine = true};
    calibrate_job(&calibration, "dp 4; global_batch 8");

    struct config config;
    read_profile(&config, calibration.path);
    cr_expect_eq(config.hardware.gpus_per_node, 4);
    cr_expect_eq(config.hardware.cores, 2);
    cr_expect_eq(config.hardware.peak[RATE_BF16].origin, QUANTITY_MEASURED);
    cr_expect_eq(config.hardware.peak[RATE_FP32].origin, QUANTITY_MEASURED, "that of the job's own GEMMs");
    cr_expect_gt(config.hardware.peak[RATE_FP32].value, 1000 / FAST_SECONDS, "a GEMM of the job is above the peak");
    cr_expect_eq(config.hardware.node_bandwidth.origin, QUANTITY_MEASURED);
    cr_expect_eq(config.hardware.network_bandwidth.value, 0.0);
    cr_expect_eq(config.hardware.core_ranks, 4);
    cr_expect_eq(config.hardware.communication_delay.origin, QUANTITY_MEASURED);
    cr_expect_eq(config.hardware.contention.origin, QUANTITY_MEASURED);

    expect_success(line_of("predict --config tiny-llama --ranks 4 --set hardware.profile=%s", calibration.path));
    expect_output("predicted ");
    unlink(calibration.path);
}

Test(calibrate, times_ops_of_more_threads_than_cores)
{
    struct measured_ops measured;
    const char         *path = line_of("/tmp/gswbench-profile-%d.ini", getpid());
    training_require(run(line_of("calibrate --config tiny-llama --layers 1 --backend host --set run.threads=%d -o %s",
                                 cores_usable() + 1, path)));
    training_require(measured_read(&measured, path));
    for (int32_t i = 0; i < measured.count; i++) {
        char key[OP_KEY_BYTES];
        cr_expect_gt(measured.ops[i].seconds.value, 0.0, "%s", op_key_print(&measured.ops[i].key, key));
    }
    measured_free(&measured);
    unlink(path);
}

// Two nodes have two ranks each, and no group is within a node. The time of a tiny all-gather has one hop between
// nodes.
Test(calibrate, predicts_the_collectives_that_it_measured)
{
    struct subject calibration = {.of_machine = true, .is_slow = true, .ranks_per_node = 2};
    struct config  config;
    calibrate_job(&calibration, "fsdp 4; global_batch 8");
    read_profile(&config, calibration.path);
    cr_expect_gt(config.hardware.network_latency.value, 0.9e-9 * SLOW_NS);
    unlink(calibration.path);
}

// One op computes from 0 s to 2 s and another from 2 s to 8 s. Three communications wait for the first op, two of them
// on one stream. Each takes 0.5 s alone. Its delay is its end minus its earliest start minus 0.5 s; the earliest start
// is the end of the first op, or of the previous op on its stream. The third one ends after all compute, so it does not
// count. disturbance_add must add to the existing sums.
Test(calibrate, counts_how_much_longer_communications_take_beside_computing)
{
    struct op            ops[]   = {{.stream = STREAM_COMPUTE},
                                    {.stream = STREAM_PIPELINE_SEND, .wait = {0}, .wait_count = 1},
                                    {.stream = STREAM_PIPELINE_SEND, .wait = {0}, .wait_count = 1},
                                    {.stream = STREAM_PIPELINE_RECEIVE, .wait = {0}, .wait_count = 1},
                                    {.stream = STREAM_COMPUTE}};
    const struct op_time times[] = {{0, 2}, {2.5, 4}, {5, 7}, {2, 9}, {2, 8}};
    struct disturbance   sum     = {.communications = 1, .delay_seconds = 1, .lost_seconds = 1, .busy_seconds = 1};

    disturbance_add(&sum, &(struct plan){.ops = ops, .op_count = 5}, times, 0.5);

    cr_expect_eq(sum.communications, 3, "the one that ends when all is computed tells nothing");
    cr_expect_eq(sum.delay_seconds, 1 + (4 - 2 - 0.5) + (7 - 4 - 0.5));
    cr_expect_eq(sum.busy_seconds, 1 + 8 - 2, "two at once count once");
    cr_expect_eq(sum.lost_seconds, 1 + 8);
}

Test(calibrate, answers_bad_launches_with_a_remedy)
{
    expect_error("calibrate --config tiny-llama", EXIT_USAGE, "-o is missing: name the file to write");
    expect_error("calibrate -o x.ini", EXIT_USAGE, "--config is missing: gswbench configs lists the installed ones");
    expect_error("calibrate --config tiny-llama --layers 1 --backend null -o x.ini", EXIT_CONFIG,
                 "[run] backend = null computes nothing to measure: use cuda or host (backend: --backend null)");
    expect_error("calibrate --config tiny-llama --ranks 3 --comm nccl -o x.ini", EXIT_CONFIG, "1 configuration error");
    expect_error("calibrate --config tiny-llama --layers 1 --backend host -o /no/such/folder/x.ini", EXIT_OUTPUT,
                 "cannot write /no/such/folder/x.ini: No such file or directory");
}
