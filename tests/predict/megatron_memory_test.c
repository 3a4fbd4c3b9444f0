// SPDX-License-Identifier: MIT
// Compares the predicted memory of Megatron-LM with the peak memory that its continuous integration measured
// (megatron_memory.csv).
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/job.h"
#include "gswbench/predict.h"
#include "line.h"

static const char defaults[] =
    "[model]\nlayers = 12\nhidden = 512\nheads = 8\nkv_heads = 8\nhead_dim = 64\nffn = 2048\nactivation = gelu\n"
    "norm = layernorm\npositions = learned\nattention_bias = yes\nmlp_bias = yes\ntied = yes\n"
    "vocab = 50257\nvocab_multiple = 128\n[train]\nsequence = 1024\nmicro_batch = 4\nglobal_batch = 32\n"
    "[software]\nprofile = megatron-2026\nexpert_gates = separate\nexpert_workspace_mib = 0\n";

enum { LINE = 4096, SETTINGS = 48 };

struct sum {
    int    cases;
    double size, worst;
};

// Returns the bytes that the last rank of a case allocates.
static int64_t allocated(int64_t ranks, char *settings, const char *name)
{
    const char           *overrides[SETTINGS];
    struct text_buffer    errors  = {.text = NULL};
    struct config_request request = {.name = "case", .overrides = overrides, .ranks = ranks};
    struct config         config;
    struct plan_request   job;
    struct plan           plan;
    struct footprint      footprint;
    for (char *one = strtok(settings, ";\n"); one != NULL; one = strtok(NULL, ";\n")) {
        cr_assert_lt(request.override_count, SETTINGS);
        overrides[request.override_count++] = one;
    }
    status read = config_read_text(&config, &request, defaults, strlen(defaults), &errors);
    read        = failed(&read) ? read : job_check(&job, &config);
    cr_assert_not(failed(&read), "%s: %s %s", name, read.text, errors.text);
    job.rank        = ranks - 1;
    job.is_unplaced = true;
    status built    = plan_build(&plan, &job);
    cr_assert_not(failed(&built), "%s: %s", name, built.text);
    footprint_find(&footprint, &plan, &config.software, &config.hardware, config.hardware.gpus_per_node);
    plan_free(&plan);
    return footprint.allocated;
}

static void add(struct sum *sum, double error)
{
    sum->cases++;
    sum->size += fabs(error);
    sum->worst = fmax(sum->worst, fabs(error));
}

// Adds a line of the file: case,file,gpu,effects,ranks,peak,settings
static void add_case(char *line, struct sum *plain, struct sum *all)
{
    char   *field[7] = {line}, *comma;
    int64_t bytes;
    for (int i = 1; i < 7; i++) {
        comma = strchr(field[i - 1], ',');
        cr_assert_not_null(comma, "%s", line);
        *comma   = '\0';
        field[i] = comma + 1;
    }
    bytes        = allocated(atoll(field[4]), field[6], field[0]);
    double error = 100.0 * ((double)bytes / atof(field[5]) - 1.0);
    add(all, error);
    if (strcmp(field[3], "plain") == 0) {
        add(plain, error);
    }
    cr_expect_leq(fabs(error), strcmp(field[3], "plain") == 0 ? 4.0 : 12.0, "%s, %s: %+.1f %%", field[0], field[1],
                  error);
}

Test(megatron_memory, agrees_with_measured_peaks)
{
    char       line[LINE];
    struct sum plain = {.cases = 0}, all = {.cases = 0};
    setenv("GSWBENCH_CONFIGS", line_of("%s/configs", GSWBENCH_SOURCE_DIR), 1);
    FILE *file = fopen(line_of("%s/tests/predict/megatron_memory.csv", GSWBENCH_SOURCE_DIR), "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (line[0] != '#' && strncmp(line, "case,", strlen("case,")) != 0) {
            add_case(line, &plain, &all);
        }
    }
    fclose(file);
    cr_expect_eq(all.cases, 237);
    cr_expect_eq(plain.cases, 39);
    cr_expect_leq(plain.size / plain.cases, 1.2);
    cr_expect_leq(all.size / all.cases, 1.3);
    printf("%d cases: size %.2f %%, worst %.1f %%; %d plain: %.2f %%, %.1f %%\n", all.cases, all.size / all.cases,
           all.worst, plain.cases, plain.size / plain.cases, plain.worst);
}
