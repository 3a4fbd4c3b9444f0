// SPDX-License-Identifier: MIT
// Runs the commands data, weights, checkpoint and verify of gswbench. They handle files that other programs read:
// tokens, initial weights and checkpoints.
#include "gswbench/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/number.h"
#include "gswbench/safetensors.h"
#include "gswbench/show.h"
#include "gswbench/step.h"
#include "internal.h"

const struct flag data_flags[] = {
    CONFIG_FLAGS(config),
    HEADING("Output"),
    INTEGER_FLAG(steps, "--steps", "N", 1, 1000000, "number of global batches; default: run.steps"),
    TEXT_FLAG(output, "-o", "FILE", "safetensors file to write"),
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

status command_data(const struct arguments *data)
{
    struct job                job;
    struct safetensors_writer writer;
    if (data->output == NULL) {
        return fail_as(EXIT_USAGE, "-o is missing: name the file to write");
    }
    TRY(job_read(&job, &data->config));
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

const struct flag weights_flags[] = {
    CONFIG_FLAGS(config),
    HEADING("Output"),
    TEXT_FLAG(output, "-o", "DIR", "folder to write; must be new or empty"),
    END_FLAGS,
};

status command_weights(const struct arguments *weights)
{
    struct config config;
    struct plan   plan = {0};
    if (weights->output == NULL) {
        return fail_as(EXIT_USAGE, "-o is missing: name the folder to write");
    }
    TRY(job_read_config(&config, &weights->config));
    status result = checkpoint_plan(&plan, &config.model, config.train.sequence);
    result = failed(&result) ? result : checkpoint_write_initial(&plan, (uint64_t)config.run.seed, weights->output);
    plan_free(&plan);
    TRY(result);
    text_print(weights->output, stdout);
    printf(": initial weights of %s, seed %" PRId64, config.name, config.run.seed);
    show_readers(&config.model);
    return OK;
}

const struct flag checkpoint_flags[] = {
    OPERANDS(words, "verify DIR | export DIR OUT",
             "verify: read a checkpoint and compare its checksums; export: write its weights, without the optimizer, "
             "to a new folder"),
    END_FLAGS,
};

static status verify_folder(const char *path)
{
    struct checkpoint_contents contents;
    char                       size[32];
    TRY(checkpoint_verify(path, &contents));
    text_print(path, stdout);
    fputs(": ", stdout);
    if (contents.is_ours) {
        printf("step %" PRId64 ", ", contents.step);
    }
    printf("%" PRId64 " tensors in %" PRId64 " slices of %" PRId64 " file%s, %s: whole\n", contents.tensors,
           contents.slices, contents.files, contents.files == 1 ? "" : "s",
           number_bytes(size, sizeof(size), (double)contents.bytes));
    return OK;
}

const struct flag verify_flags[] = {
    OPERANDS(words, "DIR", "checkpoint, folder of checkpoints (takes the newest), or weights"),
    END_FLAGS,
};

status command_verify(const struct arguments *checkpoint)
{
    return checkpoint->words.count == 1 ? verify_folder(checkpoint->words.items[0])
                                        : fail_as(EXIT_USAGE, "gswbench verify takes one DIR");
}

static status export_weights(const char *path, const char *folder)
{
    struct model_config model;
    TRY(checkpoint_export(path, folder, &model));
    text_print(folder, stdout);
    fputs(": the weights of ", stdout);
    text_print(path, stdout);
    show_readers(&model);
    return OK;
}

status command_checkpoint(const struct arguments *checkpoint)
{
    const struct text_list *words = &checkpoint->words;
    if (words->count == 2 && strcmp(words->items[0], "verify") == 0) {
        return verify_folder(words->items[1]);
    }
    if (words->count == 3 && strcmp(words->items[0], "export") == 0) {
        return export_weights(words->items[1], words->items[2]);
    }
    return fail_as(EXIT_USAGE, "gswbench checkpoint takes verify DIR, or export DIR OUT");
}
