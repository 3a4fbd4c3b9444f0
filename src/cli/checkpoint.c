// SPDX-License-Identifier: MIT
// gswbench checkpoint: verifies a checkpoint, and exports its weights in Hugging Face format.
#include "gswbench/checkpoint.h"

#include <inttypes.h>
#include <string.h>

#include "gswbench/number.h"
#include "gswbench/show.h"
#include "internal.h"

struct checkpoint_arguments {
    struct text_list words;
};

static const struct flag flags[] = {
    OPERANDS(checkpoint_arguments, words, "verify DIR | export DIR OUT",
             "verify: read a checkpoint and compare its checksums; export: write its weights, without the optimizer, "
             "to a new folder"),
    END_FLAGS,
};

static status verify(const char *path)
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

static const struct flag verify_flags[] = {
    OPERANDS(checkpoint_arguments, words, "DIR", "checkpoint, folder of checkpoints (takes the newest), or weights"),
    END_FLAGS,
};

static status run_verify(const void *arguments, struct text_buffer *errors)
{
    const struct checkpoint_arguments *checkpoint = arguments;
    (void)errors;
    return checkpoint->words.count == 1 ? verify(checkpoint->words.items[0])
                                        : fail_as(EXIT_USAGE, "gswbench verify takes one DIR");
}

static status export(const char *path, const char *folder)
{
    struct model_config model;
    TRY(checkpoint_export(path, folder, &model));
    text_print(folder, stdout);
    fputs(": the weights of ", stdout);
    text_print(path, stdout);
    show_readers(&model);
    return OK;
}

static status run(const void *arguments, struct text_buffer *errors)
{
    const struct checkpoint_arguments *checkpoint = arguments;
    const struct text_list            *words      = &checkpoint->words;
    (void)errors;
    if (words->count == 2 && strcmp(words->items[0], "verify") == 0) {
        return verify(words->items[1]);
    }
    if (words->count == 3 && strcmp(words->items[0], "export") == 0) {
        return export(words->items[1], words->items[2]);
    }
    return fail_as(EXIT_USAGE, "gswbench checkpoint takes verify DIR, or export DIR OUT");
}

const struct command command_checkpoint = {
    .name    = "checkpoint",
    .help    = "verify a checkpoint, or export its weights",
    .example = "gswbench checkpoint export checkpoints/step-100 weights",
    .flags   = flags,
    .bytes   = sizeof(struct checkpoint_arguments),
    .run     = run,
};

const struct command command_verify = {
    .name    = "verify",
    .help    = "read a checkpoint and compare its checksums",
    .example = "gswbench verify checkpoints/step-100",
    .flags   = verify_flags,
    .bytes   = sizeof(struct checkpoint_arguments),
    .run     = run_verify,
};
