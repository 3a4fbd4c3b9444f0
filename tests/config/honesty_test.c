// SPDX-License-Identifier: MIT
// Tests that parameters of the cost model apply to all jobs. None may depend on a row (a published job), a model or a
// number of ranks, and only a few may be fitted to published times.
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/job.h"
#include "gswbench/text.h"
#include "layouts.h"
#include "line.h"

enum { PARAMETERS_MAX = 68, FITTED_MAX = 15 };

typedef void line_visitor(const char *path, const char *section, const char *key, int *count);

// Calls a function for every line of the files that have this ending in a folder of the source tree. In INI files, it
// is called only for lines like "key = ...".
static int visit(const char *folder, const char *ending, line_visitor *on_line)
{
    char line[1024], section[1024] = "";
    int  count = 0, files = 0;
    DIR *directory = opendir(line_of("%s/%s", GSWBENCH_SOURCE_DIR, folder));
    cr_assert_not_null(directory, "%s", folder);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        size_t length = strlen(entry->d_name), tail = strlen(ending);
        if (length < tail || strcmp(entry->d_name + length - tail, ending) != 0) {
            continue;
        }
        const char *path = line_of("%s/%s/%s", GSWBENCH_SOURCE_DIR, folder, entry->d_name);
        FILE       *file = fopen(path, "r");
        cr_assert_not_null(file, "%s", path);
        for (files++; fgets(line, sizeof(line), file) != NULL;) {
            line[strcspn(line, "\n")] = '\0';
            if (line[0] == '[') {
                snprintf(section, sizeof(section), "%s", line);
            } else if (line[0] != '#' && line[0] != '\0') {
                line[ending[1] == 'i' ? strcspn(line, " =") : strlen(line)] = '\0';
                on_line(entry->d_name, section, line, &count);
            }
        }
        fclose(file);
    }
    closedir(directory);
    cr_assert_gt(files, 2, "%s", folder);
    return count;
}

// A configuration may state facts of its machine or job (`facts` below), such as the kernel of its loss, the number of
// offloaded layers or the length of its texts. A [when] section may change some of them. All other parameters belong to
// a profile of [hardware] or [software].
static void expect_global(const char *path, const char *section, const char *key, int *count)
{
    static const char facts[]   = "profile memory_gb adapter_kernels bucket_elements frozen_transposes "
                                  "fp8_activation_inputs gpus_per_node loss_bytes fp8_attention fp8_head "
                                  "expert_nodes launch_graphs logit_copies parallel_logit_copies offloaded_layers "
                                  "text_tokens gather_blocks";
    static const char changed[] = "software.profile software.frozen_transposes software.fp8_attention "
                                  "software.fp8_activation_inputs software.fp8_head software.expert_nodes "
                                  "software.launch_graphs software.offloaded_layers";
    bool              is_value  = false;
    (*count)++;
    if (strncmp(section, "[when", 5) == 0) {
        is_value =
            strncmp(key, "hardware.", 9) == 0 || (strncmp(key, "software.", 9) == 0 && !text_has_word(changed, key));
    } else if (strcmp(section, "[hardware]") == 0 || strcmp(section, "[software]") == 0) {
        is_value = !text_has_word(facts, key);
    }
    cr_expect_not(is_value, "%s: %s %s: a value of predictions belongs to a profile", path, section, key);
}

Test(honesty, no_config_has_a_value_of_its_own_for_predictions)
{
    cr_expect_gt(visit("configs", ".ini", expect_global), 200);
    cr_expect_gt(visit("configs/atlas", ".ini", expect_global), 200);
}

static void expect_fitted(const char *path, const char *section, const char *key, int *count)
{
    bool is_fitted = strcmp(key, "fitted") == 0, has_experts = false;
    *count += is_fitted;
    static const char *const apart[] = {"mixtral", "qwen", "gpt-oss", "deepseek", "moonlight", "kimi-k2", "llama4"};
    for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++) {
        has_experts = has_experts || strstr(path, apart[i]) != NULL;
    }
    cr_expect(!is_fitted || strcmp(section, "[published]") == 0, "%s: %s", path, section);
    cr_expect(!is_fitted || !has_experts, "%s", path);
}

// No parameter may be fitted to published step times of MoE models, so that the errors for these are prediction errors.
// Grok-1 is the exception; bench/fit_predictor prints the errors without it.
Test(honesty, no_value_is_fitted_to_experts_other_than_grok)
{
    cr_expect_gt(visit("configs", ".ini", expect_fitted), 2);
    cr_expect_gt(visit("configs/atlas", ".ini", expect_fitted), 2);
}

// A prediction error widens the stated range, but does not change the predicted time, so it does not count as fitted.
static bool is_prediction_error(const char *key)
{
    return strcmp(key, "prediction_error") == 0 || strcmp(key, "expert_prediction_error") == 0;
}

static void expect_unconditional(const char *path, const char *section, const char *key, int *count)
{
    bool is_fit = strcmp(section, "[fit]") == 0;
    *count += is_fit && !is_prediction_error(key);
    cr_expect(is_fit || strcmp(section, "[hardware]") == 0 || strcmp(section, "[software]") == 0, "%s: %s %s", path,
              section, key);
}

Test(honesty, profiles_depend_on_nothing_and_few_values_are_fitted)
{
    int fitted = visit("configs/hardware", ".ini", expect_unconditional) +
                 visit("configs/software", ".ini", expect_unconditional);
    cr_expect_leq(fitted, FITTED_MAX);
}

static int count_parameters(const struct option *options, const void *section)
{
    int count = 0;
    for (; options->key != NULL; options++) {
        struct quantity quantity;
        if (options->type == OPTION_QUANTITY && !is_prediction_error(options->key)) {
            memcpy(&quantity, (const char *)section + options->offset, sizeof(quantity));
            count += quantity.origin != QUANTITY_SPEC;
        }
    }
    return count;
}

Test(honesty, has_few_parameters_beside_data_sheets)
{
    struct job job;
    layout_job(&job, "llama2-70b-fsdp", 64, "");
    int count = count_parameters(hardware_options, &job.config.hardware) +
                count_parameters(software_options, &job.config.software);
    cr_expect_leq(count, PARAMETERS_MAX, "%d", count);
}

static void expect_no_model(const char *path, const char *section, const char *key, int *count)
{
    static const char *const names[] = {"llama", "grok", "nemotron", "mixtral", "torchtitan", "maxtext", "nemo"};
    (void)section;
    (*count)++;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        cr_expect_null(strstr(key, names[i]), "%s knows %s", path, names[i]);
    }
}

Test(honesty, no_cost_knows_a_model_or_a_program_by_name)
{
    cr_expect_gt(visit("src/predict", ".c", expect_no_model), 300);
}
