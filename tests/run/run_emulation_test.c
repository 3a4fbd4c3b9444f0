// SPDX-License-Identifier: MIT
// Runs that emulate a job on one device.
#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

#include "whole_run.h"

TestSuite(run_emulation, .init = make_folder, .fini = remove_folder, .timeout = 100);

#define EMULATION "run --config tiny-llama --backend host --set hardware.node_bandwidth=1e10 --repeat 1 "

Test(run_emulation, emulates_a_job_on_one_device)
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
    cr_expect_not_null(strstr(output, "\nRESULT EMULATED  4 ranks emulated on one device: 2 of 4 stages executed, "),
                       "%s", output);
}

static void expect_refusal(const char *line, int exit_code, const char *text)
{
    status result = run_here(line);
    cr_expect_eq(result.exit_code, exit_code, "%s: %d", line, result.exit_code);
    cr_expect_not_null(strstr(result.text, text), "%s: %s", line, result.text);
}

Test(run_emulation, says_what_an_emulation_lacks)
{
    expect_refusal(EMULATION "--emulate 2 --ranks 2", EXIT_USAGE, "leave --ranks and --weights-out out");
    expect_refusal(EMULATION "--emulate 2 --stages last", EXIT_USAGE, "--stages last: expected distinct, all or first");
    expect_refusal(TINY " --stages all", EXIT_USAGE, "--stages needs --emulate N");
    expect_refusal("run --config tiny-llama --backend host --emulate 2", EXIT_CONFIG,
                   "[hardware] node_bandwidth is unknown");
    expect_refusal(EMULATION "--emulate 2 --set parallel.pp=2 --stages first", EXIT_CONFIG,
                   "[hardware] peak_bf16 is unknown");
    expect_refusal(EMULATION "--emulate 3", EXIT_CONFIG, "1 configuration error");
}
