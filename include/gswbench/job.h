// SPDX-License-Identifier: MIT
// Declares a job: a checked configuration with a number of ranks, and all derived values that need no plan.
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

// The configuration that a command line selects. All commands use this struct.
struct job_selection {
    const char      *name;
    struct text_list overrides;
    int64_t          ranks;
    bool             skips_fits;    // true: ignore the fitted values of hardware and software profiles
    // Receives one line per error of the configuration.
    struct text_buffer *errors;
};

// Prints the file and line of each option that an error names, for an error found after the configuration was read.
void job_print_places(struct text_buffer *places, const struct job_selection *selection, const char *text);

// Reads and checks the selected configuration.
status job_read_config(struct config *config, const struct job_selection *selection);

// Resolves the layout, and checks sections and rules across sections. A failure has one line per error. If the rank
// count is unknown and an axis is auto, the layout stays unresolved.
status job_check(struct plan_request *request, const struct config *config);

// Like job_check, but neither resolves nor checks the layout in [parallel].
status job_check_sections(const struct config *config);

// Checks that sizes of model and batch are divisible by the axes of a resolved layout.
status job_check_layout(const struct plan_request *request, const struct config *config);

// Returns pointers to the sections of the configuration that determine a plan.
struct plan_sections job_sections(const struct config *config);

// Returns whether the number of ranks is unknown and an axis is auto, so that the layout cannot be resolved.
bool job_is_open(const struct config *config);

struct job {
    struct config       config;        // the configuration with resolved axes and batch sizes
    struct plan_request request;       // input of plan_build for rank 0
    status              support;       // result of plan_supports: whether this version can run the job
    bool                has_layout;    // false: [parallel] is invalid for these ranks; the caller chooses a layout
    bool                is_open;       // no rank count, and an axis is auto (job_is_open); the caller chooses a count
};
status job_read(struct job *job, const struct job_selection *selection);

// Like job_read, for callers that choose a layout: [parallel] need not fit, but the global batch must be known.
status job_read_open(struct job *job, const struct job_selection *selection);

// Like job_read, for one row of the configuration's published table.
status job_read_row(struct job *job, const struct job_selection *selection, const struct config_row *row);

// Lists the rows of the configuration's published table, or a single row if the selection has a rank count.
status job_rows(const struct job_selection *selection, struct config_row rows[CONFIG_ROWS_MAX], int *count);

// Formats the layout: "fsdp 128 dp 4", or "one rank".
const char *job_layout(const struct job *job, char *text, size_t bytes);

// Returns a warning about a layout that is slow on [hardware], such as tp across nodes, or NULL.
const char *job_warning(const struct job *job, char *text, size_t bytes);

// Return throughput and MFU for the published step time and FLOP convention. NaN if none is published, or for a model
// with reduced layers ([run] layers).
double job_published_tokens_per_second(const struct job *job);
double job_published_mfu(const struct job *job);

// job_ideal_seconds returns the time of a rank's share of the model FLOPs at the peak of [hardware]; NaN without a
// peak. FLOPs follow the published convention if there is one, else FLOPS_FULL. job_attention_share returns the
// fraction of attention in these FLOPs. job_mfu and job_tokens_per_second are for a step of `seconds`. An MFU above 1
// becomes NaN, since it must be wrong.
double job_ideal_seconds(const struct job *job);
double job_attention_share(const struct job *job);
double job_mfu(const struct job *job, double seconds);
double job_tokens_per_second(const struct job *job, double seconds);

// Returns whether a configuration with this name or path exists.
bool job_names_config(const char *word);

// Devices and cores of a machine.
struct job_machine {
    int         devices;    // 0: the host backend
    const char *device;
    int64_t     device_bytes;    // bytes that are free on the first device
    int         cores;
};

// Builds a configuration without a file, from the settings `first` ("--from model.layers=32"). The selection's
// overrides take precedence.
status job_read_settings(struct config *config, const struct job_selection *selection, const char *const *first,
                         int count);

// Reads the published config or the model that the selection names, or chooses a job for the machine. Sets the ranks.
status job_choose(struct config *config, struct job_selection *selection, const struct job_machine *machine);

// The following functions read jobs of other programs: config.json of Hugging Face, arguments of Megatron, TOML of
// torchtitan.

enum import_format { IMPORT_HUGGING_FACE, IMPORT_MEGATRON, IMPORT_TORCHTITAN };

struct import {
    enum import_format format;
    struct text_list   settings;    // "--from SECTION.KEY=VALUE"; an option occurs once
    const char        *passed;      // "NAME, NAME": names in the file that set no option
};

// Reads a job file of another program; the texts belong to the arena. Fails if the file gives no model sizes, or has a
// value that no option can express.
status import_read(struct import *import, const char *path, struct arena *arena);

// Returns the option SECTION.KEY that corresponds to another program's name ("--seq-length", "seq_len"), or NULL.
const char *import_find(const char *name);

// Verifies a whole job: builds the plans of its ranks, checks each plan, and checks that the ranks' communication fits
// together and cannot deadlock (job_verify_plans). Ignores the request's rank.
status job_verify(const struct plan_request *request, struct job_proof *proof);

// Computes the FLOPs that all ranks together execute per sequence of the global batch. `plan` must be built from
// `request`. Builds the plans of the other pipeline stages.
status plan_hardware_flops(const struct plan *plan, const struct plan_request *request, double *flops);

// A job with the results of `gswbench check`. proof is set only if this version can run the job.
struct proved_job {
    struct job       job;
    double           flops[FLOPS_COUNT];    // by enum flop_convention; NaN: unknown
    struct job_proof proof;
    int64_t          connection_bytes;                   // estimate of NCCL's memory on the rank with the largest plan
    char             excess[192];                        // warning about SMs that communication may occupy; "": none
    double           published_mfu, published_tokens;    // MFU and tokens/s of the published step time; NaN: none
    char             layout[256], warning_text[128];
    const char      *warning;    // NULL: none
    bool             is_fit;
    const bool      *fits;    // points to is_fit; NULL: the device's memory is unknown
    // Memory of the framework that [software] models, on the rank that needs most. The caller sets it after job_prove.
    int64_t        program_need;
    const int64_t *program_bytes;    // points to program_need; NULL: the framework has no memory model
    bool           is_program_fit;
    const bool    *program_fits;    // points to is_program_fit; NULL: unknown
};

// Checks a job, and sets the fields from `flops` to `fits`. The caller sets `job` and zeroes all other fields.
status job_prove(struct proved_job *proved);
// Returns the memory that the rank with the largest plan needs: the plan, NCCL's connections and the CUDA context.
int64_t job_device_bytes(const struct proved_job *proved);
