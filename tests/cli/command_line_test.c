// SPDX-License-Identifier: MIT
// Tests malformed command lines and the messages for them.
#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

#include "command.h"

Test(command_line, is_not_echoed_to_a_terminal_as_it_is)
{
    expect_error("\x1b[31mx\xe2\x80\xae", 2, "unknown command ?[31mx?: gswbench --help lists the commands");
    expect_error("run --\x1b]0;x", 2, "unknown flag --?]0;x: gswbench run --help lists the flags");
    expect_error("report \x9b", 2,
                 "?: No such file or directory: name the folder of a run, as in the last line of its output, or its "
                 "result.json");
}

Test(command_line, frees_the_batch_size_that_an_override_contradicts)
{
    expect_success("check --config llama3.1-8b --ranks 8 --set train.global_batch=256");
    expect_output("256 sequences of 8192 tokens; micro batch 1, accumulation 64\n");
    expect_error("check --config llama3.1-8b --ranks 8 --set train.global_batch=256 --set train.accumulation=3", 3,
                 "1 configuration error");
    cr_expect_not_null(strstr(errors.text, "[train] accumulation = 3 contradicts global_batch = 256: "), "%s",
                       errors.text);
}

Test(command_line, takes_fewer_steps_than_the_usual_warmup)
{
    expect_success("run --config tiny-llama --ranks 1 --steps 5 --layers 1 --backend null --out /tmp/gswbench-cli-run");
    expect_output("1 warm-up");
    expect_error("run --config tiny-llama --ranks 1 --steps 5 --warmup 5", 3, "1 configuration error");
}

Test(command_line, sweeps_whatever_layout_the_configuration_has)
{
    expect_error("check --config llama3.1-70b --ranks 8 --layers 2 --set train.global_batch=8", EXIT_CONFIG,
                 "1 configuration error");
    expect_success("predict --config llama3.1-70b --ranks 8 --layers 2 --set train.global_batch=8 --sweep --json");
    json_t *swept = json_loads(output, 0, NULL);
    cr_expect_eq(json_array_size(json_object_get(swept, "best")), 10);
    cr_expect(json_is_null(json_object_get(swept, "own")));
    json_decref(swept);
    expect_error(
        "predict --config llama3.1-70b --ranks 7 --layers 2 --set train.global_batch=8 --sweep", EXIT_CONFIG,
        "no layout of 7 ranks is valid for 8 sequences of 8192 tokens per step: change --ranks, or train.global_batch");
}
