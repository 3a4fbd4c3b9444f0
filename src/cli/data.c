// SPDX-License-Identifier: MIT
// gswbench data: writes the tokens of the first steps to a file, for training in another framework.
#include "gswbench/data.h"

#include <inttypes.h>
#include <stdlib.h>

#include "gswbench/safetensors.h"
#include "internal.h"

struct data_arguments {
    struct job_selection config;
    int64_t              steps;
    const char          *output;
};

static const struct flag flags[] = {
    CONFIG_FLAGS(data_arguments, config),
    HEADING("Output"),
    INTEGER_FLAG(data_arguments, steps, "--steps", "N", 1, 1000000, "number of global batches; default: run.steps"),
    TEXT_FLAG(data_arguments, output, "-o", "FILE", "safetensors file to write"),
    END_FLAGS,
};

static status append_samples(struct safetensors_writer *writer, const struct config *config, int64_t samples)
{
    const struct data_source source = {.kind     = (enum data_kind)config->run.data,
                                       .seed     = (uint64_t)config->run.seed,
                                       .vocab    = config->model.vocab,
                                       .sequence = config->train.sequence + config->model.predicted_tokens};
    int64_t                  bytes  = format_bytes(FORMAT_I32, source.sequence + 1);
    int32_t                 *tokens = memory_allocate((size_t)bytes);
    status                   result = OK;
    for (int64_t sample = 0; sample < samples && !failed(&result); sample++) {
        data_sample(&source, sample, tokens);
        result = safetensors_append(writer, tokens, bytes);
    }
    free(tokens);
    return result;
}

static status run(const void *arguments, struct text_buffer *errors)
{
    const struct data_arguments *data = arguments;
    struct job                   job;
    struct safetensors_writer    writer;
    if (data->output == NULL) {
        return fail_as(EXIT_USAGE, "-o is missing: name the file to write");
    }
    TRY(job_read(&job, &data->config, errors));
    const struct train_config *train  = &job.config.train;
    int64_t                    tokens = train->sequence + job.config.model.predicted_tokens + 1;
    int64_t                    steps  = data->steps > 0 ? data->steps : job.config.run.steps;
    struct safetensor          tensor = {
                 .name = "tokens", .format = FORMAT_I32, .dims = 3, .dim = {steps, train->global_batch, tokens}};
    TRY(safetensors_create(&writer, data->output, &tensor, 1));
    TRY(append_samples(&writer, &job.config, steps * train->global_batch));
    TRY(safetensors_finish(&writer));
    text_print(data->output, stdout);
    printf(": tokens I32 [%" PRId64 ", %" PRId64 ", %" PRId64 "]\n", tensor.dim[0], tensor.dim[1], tensor.dim[2]);
    return OK;
}

const struct command command_data = {
    .name    = "data",
    .help    = "write the tokens of the first steps as safetensors",
    .example = "gswbench data tiny-llama --steps 10 -o tokens.safetensors",
    .flags   = flags,
    .bytes   = sizeof(struct data_arguments),
    .run     = run,
};
