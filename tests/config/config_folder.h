// SPDX-License-Identifier: MIT
// Gives each test its own folder of installed configurations, and reads configurations from strings.
#pragma once

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "folder.h"
#include "gswbench/config.h"
#include "gswbench/text.h"

#define LENGTH(array) (int)(sizeof(array) / sizeof((array)[0]))

// Creates the folder of installed configurations. Each test runs in its own process, so it may change its working
// folder.
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

// Reads the configuration `text`, or the file that the request names if `text` is NULL.
static inline struct config read_request(const struct config_request *request, const char *text)
{
    struct config      config;
    struct text_buffer errors = {0};
    status             result = text != NULL ? config_read_text(&config, request, text, strlen(text), &errors)
                                             : config_read(&config, request, &errors);
    cr_assert_str_empty(result.text, "%s", errors.text);
    text_free(&errors);
    return config;
}

// Reads a configuration text with overrides, which are separated by "|".
static inline struct config read_text(const char *text, int64_t ranks, const char *overrides)
{
    char                  copy[512], *rest;
    const char           *list[8];
    struct config_request request = {.name = "text.ini", .overrides = list, .ranks = ranks};
    cr_assert(text_copy(copy, sizeof(copy), overrides));
    for (char *one = strtok_r(copy, "|", &rest); one != NULL; one = strtok_r(NULL, "|", &rest)) {
        list[request.override_count++] = one;
    }
    return read_request(&request, text);
}
