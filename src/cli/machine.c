// SPDX-License-Identifier: MIT
// Runs the commands accept, preflight and calibrate of gswbench, which measure this machine on all ranks, and doctor,
// which examines this host.
#include <stdlib.h>

#include "gswbench/calibrate.h"
#include "gswbench/doctor.h"
#include "gswbench/preflight.h"
#include "gswbench/show.h"
#include "internal.h"

// Reads the job into benchmark and calls `rank` on every rank with `state`, the struct that contains benchmark.
static status measure(const struct arguments *arguments, struct benchmark *benchmark, launch_rank *rank,
                      const void *state)
{
    TRY(benchmark_read(benchmark, &arguments->config));
    const struct job *job = &benchmark->job;
    status result = launch_ranks(&job->config.run, (int)job->request.mesh.world, rank, state, arguments->config.errors);
    free(benchmark->config_text);
    return result;
}

static double seconds_of(const struct arguments *arguments)
{
    enum { DEFAULT_SECONDS = 60 };
    return (double)(arguments->seconds > 0 ? arguments->seconds : DEFAULT_SECONDS);
}

const struct flag accept_flags[] = {
    CONFIG_FLAGS(config),
    HEADING("Run"),
    OVERRIDE_FLAG(config.overrides, "--steps", "N", "run.steps", "steps of the run, including warm-up"),
    INTEGER_FLAG(seconds, "--seconds", "N", 1, 3600, "time limit of the preflight in seconds; default: 60"),
    BACKEND_FLAGS(config, "auto, cuda, host"),
    HEADING("Output"),
    OVERRIDE_FLAG(config.overrides, "--out", "DIR", "run.output",
                  "parent folder of the run's folder; default: results"),
    TEXT_FLAG(output, "-o", "DIR", "folder for accept.json and accept.html; default: accept"),
    TEXT_FLAG(sign_key, "--sign", "KEY",
              "sign accept.json and result.json with an SSH key; gswbench report verifies them"),
    SWITCH_FLAG(json, "--json", "print accept.json"),
    END_FLAGS,
};

status command_accept(const struct arguments *arguments)
{
    const char   *output = arguments->output != NULL ? arguments->output : "accept";
    struct accept accept = {.preflight = {.json = arguments->json, .output = output, .seconds = seconds_of(arguments)}};
    accept.preflight.benchmark.sign_key = arguments->sign_key;
    return measure(arguments, &accept.preflight.benchmark, accept_rank, &accept);
}

const struct flag preflight_flags[] = {
    CONFIG_FLAGS(config),
    HEADING("Measurement"),
    INTEGER_FLAG(seconds, "--seconds", "N", 1, 3600, "time limit in seconds; default: 60"),
    BACKEND_FLAGS(config, "auto, cuda, host"),
    HEADING("Output"),
    TEXT_FLAG(output, "-o", "DIR", "folder for preflight.txt, preflight.json and preflight.html"),
    SWITCH_FLAG(json, "--json", "print JSON"),
    END_FLAGS,
};

status command_preflight(const struct arguments *arguments)
{
    struct preflight preflight = {
        .output = arguments->output, .json = arguments->json, .seconds = seconds_of(arguments)};
    return measure(arguments, &preflight.benchmark, preflight_rank, &preflight);
}

const struct flag calibrate_flags[] = {
    CONFIG_FLAGS(config),
    HEADING("Measurement"),
    BACKEND_FLAGS(config, "auto, cuda, host"),
    HEADING("Output"),
    TEXT_FLAG(output, "-o", "FILE", "hardware profile to write"),
    SWITCH_FLAG(json, "--json", "also print the measurements as JSON"),
    END_FLAGS,
};

status command_calibrate(const struct arguments *arguments)
{
    struct calibration calibration = {.output = arguments->output, .json = arguments->json};
    if (arguments->output == NULL) {
        return fail_as(EXIT_USAGE, "-o is missing: name the file to write");
    }
    return measure(arguments, &calibration.benchmark, calibrate_rank, &calibration);
}

const struct flag doctor_flags[] = {
    TEXT_FLAG(output, "--out", "DIR", "folder of results, whose space is checked; default: here"),
    SWITCH_FLAG(json, "--json", "print JSON"),
    END_FLAGS,
};

status command_doctor(const struct arguments *chosen)
{
    struct doctor doctor = {.root = "", .folder = chosen->output != NULL ? chosen->output : "."};
    doctor_examine(&doctor);
    int64_t wrong = doctor.states[DOCTOR_WRONG];
    if (chosen->json) {
        show_json(json_from_struct(doctor_fields, &doctor));
    } else {
        doctor_print(&doctor, stdout);
    }
    doctor_free(&doctor);
    return (status){.exit_code = wrong > 0 ? EXIT_LAUNCH : EXIT_VALID, .text = ""};
}
