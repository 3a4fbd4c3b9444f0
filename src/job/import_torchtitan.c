// SPDX-License-Identifier: MIT
// Translates settings of torchtitan that depend on each other, or whose default differs from gswbench's.
#include <inttypes.h>
#include <string.h>

#include "internal.h"

// Sets the precision of torchtitan's converters (torchtitan/components/quantization). Float8 without a recipe has one
// scale per tensor.
static status derive_converters(struct reader *reader)
{
    static const char *const sections[] = {"quantize.linear.float8", "float8", "quantize.dense.float8"};
    static const char        recipes[]  = "tensorwise=current rowwise=rows rowwise_with_gw_hp=rows";
    static const char        known[]    = "quantize.linear.float8 float8 quantize.dense.float8 mx quantize.linear.mx";
    const char              *converters = reader_value(reader, "model.converters"), *ours = "current";
    bool has_float8 = reader_has(reader, "float8.enable_float8_linear", "true");    // an option until February 2025
    for (const char *at = converters; at != NULL && *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        const char *one = arena_format(reader->values.arena, "%.*s", (int)strcspn(at, " "), at);
        if (!text_has_word(known, one)) {
            return import_unsupported(reader, "model.converters", one, known);
        }
    }
    if (converters != NULL && (text_has_word(converters, "mx") || text_has_word(converters, "quantize.linear.mx"))) {
        reader_set_all(reader, "precision.compute=fp8 precision.recipe=mxfp8");
    }
    for (int i = 0; i < 3; i++) {
        has_float8 = has_float8 || (converters != NULL && text_has_word(converters, sections[i]));
    }
    for (int i = 0; i < 3 && has_float8; i++) {
        const char *name   = arena_format(reader->values.arena, "%s.recipe_name", sections[i]);
        const char *recipe = reader_value(reader, name);
        if (recipe != NULL && !reader_translate(reader, recipes, recipe, &ours)) {
            return import_unsupported(reader, name, recipe, recipes);
        }
        if (recipe != NULL && strcmp(recipe, "rowwise_with_gw_hp") == 0) {
            reader_set(reader, "precision.fp8_weight_gradients", "no");
        }
        name = arena_format(reader->values.arena, "%s.enable_fsdp_float8_all_gather", sections[i]);
        if (reader_has(reader, name, "true")) {
            reader_set(reader, "precision.fp8_weights", "yes");
        }
    }
    if (has_float8) {
        reader_set(reader, "precision.compute", "fp8");
        reader_set(reader, "precision.recipe", ours);
    }
    return OK;
}

// Adds torchtitan's settings that depend on several values of the file.
status import_derive_torchtitan(struct reader *reader)
{
    int64_t     stages = reader_number(reader, "parallelism.pipeline_parallel_degree", 1);
    int64_t     batch  = reader_number(reader, "training.local_batch_size", 8);
    const char *mode   = reader_value(reader, "activation_checkpoint.mode");
    bool        is_op  = reader_has(reader, "activation_checkpoint.selective_ac_option", "op");
    if (stages > 1) {    // a pipeline splits the local batch into microbatches
        int64_t micro = reader_number(reader, "parallelism.pipeline_parallel_microbatch_size", 1);
        reader_set_number(reader, "train.micro_batch", micro);
        if (reader_number(reader, "training.global_batch_size", -1) < 0 && micro > 0) {
            reader_set_number(reader, "train.accumulation", batch / micro);
        }
        // Interleaved1F1B has two chunks per stage, torchtitan's default.
        if (reader_has(reader, "parallelism.pipeline_parallel_schedule", "Interleaved1F1B")) {
            reader_set(reader, "parallel.vp", "2");
        }
        if (!reader_has(reader, "parallelism.fsdp_reshard_after_forward", "always")) {
            reader_set(reader, "parallel.reshard", "never");
        }
    }
    if ((mode == NULL || strcmp(mode, "selective") == 0) && !is_op) {
        int64_t every = reader_number(reader, "activation_checkpoint.selective_ac_option", 2);
        reader_set(reader, "train.recompute", every > 1 ? "block_every" : "full");
        reader_set_number(reader, "train.recompute_every", every > 1 ? every : 1);
    }
    return derive_converters(reader);
}

// Sets the model preset and torchtitan's defaults. torchtitan selects a model by name and flavor, such as "llama3" and
// "8B".
status import_set_torchtitan_defaults(struct reader *reader)
{
    static const char presets[] = "8B=llama3.1-8b 70B=llama3.1-70b 405B=llama3.1-405b";
    const char *flavor = reader_value(reader, "model.flavor"), *name = reader_value(reader, "model.name"), *preset;
    name   = name != NULL ? name : "llama3";
    flavor = flavor != NULL ? flavor : "debugmodel";
    if (strcmp(name, "llama3") != 0 || !reader_translate(reader, presets, flavor, &preset)) {
        return fail("%s: the sizes of model %s %s are not known; those of llama3 8B, 70B and 405B are: start from "
                    "gswbench init --model NAME",
                    reader->values.path, name, flavor);
    }
    reader_set(reader, "model.preset", preset);
    reader_set_all(reader, "parallel.fsdp=auto train.micro_batch=8");
    return OK;
}
