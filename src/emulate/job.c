// SPDX-License-Identifier: MIT
// Emulates a job on one device and writes the result of the simulation.
#include "gswbench/emulate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/cores.h"
#include "gswbench/environment.h"
#include "gswbench/predict.h"
#include "gswbench/report.h"
#include "gswbench/result_json.h"
#include "internal.h"

struct emulated_job {
    const struct benchmark    *benchmark;
    struct comm                comm;
    struct backend             backend;
    struct environment_devices devices;
    struct emulation           emulation;
    struct measured_ops        list;
    struct prediction          prediction;
    struct result              result;
    struct output_folder       folder;
};

// Limits the threads to a rank's share of the node's cores in the full job.
static int64_t count_threads(const struct job *job)
{
    int64_t cores = cores_usable(), node = job->config.hardware.gpus_per_node;
    int64_t sharers = job->request.mesh.world < node ? job->request.mesh.world : node;
    int64_t asked   = job->config.run.threads;
    return asked > 0 ? asked : cores > sharers ? cores / sharers : 1;
}

// Adds op times of the busiest stage by kind and phase, from the measured ops.
static void add_op_times(struct emulated_job *emulated, const struct plan *plan)
{
    struct result_emulation *shown    = &emulated->result.emulation;
    struct op_totals         totals   = {.count = {{0}}};
    double                   measured = 0.0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op       *op      = &plan->ops[i];
        const struct quantity *seconds = op->lane == LANE_COMPUTE ? measured_find(&emulated->list, plan, op) : NULL;
        shown->ops += op->lane == LANE_COMPUTE;
        if (seconds != NULL) {
            shown->measured_ops++;
            measured += seconds->value;
            waterfall_add_op(&totals, plan, op, seconds->value);
        }
    }
    shown->measured_share = measured / emulated->prediction.step_seconds;
    result_set_op_times(&emulated->result, &totals);
}

// Fills the fields that do not depend on the simulation.
static status describe_job(struct emulated_job *emulated)
{
    struct result *result = &emulated->result;
    benchmark_describe(result, emulated->benchmark, &emulated->comm, &emulated->backend, &emulated->devices);
    facts_add_environment(result, NULL);
    return simulated_describe_plan(result, &emulated->benchmark->job);
}

// Runs before the emulation, so that an output folder that is not writable fails at once.
static status open_result(struct emulated_job *emulated)
{
    enum { FILES_BYTES = 256 << 10, STAGE_BYTES = 128 << 10 };
    const struct benchmark *benchmark = emulated->benchmark;
    struct output_folder   *folder    = &emulated->folder;
    TRY(describe_job(emulated));
    TRY(report_create_folder(folder, &emulated->result, benchmark->job.config.run.output));
    int64_t bytes = FILES_BYTES + benchmark->job.request.mesh.size[AXIS_PP] * STAGE_BYTES;
    TRY(output_check_space(folder->descriptor, folder->path, bytes, bytes));
    return output_write(folder, "config.merged.ini", benchmark->config_text, benchmark->config_bytes);
}

static status simulate_job(struct emulated_job *emulated, const struct machine *machine)
{
    const struct job          *job        = &emulated->benchmark->job;
    struct result             *result     = &emulated->result;
    struct prediction         *prediction = &emulated->prediction;
    double                     ideal = result_ideal_seconds(result, (enum flop_convention)result->figures.convention);
    struct predict_explanation explanation = {.ideal_seconds   = isnan(ideal) ? 0.0 : ideal,
                                              .attention_share = job_attention_share(job),
                                              .visit           = simulated_visit,
                                              .context         = result};
    struct plan                plan;
    TRY(predict_explain(&explanation, prediction, &job->request, machine));
    status built  = plan_build_stage(&plan, &job->request, prediction->busiest_stage);
    result->trace = (struct result_trace){.source       = "emulated",
                                          .rank         = plan.rank,
                                          .step_seconds = prediction->step_seconds,
                                          .waterfall    = explanation.waterfall};
    if (!failed(&built)) {
        add_op_times(emulated, &plan);
    }
    plan_free(&plan);
    return built;
}

