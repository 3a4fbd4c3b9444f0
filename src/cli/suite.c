// SPDX-License-Identifier: MIT
// gswbench suite: runs a list of jobs in one launch. With --dry-run, only prints which of them can run and for how
// long.
#include <string.h>

#include "gswbench/show.h"
#include "gswbench/suite.h"
#include "internal.h"

const struct flag suite_flags[] = {
    OPERANDS(words, "NAME",
             "installed suite, or a file with rows NAME = CONFIG SECTION.KEY=VALUE ...; default: list the suites"),
    HEADING("Rows"),
    LIST_FLAG(config.overrides, "--set", "SECTION.KEY=VALUE", "override an option of every row; repeatable"),
    INTEGER_FLAG(config.ranks, "--ranks", "N", 1, 1048576, "number of ranks; default: the launched ones"),
    OVERRIDE_FLAG(config.overrides, "--gpu", "NAME", "hardware.profile",
                  "GPU of predictions and published rows, e.g. h100-sxm"),
    OVERRIDE_FLAG(config.overrides, "--layers", "N", "run.layers", "use only N layers; results are marked as proxies"),
    OVERRIDE_FLAG(config.overrides, "--steps", "N", "run.steps", "steps of each run, including warm-up"),
    DOLLARS_FLAG,
    HEADING("Run"),
    INTEGER_FLAG(seconds, "--seconds", "N", 1, 3600, "time limit of the preflight in seconds; default: 60"),
    BACKEND_FLAGS(config, "auto, cuda, host"),
    SWITCH_FLAG(dry_run, "--dry-run", "run nothing: say which rows can run, expected times and minutes"),
    HEADING("Output"),
    TEXT_FLAG(output, "-o", "DIR",
              "folder for suite.json, suite.html and a folder for each row; a second call goes on where the first was "
              "stopped; default: suite-NAME"),
    TEXT_FLAG(sign_key, "--sign", "KEY", "sign suite.json and the rows' files with an SSH key"),
    SWITCH_FLAG(json, "--json", "print suite.json"),
    END_FLAGS,
};

static status list_suites(void)
{
    struct arena arena  = {.blocks = NULL};
    const char  *folder = arena_format(&arena, "%s/suites", config_folder());
    const char **names  = config_names(&arena, folder);
    status       result = names != NULL ? OK : fail("%s cannot be read", folder);
    for (int i = 0; names != NULL && names[i] != NULL; i++) {
        puts(names[i]);
    }
    arena_free(&arena);
    return result;
}

// Runs the suite on the ranks that the launcher started or, without a launcher, on the selected number of ranks.
static status launch(struct suite *suite, struct text_buffer *errors)
{
    for (int64_t i = 0; i < suite->row_count; i++) {
        if (suite->rows[i].benchmark != NULL) {
            return launch_ranks(&suite->rows[i].benchmark->job.config.run, (int)suite->ranks, suite_rank, &suite,
                                errors);
        }
    }
    return fail("no row of suite %.100s can run here; the first: %.600s", suite->name, suite->rows[0].problem);
}

status command_suite(const struct arguments *chosen)
{
    char         folder[OPTION_PATH_BYTES];
    struct suite suite = {.json     = chosen->json,
                          .sign_key = chosen->sign_key,
                          .output   = chosen->output,
                          .seconds  = chosen->seconds > 0 ? (double)chosen->seconds : 60.0};
    if (chosen->words.count > 1) {
        return fail_as(EXIT_USAGE, "suite takes one name, not %d", chosen->words.count);
    }
    if (chosen->words.count == 0) {
        return list_suites();
    }
    if (suite.output == NULL) {
        const char *name = strrchr(chosen->words.items[0], '/');
        snprintf(folder, sizeof(folder), "suite-%s", name != NULL ? name + 1 : chosen->words.items[0]);
        suite.output = folder;
    }
    status result = suite_read(&suite, chosen->words.items[0], &chosen->config);
    if (!failed(&result) && chosen->dry_run) {
        if (chosen->json) {
            show_json(json_from_struct(suite_fields, &suite));
        } else {
            suite_write_text(&suite, stdout);
        }
    } else if (!failed(&result)) {
        result = launch(&suite, chosen->config.errors);
    }
    suite_free(&suite);
    return result;
}
