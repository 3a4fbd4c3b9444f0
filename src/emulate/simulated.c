// SPDX-License-Identifier: MIT
// Makes results from simulated steps: from a prediction, or from a job that is emulated on one device (emulate.c). They
// have only the fields of a result that are known without a run.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/benchmark.h"
#include "gswbench/clock.h"
#include "gswbench/emulate.h"
#include "gswbench/environment.h"
#include "gswbench/job.h"
#include "gswbench/peak.h"
#include "gswbench/plan_build.h"
#include "gswbench/predict.h"
#include "gswbench/predicted.h"
#include "gswbench/report.h"
#include "gswbench/status.h"

static status describe_plan(struct result *result, const struct job *job)
{
    struct plan plan;
    status      built = plan_build(&plan, &job->request);
    if (!failed(&built)) {
        result_set_plan(result, &plan, &job->config.published);
        built = plan_hardware_flops(&plan, &job->request, &result->flops_per_sequence[FLOPS_HARDWARE]);
        result_derive(result);
    }
    plan_free(&plan);
    return built;
}

static void visit_stage(void *context, const struct predict_view *view)
{
    struct result       *result = context;
    struct result_action actions[RESULT_ACTIONS];
    if (view->is_first) {
        result_set_moments(result, view->plan, view->times);
    }
    if (view->plan->mesh.size[AXIS_PP] > 1) {
        result_add_actions(result, actions, result_find_actions(actions, view->plan, view->times));
    }
}

static void add_step(struct result *result, double seconds)
{
    result->planned_steps  = 1;
    result->planned_warmup = 0;
    result_reserve(result, 1, 0, 0);
    result->steps[result->step_count++] = (struct result_step){.phase           = STEP_MEASURE,
                                                               .seconds         = seconds,
                                                               .rank0_seconds   = NAN,
                                                               .device_seconds  = NAN,
                                                               .loss            = NAN,
                                                               .prediction_loss = NAN,
                                                               .gradient_norm   = NAN,
                                                               .dropped         = NAN};
}

static void judge(struct result *result)
{
    result_check_peak(result);
    result->exit_code = result->verdict == VERDICT_INVALID ? EXIT_INVALID : EXIT_VALID;
    result_derive(result);
}

// Context of a visitor that fills the result and then calls the caller's own visitor.
struct visitor {
    struct result             *result;
    struct predict_explanation callers;
};

static void visit(void *context, const struct predict_view *view)
{
    struct visitor *visitor = context;
    visit_stage(visitor->result, view);
    if (view->is_busiest) {
        struct op_totals totals;
        waterfall_sum_ops(&totals, view->plan, view->times);
        result_set_op_times(visitor->result, &totals);
        visitor->result->trace.rank = view->plan->rank;
    }
    if (visitor->callers.visit != NULL) {
        visitor->callers.visit(visitor->callers.context, view);
    }
}

static struct text_stream write_config(const struct job *job)
{
    struct text_stream text;
    text_stream_open(&text);
    config_write(&job->config, text.file);
    text_stream_close(&text);
    return text;
}

static void set_machine(struct result *result, const struct config *config)
{
    const struct hardware_config *hardware    = &config->hardware;
    bool                          is_gswbench = strcmp(config->software.profile, "gswbench") == 0;
    enum rate                     rate        = precision_rate(config->precision.compute);
    struct peak                   peak        = peak_of_hardware(hardware, rate);
    double                        bandwidth   = hardware->memory_bandwidth.value;
    snprintf(result->device, sizeof(result->device), "%.64s, predicted by profile %.160s%s%.160s",
             hardware->device[0] != '\0' ? hardware->device : hardware->profile, hardware->profile,
             is_gswbench ? "" : " and software ", is_gswbench ? "" : config->software.profile);
    text_copy(result->communicator, sizeof(result->communicator), "simulated");
    text_copy(result->backend, sizeof(result->backend), "simulated");
    text_copy(result->peak_source, sizeof(result->peak_source), peak.source);
    result->peak           = peak.flops;
    result->published_peak = peak_published(&config->published, rate);
    result_set_published(result, &config->published, config->run.layers == 0);
    text_copy(result->expectation.profile, sizeof(result->expectation.profile), hardware->profile);
    result->expectation.peak             = peak.flops;
    result->expectation.memory_bandwidth = bandwidth > 0.0 ? bandwidth : NAN;
}

