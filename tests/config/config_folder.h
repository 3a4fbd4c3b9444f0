// SPDX-License-Identifier: MIT
// A folder of installed configurations for each test, and configurations read from strings.
#pragma once

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "folder.h"
#include "gswbench/config.h"

#define LENGTH(array) (int)(sizeof(array) / sizeof((array)[0]))

// Creates a folder of installed configurations for one test. Each test runs in its own process, so chdir is safe.
static inline void install(void)
{
    enter_folder();
    mkdir("models", 0700);
    mkdir("hardware", 0700);
    write_text("models/small.ini", "[model]\nfamily = llama\nlayers = 4\nhidden = 64\nheads = 4\n");
    write_text("models/bad.ini", "[model]\nlayers = x\npreset = small\n[train]\nsequence = 1\n");
    write_text("hardware/box.ini", "[hardware]\ngpus_per_node = 2\npeak_bf16 = 989e12\n");
    write_text("job.ini", "[model]\npreset = small\nhidden = 128\n[hardware]\nprofile = box\npeak_bf16 = 5e6\n");
    write_text("here", "[run]\nsteps = 11\n");
    setenv("GSWBENCH_CONFIGS", folder, 1);
}

static inline struct config read_text(const char *text, int64_t ranks, int count, const char *const *overrides)
{
    struct config         config;
    struct text_buffer    errors  = {0};
    struct config_request request = {
        .name = "text.ini", .overrides = overrides, .override_count = count, .ranks = ranks};
    status result = config_read_text(&config, &request, text, strlen(text), &errors);
    cr_assert_str_empty(result.text, "%s", errors.text);
    text_free(&errors);
    return config;
}