static void mark(struct result *result, const struct config *config, bool has_failed)
{
    const struct result_emulation *shown = &result->emulation;
    struct result_reason reason = {.verdict = VERDICT_EMULATED, .id = "part-simulated", .rank = -1, .step = -1};
    snprintf(reason.message, sizeof(reason.message),
             "%" PRId64 " of %" PRId64
             " ops of the busiest stage are measured; collectives and the other ops have the times of [hardware] %s",
             shown->measured_ops, shown->ops, config->hardware.profile);
    result_add_reason(result, &reason);
    if (has_failed) {
        reason = (struct result_reason){.verdict = VERDICT_INVALID, .id = "not-finite", .rank = -1, .step = -1};
        text_copy(reason.message, sizeof(reason.message), "a loss or a gradient norm is not a number");
        result_add_reason(result, &reason);
    }
}

static void close_result(struct emulated_job *emulated)
{
    struct result *result      = &emulated->result;
    result->emulation.stages   = emulated->emulation.stage_count;
    result->emulation.executed = emulated->emulation.executed;
    result->allocated_bytes    = emulated->emulation.allocated_bytes;
    emulated->backend.ops->describe(&emulated->backend, result->device, sizeof(result->device));
    simulated_add_step(result, emulated->prediction.step_seconds);
    mark(result, &emulated->benchmark->job.config, emulated->emulation.has_failed);
    simulated_judge(result);
    benchmark_print_time(result->ended, sizeof(result->ended));
}

static status write_result(struct emulated_job *emulated)
{
    const struct benchmark *benchmark = emulated->benchmark;
    const struct result    *result    = &emulated->result;
    bool                    json      = benchmark->json;
    TRY(report_write_run(&emulated->folder, result));
    if (!json && !benchmark->is_quiet) {
        TRY(report_print(report_write_header, result));
    }
    TRY(report_print(json ? report_write_json : report_write_result, result));
    if (!json) {
        printf("files: %s/\n", emulated->folder.path);
    }
    return (status){.exit_code = (int)result->exit_code};
}

static void assume(struct quantity *rate)
{
    rate->value = rate->value > 0.0 ? rate->value : 1.0;
}

// [hardware], with unknown rates set to 1: all compute ops are measured, so their rates are not used.
static struct hardware_config known_machine(const struct job *job, enum emulate_stages stages)
{
    struct hardware_config hardware = job->config.hardware;
    if (stages == EMULATE_FIRST) {
        return hardware;
    }
    for (int rate = 0; rate < RATE_COUNT; rate++) {
        assume(&hardware.peak[rate]);
    }
    assume(&hardware.memory_bandwidth);
    hardware.multiprocessors = hardware.multiprocessors > 0 ? hardware.multiprocessors : 1;
    return hardware;
}

// Adds measured transfers from the profile.
static status add_transfers(struct emulation *emulation, const struct job *job)
{
    struct measured_ops profile;
    status              result = measured_read_profile(&profile, &job->config);
    for (int32_t i = 0; i < profile.count && !failed(&result); i++) {
        if (op_is_transfer((enum op_kind)profile.ops[i].key.kind)) {
            emulate_add(emulation, &profile.ops[i]);
        }
    }
    measured_free(&profile);
    return result;
}

static status run(struct emulated_job *emulated)
{
    const struct job      *job      = &emulated->benchmark->job;
    struct hardware_config hardware = known_machine(job, emulated->emulation.stages);
    TRY(predict_supports(&job->request, &hardware));
    TRY(environment_share_devices(&emulated->devices, &emulated->comm, &emulated->backend, 1));
    TRY(open_result(emulated));
    TRY(emulate(&emulated->emulation));
    TRY(add_transfers(&emulated->emulation, job));
    emulate_list(&emulated->emulation, &emulated->list);
    TRY(simulate_job(emulated, &(struct machine){.hardware = &hardware, .measured = &emulated->list}));
    close_result(emulated);
    return write_result(emulated);
}

status emulate_job(const struct benchmark *benchmark, enum emulate_stages stages, int64_t repeats)
{
    const struct job    *job      = &benchmark->job;
    struct emulated_job *emulated = memory_allocate(sizeof(*emulated));
    emulated->benchmark           = benchmark;
    comm_open_alone(&emulated->comm);
    status result =
        environment_open_backend(&emulated->backend, &job->config, &emulated->comm.topology, count_threads(job));
    if (!failed(&result)) {
        emulated->emulation = (struct emulation){.request = &job->request,
                                                 .backend = &emulated->backend,
                                                 .run     = &job->config.run,
                                                 .stages  = stages,
                                                 .repeats = repeats};
        result              = run(emulated);
        backend_close(&emulated->backend);
    }
    output_close_folder(&emulated->folder);
    free(emulated->devices.names);
    measured_free(&emulated->list);
    emulate_free(&emulated->emulation);
    result_free(&emulated->result);
    free(emulated);
    return result;
}