static void set_step(struct result *result, const struct predict_row *row)
{
    const struct prediction   *prediction  = &row->prediction;
    struct result_expectation *expectation = &result->expectation;
    result->trace.source                   = RESULT_PREDICTED;
    result->trace.step_seconds             = prediction->step_seconds;
    result->trace.waterfall                = row->explanation.waterfall;
    expectation->step_seconds              = prediction->step_seconds;
    expectation->percent                   = row->range.percent;
    expectation->measured_share            = prediction->measured_percent / 100.0;
    expectation->waterfall                 = row->explanation.waterfall;
    add_step(result, prediction->step_seconds);
}

static void add_reasons(struct result *result, const struct predict_row *row)
{
    result_note(result, (struct result_reason){"not-run", VERDICT_PREDICTED, -1, -1, ""},
                "simulated, not measured (profile %.100s)", row->job.config.hardware.profile);
    for (const char *line = row->warnings.text; line != NULL && *line != '\0'; line += strcspn(line, "\n") + 1) {
        result_note(result, (struct result_reason){"warning", VERDICT_VALID, -1, -1, ""}, "%.*s",
                    (int)strcspn(line, "\n"), line);
    }
}

static status describe(struct result *result, const struct predict_row *row)
{
    struct benchmark  *benchmark = memory_allocate(sizeof(*benchmark));
    struct text_stream text      = write_config(&row->job);
    *benchmark = (struct benchmark){.job = row->job, .config_text = text.data, .config_bytes = text.bytes};
    benchmark_describe_job(result, benchmark);
    set_machine(result, &row->job.config);
    status described        = describe_plan(result, &row->job);
    result->allocated_bytes = row->prediction.largest_bytes;
    set_step(result, row);
    add_reasons(result, row);
    judge(result);
    benchmark_print_time(result->ended, sizeof(result->ended));
    free(text.data);
    free(benchmark);
    return described;
}

status predicted_compute(struct result *result, struct predict_row *row, bool wants_range)
{
    struct visitor visitor   = {result, row->explanation};
    row->explanation.visit   = visit;
    row->explanation.context = &visitor;
    predict_row_compute(row, wants_range);
    row->explanation.visit   = visitor.callers.visit;
    row->explanation.context = visitor.callers.context;
    TRY(row->support);
    return describe(result, row);
}

status predicted_write(struct output_folder *folder, struct result *result, const struct job *job, const char *output)
{
    TRY(report_create_folder(folder, result, output));
    struct text_stream text    = write_config(job);
    status             written = output_write(folder, "config.merged.ini", text.data, text.bytes);
    free(text.data);
    TRY(written);
    return report_write_run(folder, result);
}

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

// Adds the measured op times of the busiest pipeline stage, by kind and phase of op.
static void add_op_times(struct emulated_job *emulated, const struct plan *plan)
{
    struct result_emulation *shown    = &emulated->result.emulation;
    struct op_totals         totals   = {.count = {{0}}};
    double                   measured = 0.0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op       *op      = &plan->ops[i];
        const struct quantity *seconds = op->stream == STREAM_COMPUTE ? measured_find(&emulated->list, plan, op) : NULL;
        shown->ops += op->stream == STREAM_COMPUTE;
        if (seconds != NULL) {
            shown->measured_ops++;
            measured += seconds->value;
            waterfall_add_op(&totals, plan, op, seconds->value);
        }
    }
    shown->measured_share = measured / emulated->prediction.step_seconds;
    result_set_op_times(&emulated->result, &totals);
}

