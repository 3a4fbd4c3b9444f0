// SPDX-License-Identifier: MIT
// Trains randomly drawn layouts over NCCL, with and without a CUDA graph. The launcher chooses the number of ranks,
// which share the emulated GPU. Losses must equal a training on one rank. layouts_nccl [FIRST COUNT] starts with draw
// FIRST and runs COUNT layouts.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"
#include "drawn_layout.h"
#include "gswbench/comm.h"
#include "gswbench/plan_build.h"
#include "layouts.h"

enum { STEPS = 2, LAYOUTS = 4, APART = 2, APART_SECONDS = 120 };

// Sums in another order differ by BF16 rounding, and router logits then differ by up to 0.05. A token with nearly equal
// scores would be sent to another expert, which changes the loss of 16 tokens by 2 %. So biases select the same experts
// for every token here. The tests of the host backend compare layouts with experts selected by scores, in fp32.
static const double NORM_TOLERANCE = 0.03;

static double loss_tolerance(const struct training *training)
{
    return training->tiny.model.experts > 0 ? 5e-3 : 2e-3;
}

static status connect_nccl(struct comm *made, struct comm *control, struct backend *backend)
{
    return comm_open_nccl(made, control, backend, &(struct comm_nccl_setup){.connect_seconds = 60, .registers = true});
}

// Draws a layout that the GPU backend supports: BF16, with rows that are multiples of 16 bytes. It is small, since the
// emulated GPU is slow.
static struct training draw(uint64_t seed)
{
    struct training      training   = drawn_layout(seed);
    struct model_config *model      = &training.tiny.model;
    struct train_config *train      = &training.tiny.train;
    int64_t              chunks     = training.tiny.parallel.pp * training.tiny.parallel.vp;
    training.steps                  = STEPS;
    training.backend                = &backend_cuda;
    training.connect                = connect_nccl;
    training.tiny.precision.compute = COMPUTE_BF16;
    training.decided                = true;
    model->hidden                   = 32;
    model->head_dim                 = 16;
    model->ffn                      = 8 * model->heads;
    if (model->kv_rank > 0) {
        model->kv_rank   = 16;
        model->q_rank    = model->q_rank > 0 ? 16 : 0;
        model->rope_dim  = 8;
        model->value_dim = model->value_dim > 0 ? 24 : 0;
    }
    if (model->mamba_heads > 0) {
        model->mamba_head_dim = 16;
        model->mamba_state    = 16;
    }
    model->layers       = model->layers < chunks ? model->layers : chunks;
    train->accumulation = training.tiny.parallel.pp > 1 ? training.tiny.parallel.pp : train->accumulation % 2 + 1;
    train->micro_batch  = 1;
    if (model->experts > 0 && model->router_bias_rate == 0.0) {
        model->router_bias_rate = 0.01;
    }
    return training;
}

static bool is_close(float found, float expected, double tolerance)
{
    return fabs((double)found - (double)expected) <= tolerance * fabs((double)expected);
}

// Returns whether each expert of every layer has the same number of tokens in both trainings, on any rank.
static bool is_routed_the_same(const struct training *many, const struct training *one)
{
    int64_t layers = layers_with_experts(&one->tiny.model), width = one->tiny.model.experts + 2;
    bool    is_same = true;
    for (int64_t i = 0; i < layers * width; i++) {
        // The last value of a layer is the auxiliary loss.
        is_same = is_same && (i % width == width - 1 || many->routing[i] == one->routing[i]);
    }
    return is_same;
}

// Compares on rank 0. The other ranks wait for it in the next layout.
static int compare(const struct comm *comm, const struct training *found, const struct training *expected,
                   uint64_t seed, const char *how)
{
    char name[LAYOUT_NAME_BYTES];
    if (comm->topology.rank != 0) {
        return 0;
    }
    bool is_same = is_routed_the_same(found, expected);
    for (int i = 0; i < STEPS; i++) {
        is_same = is_same && is_close(found->loss[i], expected->loss[i], loss_tolerance(expected)) &&
                  is_close(found->norm[i], expected->norm[i], NORM_TOLERANCE);
    }
    printf("%s draw %" PRIu64 "%s: %s\n", is_same ? "ok  " : "FAIL", seed, how, layout_name(&found->tiny, name));
    for (int i = 0; i < STEPS && !is_same; i++) {
        printf("  step %d: loss %.6f and %.6f, gradient norm %.6f and %.6f\n", i, (double)found->loss[i],
               (double)expected->loss[i], (double)found->norm[i], (double)expected->norm[i]);
    }
    fflush(stdout);
    return !is_same;
}

static int train(struct comm *comm, uint64_t seed, bool captures)
{
    struct training many = draw(seed), one = many;
    many.captures = captures;
    one.connect   = NULL;
    one.ranks     = 1;
    layout_alone(&one.tiny);
    training_run_rank(&many, comm);
    if (comm->topology.rank == 0) {
        training_run(&one);
    }
    return compare(comm, &many, &one, seed, captures ? ", captured" : "");
}

// Biases select other experts on each rank, so every rank of an expert-parallel group receives a different token count
// from each source, and swapped counts give a wrong loss. A single rank cannot train this way, so the reference is the
// same layout over MPI.
static bool has_sources(const struct training *drawn)
{
    const struct model_config *model = &drawn->tiny.model;
    return model->experts > model->top_k && drawn->tiny.parallel.ep > 1 && model->capacity_factor == 0.0;
}

static int train_apart(struct comm *comm, uint64_t seed)
{
    struct training over_nccl = draw(seed), over_mpi;
    over_nccl.apart           = true;
    over_mpi                  = over_nccl;
    over_mpi.connect          = NULL;
    alarm(APART_SECONDS);    // NCCL can hang if a count is wrong
    training_run_rank(&over_mpi, comm);
    training_run_rank(&over_nccl, comm);
    alarm(0);
    return compare(comm, &over_nccl, &over_mpi, seed, ", ranks apart");
}

int main(int argc, char **argv)
{
    struct comm comm;
    char        host[16];
    device_require();
    training_require(comm_open_mpi(&comm));
    // NCCL refuses two ranks on one host that use the same device, so each rank claims to run on a different host.
    snprintf(host, sizeof(host), "rank%d", comm.topology.rank);
    setenv("NCCL_HOSTID", host, 1);
    uint64_t    seed   = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
    const char *wanted = argc == 3 ? argv[2] : getenv("GSWBENCH_NCCL_LAYOUTS");
    int         count = wanted != NULL ? atoi(wanted) : LAYOUTS, failures = 0;
    int         apart = argc == 3 ? 0 : APART;
    for (; count > 0 || apart > 0; seed++) {
        struct training drawn = draw(seed);
        if (drawn.ranks != comm.topology.ranks || !drawn_layout_is_planned(&drawn)) {
            continue;
        }
        if (count > 0) {
            failures += train(&comm, seed, count % 2 == 0);
            count--;
        }
        if (apart > 0 && has_sources(&drawn)) {
            failures += train_apart(&comm, seed);
            apart--;
        }
    }
    comm.ops->share(&comm, &failures, sizeof(failures), 0);
    comm_close(&comm);
    return failures > 0;
}
