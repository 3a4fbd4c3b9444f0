// SPDX-License-Identifier: MIT
// A job: a checked configuration at a rank count, with all derived values that need no plan.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/arena.h"
#include "gswbench/config.h"
#include "gswbench/mesh.h"
#include "gswbench/plan_build.h"
#include "gswbench/status.h"
#include "gswbench/text.h"
#include "gswbench/verify.h"

// Command-line selection of a configuration, shared by all commands.
struct job_selection {
    const char      *name;
    struct text_list overrides;
    int64_t          ranks;
    bool             skips_fits;    // ignore fits of hardware and software profiles
};

// Prints where the options that an error names were set (config_print_places), for an error found after the
// configuration was read.
void job_print_places(struct text_buffer *places, const struct job_selection *selection, const char *text);

// Reads and checks the selected configuration; errors receives one line per error.
status job_read_config(struct config *config, const struct job_selection *selection, struct text_buffer *errors);

// Resolves the layout, and checks sections and rules across sections. A failure has one line per error. With
// an unknown rank count and an axis on auto, the layout is not resolved.
status job_check(struct plan_request *request, const struct config *config);

// The same without checks of the [parallel] layout.
status job_check_sections(const struct config *config);

// Checks divisibility by the axes of a resolved layout.
status job_check_layout(const struct plan_request *request, const struct config *config);

// The sections that determine a plan; they point into the configuration.
struct plan_sections job_sections(const struct config *config);

// Whether the rank count is unknown and an axis is auto, so that the layout cannot be resolved.
bool job_is_open(const struct config *config);

struct job {
    struct config       config;        // axes and batch are resolved: nothing is auto
    struct plan_request request;       // input of plan_build, for rank 0
    status              support;       // plan_supports
    bool                has_layout;    // false: [parallel] does not fit; a layout will be chosen
    bool                is_open;       // rank count unknown and an axis auto: any fitting count
};
status job_read(struct job *job, const struct job_selection *selection, struct text_buffer *errors);

// For jobs whose layout will be chosen: [parallel] may not fit, but the global batch must be known.
status job_read_open(struct job *job, const struct job_selection *selection, struct text_buffer *errors);

// The same as job_read for one row of a configuration.
status job_read_row(struct job *job, const struct job_selection *selection, const struct config_row *row,
                    struct text_buffer *errors);

// Rows of the configuration, or one for a selected rank count.
status job_rows(const struct job_selection *selection, struct config_row rows[CONFIG_ROWS_MAX], int *count,
                struct text_buffer *errors);

// Writes the layout: "fsdp 128 dp 4", "one rank".
const char *job_layout(const struct job *job, char *text, size_t bytes);

// Warns of a slow layout on [hardware]: tp across nodes. NULL: none.
const char *job_warning(const struct job *job, char *text, size_t bytes);

// Throughput and MFU of the published step time and FLOP convention; NaN without one and for a proxy.
double job_published_tokens_per_second(const struct job *job);
double job_published_mfu(const struct job *job);

// job_ideal_seconds: time of a rank's share of the model FLOPs at the peak of [hardware]; NaN without a peak. FLOPs
// follow the published convention if there is one, else FLOPS_FULL. MFU is NaN above 1.
double job_ideal_seconds(const struct job *job);
double job_attention_share(const struct job *job);
double job_mfu(const struct job *job, double seconds);
double job_tokens_per_second(const struct job *job, double seconds);

// Whether a configuration with this name or path exists.
bool job_names_config(const char *word);

// Devices and cores of a machine.
struct job_machine {
    int         devices;    // 0: the host backend
    const char *device;
    int64_t     device_bytes;    // free on the first device
    int         cores;
};

// Builds a configuration from settings ("--from model.layers=32") alone; those of the selection come last.
status job_read_settings(struct config *config, const struct job_selection *selection, const char *const *first,
                         int count, struct text_buffer *errors);

// choose.c: reads the published config or the model that the selection names, or chooses a job for the machine. Sets
// the selection's ranks. machine is unused if the selection has a name.
status job_choose(struct config *config, struct job_selection *selection, const struct job_machine *machine,
                  struct text_buffer *errors);

// Reads jobs of other programs: config.json of Hugging Face, arguments of Megatron, TOML of torchtitan.

struct import {
    const char      *format;      // "Hugging Face", "Megatron", "torchtitan"
    struct text_list settings;    // "--from SECTION.KEY=VALUE"
    struct text_list passed;      // names in the file that have no meaning here
};

// Reads a file; texts belong to the arena. Fails if the file has no size of a model, or a value that this program
// cannot express.
status import_read(struct import *import, const char *path, struct arena *arena);

// Returns the SECTION.KEY that has the meaning of another program's name ("--tensor-model-parallel-size", "seq_len"),
// or NULL.
const char *import_find(const char *name);

// Verifies a whole job from its request: job_verify_plans (verify.h) with plan_build. Ignores the request's rank.
status job_verify(const struct plan_request *request, struct job_proof *proof);

// Executed FLOPs of the whole mesh per sequence of the global batch. plan must come from request. Builds the plans of
// the other pipeline stages.
status plan_hardware_flops(const struct plan *plan, const struct plan_request *request, double *flops);

// Returns why the named backend cannot run the job on any device, or OK. Checks only the ops of the request's rank,
// since other ranks have the same kinds.
status proof_check_backend(const struct plan_request *request, const char *backend);

// A job, and its proof if this version can run it. FLOPs by convention; NaN: unknown.
struct proved_job {
    struct job       job;
    double           flops[FLOPS_COUNT];
    struct job_proof proof;
    int64_t          connection_bytes;                   // estimate for the rank with the largest plan
    char             excess[192];                        // warning about SMs that communication may occupy; "": none
    double           published_mfu, published_tokens;    // derived from the published step time; NaN: not published
    char             layout[256], warning_text[128];
    const char      *warning;    // NULL: none
    bool             is_fit;
    const bool      *fits;    // is_fit; NULL: the device's memory is unknown
    // The program of [software] on its largest rank. job_prove leaves these fields to its caller.
    int64_t     program_bytes;    // 0: its memory is not modelled
    bool        is_program_fit;
    const bool *program_fits;    // is_program_fit; NULL: unknown
};

// Fills the other fields of a zeroed proved_job from its job.
status job_prove(struct proved_job *proved);