// Creates the output folder. Called before the emulation, so that a folder that is not writable fails at once.
static status open_result(struct emulated_job *emulated)
{
    enum { FILES_BYTES = 256 << 10, STAGE_BYTES = 128 << 10 };
    const struct benchmark *benchmark = emulated->benchmark;
    struct output_folder   *folder    = &emulated->folder;
    benchmark_describe(&emulated->result, benchmark, &emulated->comm, &emulated->backend, &emulated->devices);
    facts_add_environment(&emulated->result, NULL);
    TRY(describe_plan(&emulated->result, &benchmark->job));
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
                                              .visit           = visit_stage,
                                              .context         = result};
    struct plan                plan;
    TRY(predict_explain(&explanation, prediction, &job->request, machine));
    status built  = plan_build_stage(&plan, &job->request, prediction->busiest_stage);
    result->trace = (struct result_trace){.source       = RESULT_EMULATED,
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
    result_note(result, (struct result_reason){"part-simulated", VERDICT_EMULATED, -1, -1, ""},
                "%" PRId64 " of %" PRId64
                " ops of the busiest stage are measured; collectives and the other ops have the times of [hardware] "
                "%.100s",
                shown->measured_ops, shown->ops, config->hardware.profile);
    if (has_failed) {
        result_note(result, (struct result_reason){"not-finite", VERDICT_INVALID, -1, -1, ""},
                    "a loss or a gradient norm is not a number");
    }
}

static void close_result(struct emulated_job *emulated)
{
    struct result *result      = &emulated->result;
    result->emulation.stages   = emulated->emulation.stage_count;
    result->emulation.executed = emulated->emulation.executed;
    result->allocated_bytes    = emulated->emulation.allocated_bytes;
    emulated->backend.ops->describe(&emulated->backend, result->device, sizeof(result->device));
    add_step(result, emulated->prediction.step_seconds);
    mark(result, &emulated->benchmark->job.config, emulated->emulation.has_failed);
    judge(result);
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
    TRY(report_print(report_of_run(json, benchmark->is_verbose), result));
    if (!json) {
        printf("files: %s/\n", emulated->folder.path);
    }
    return (status){.exit_code = (int)result->exit_code};
}

// Returns section [hardware] of the job. Rates must be above 0. If the ops of every stage are measured, no compute op
// uses the rates, so unknown rates become 1. With EMULATE_FIRST, ops of other stages need the real rates.
static struct hardware_config known_machine(const struct job *job, enum emulate_stages stages)
{
    struct hardware_config hardware = job->config.hardware;
    if (stages == EMULATE_FIRST) {
        return hardware;
    }
    for (int i = 0; i <= RATE_COUNT; i++) {
        struct quantity *rate = i < RATE_COUNT ? &hardware.peak[i] : &hardware.memory_bandwidth;
        rate->value           = rate->value > 0.0 ? rate->value : 1.0;
    }
    hardware.multiprocessors = hardware.multiprocessors > 0 ? hardware.multiprocessors : 1;
    return hardware;
}

// Adds the times of communication ops that the hardware profile has measured.
static status add_communications(struct emulation *emulation, const struct job *job)
{
    struct measured_ops profile;
    status              result = measured_read_profile(&profile, &job->config);
    for (int32_t i = 0; i < profile.count && !failed(&result); i++) {
        if (op_is_communication((enum op_kind)profile.ops[i].key.kind)) {
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
    struct software_config software;
    struct machine         machine;
    TRY(predict_supports(&job->request, &hardware));
    TRY(environment_share_devices(&emulated->devices, &emulated->comm, &emulated->backend, 1));
    TRY(open_result(emulated));
    TRY(emulate(&emulated->emulation));
    TRY(add_communications(&emulated->emulation, job));
    emulate_list(&emulated->emulation, &emulated->list);
    machine          = predict_machine(&job->config, &emulated->list);
    machine.hardware = &hardware;
    machine.software = &software;
    option_set_defaults(software_options, &software);
    TRY(simulate_job(emulated, &machine));
    close_result(emulated);
    return write_result(emulated);
}

status emulate_job(const struct benchmark *benchmark, enum emulate_stages stages, int64_t repeats)
{
    const struct job    *job      = &benchmark->job;
    struct emulated_job *emulated = memory_allocate(sizeof(*emulated));
    emulated->benchmark           = benchmark;
    comm_open_alone(&emulated->comm);
    // Limits the threads to a rank's share of the node's cores in the full job.
    int64_t cores = cores_usable(), node = job->config.hardware.gpus_per_node, threads = job->config.run.threads;
    int64_t sharers = job->request.mesh.world < node ? job->request.mesh.world : node;
    threads         = threads > 0 ? threads : cores > sharers ? cores / sharers : 1;
    status result   = environment_open_backend(&emulated->backend, &job->config, &emulated->comm.topology, threads);
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
