// SPDX-License-Identifier: MIT
// Shipped machines, for comparison with published results.
#ifndef GSWBENCH_TESTS_SHIPPED_MACHINE_H
#define GSWBENCH_TESTS_SHIPPED_MACHINE_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/config.h"

// A shipped machine, with gswbench as the framework.
static inline struct config read_machine(const char *profile)
{
    struct config         config;
    struct text_buffer    errors      = {0};
    char                  line[128]   = "hardware.profile=";
    const char *const     overrides[] = {strcat(line, profile)};
    struct config_request request     = {
            .name = GSWBENCH_SOURCE_DIR "/configs/tiny-llama.ini", .overrides = overrides, .override_count = 1};
    setenv("GSWBENCH_CONFIGS", GSWBENCH_SOURCE_DIR "/configs", 1);
    status result = config_read(&config, &request, &errors);
    cr_assert(!failed(&result), "%s", errors.text);
    return config;
}

#endif
