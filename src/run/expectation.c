// SPDX-License-Identifier: MIT
// Expected step time: a prediction for gswbench on the machine of this run.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/predict.h"
#include "gswbench/text.h"
#include "internal.h"

// The machine to predict.
struct expected_machine {
    struct hardware_config hardware;
    struct measured_ops    measured;    // only of the configured profile
};

// Returns why there is no prediction, or NULL.
static const char *find_machine(struct expected_machine *found, const struct config *config,
                                const struct rank_environment *environment)
{
    const struct hardware_config     *configured = &config->hardware;
    const struct environment_devices *devices    = &environment->devices;
    const struct backend_ops         *backend    = environment->backend.ops;
    *found                                       = (struct expected_machine){.hardware = *configured};
    if (!backend->computes) {
        return "the null backend computes nothing";
    }
    if (!backend->is_device) {
        return configured->cores > 0
                   ? NULL
                   : "no hardware profile for these cores: write one with gswbench calibrate, and set hardware.profile";
    }
    if (devices->sharers > 1 || devices->kinds != 1) {
        return devices->sharers > 1 ? "ranks share a device" : "ranks have different devices";
    }
    if (strcmp(configured->device, devices->names[0]) == 0) {
        return NULL;
    }
    return config_find_hardware(&found->hardware, devices->names[0])
               ? NULL
               : "no hardware profile for this device: write one with gswbench calibrate, and set hardware.profile";
}

static double known(double value)
{
    return value > 0.0 ? value : NAN;
}

static status predict_on(struct result_expectation *expectation, const struct job *job, const struct machine *machine,
                         const struct result *result)
{
    double                     ideal = result_ideal_seconds(result, (enum flop_convention)result->figures.convention);
    struct predict_explanation explanation = {.ideal_seconds   = isnan(ideal) ? 0.0 : ideal,
                                              .attention_share = job_attention_share(job)};
    struct prediction          prediction;
    struct predict_range       range;
    TRY(predict_explain(&explanation, &prediction, &job->request, machine));
    TRY(predict_range(&range, &job->request, machine));
    expectation->step_seconds     = prediction.step_seconds;
    expectation->percent          = range.percent;
    expectation->measured_share   = prediction.measured_percent / 100.0;
    expectation->waterfall        = explanation.waterfall;
    expectation->peak             = known(machine->hardware->peak[precision_rate(job->config.precision.compute)].value);
    expectation->memory_bandwidth = known(machine->hardware->memory_bandwidth.value);
    return OK;
}

// Measured op times are used only with the configured profile.
static status expect(struct expected_machine *found, struct result *result, const struct job *job,
                     const struct rank_environment *environment)
{
    const struct config *config        = &job->config;
    bool                 is_configured = strcmp(found->hardware.profile, config->hardware.profile) == 0;
    TRY(is_configured ? measured_read_profile(&found->measured, config) : OK);
    const struct machine machine = {.hardware  = &found->hardware,
                                    .measured  = &found->measured,
                                    .sm_margin = environment->comm->processors,
                                    .zero_cta  = config->run.zero_cta != 0};
    return predict_on(&result->expectation, job, &machine, result);
}

void expectation_find(struct result *result, const struct job *job, const struct rank_environment *environment)
{
    struct expected_machine    found;
    struct result_expectation *expectation = &result->expectation;
    const char                *none        = find_machine(&found, &job->config, environment);
    status                     expected    = none != NULL ? fail("%s", none) : expect(&found, result, job, environment);
    if (failed(&expected)) {
        *expectation = (struct result_expectation){
            .step_seconds = NAN, .percent = NAN, .measured_share = NAN, .peak = NAN, .memory_bandwidth = NAN};
        text_copy(expectation->reason, sizeof(expectation->reason), expected.text);
    } else {
        bool is_named = strcmp(found.hardware.profile, "none") != 0;
        text_copy(expectation->profile, sizeof(expectation->profile), is_named ? found.hardware.profile : "[hardware]");
    }
    measured_free(&found.measured);
}
