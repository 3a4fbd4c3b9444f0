// SPDX-License-Identifier: MIT
// gswbench weights: writes the initial weights as a Hugging Face folder. They do not depend on the layout.
#include <inttypes.h>

#include "gswbench/checkpoint.h"
#include "gswbench/show.h"
#include "internal.h"

struct weights_arguments {
    struct job_selection config;
    const char          *output;
};

static const struct flag flags[] = {
    CONFIG_FLAGS(weights_arguments, config),
    HEADING("Output"),
    TEXT_FLAG(weights_arguments, output, "-o", "DIR", "folder to write; must be new or empty"),
    END_FLAGS,
};

static status run(const void *arguments, struct text_buffer *errors)
{
    const struct weights_arguments *weights = arguments;
    struct config                   config;
    struct plan                     plan = {0};
    if (weights->output == NULL) {
        return fail_as(EXIT_USAGE, "-o is missing: name the folder to write");
    }
    TRY(job_read_config(&config, &weights->config, errors));
    status result = checkpoint_plan(&plan, &config.model, config.train.sequence);
    if (!failed(&result)) {
        result = checkpoint_write_initial(&plan, (uint64_t)config.run.seed, weights->output);
    }
    plan_free(&plan);
    if (failed(&result)) {
        return result;
    }
    text_print(weights->output, stdout);
    printf(": initial weights of %s, seed %" PRId64, config.name, config.run.seed);
    show_readers(&config.model);
    return OK;
}

const struct command command_weights = {
    .name    = "weights",
    .help    = "write the initial weights in Hugging Face format (safetensors)",
    .example = "gswbench weights tiny-llama -o weights",
    .flags   = flags,
    .bytes   = sizeof(struct weights_arguments),
    .run     = run,
};
