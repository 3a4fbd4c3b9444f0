// SPDX-License-Identifier: MIT
// Tests models that mix Mamba-2, attention, MLP and expert layers: patterns with one letter per layer, their errors,
// and parameter and FLOP counts against published numbers.
#include <criterion/criterion.h>
#include <string.h>

#include "models.h"
#include "success.h"

// NVIDIA publishes 56 B parameters for Nemotron-H, and 31.6 B with 3.6 B active for Nano. A Mamba-2 layer of Nano has
// projections of 2688 x 10304 and 4096 x 2688, a convolution with 6144 x (4 + 1) parameters, 3 parameters for each of
// 64 heads, a gated norm of 4096 and a norm of 2688.
Test(hybrid_model, has_the_published_parameters)
{
    struct model_config one = with(&nano, "layers 1; pattern M");
    cr_expect_eq(layers_parameters(&nemotron_h), 56324350464);
    cr_expect_eq(layers_parameters(&nano), 31577937344);
    cr_expect_eq(layers_active_parameters(&nano), 3580073408);
    cr_expect_eq(layers_parameters(&one) - 2 * 131072 * 2688 - 2688,
                 2688 * 10304 + 4096 * 2688 + 6144 * 5 + 3 * 64 + 4096 + 2688);
}

// The released checkpoint of Super has tensors of these sizes: 40 Mamba-2 layers, 8 attention layers, 40 expert layers,
// and one MTP module with an attention and an expert layer.
Test(hybrid_model, has_the_parameters_of_the_checkpoint_of_super)
{
    const int64_t h = 4096, vocab = INT64_C(131072) * 4096;
    const int64_t mamba         = 18560 * h + 8192 * h + 10240 * 4 + 10240 + 3 * 128 + 8192,
                  attention     = 2 * h * h + 2 * 256 * h;
    const int64_t       experts = 512 * h + INT64_C(512) * 2 * 2688 * 1024 + 2 * 5376 * h + 2 * 1024 * h;
    struct model_config alone   = super;
    strcpy(strchr(alone.pattern, '/'), "");
    alone.predicted_tokens = alone.repeat_prediction = 0;
    cr_expect_eq(layers_parameters(&alone), 2 * vocab + 40 * mamba + 8 * attention + 40 * experts + 89 * h);
    cr_expect_eq(layers_parameters(&super) - layers_parameters(&alone), 2 * h * h + attention + experts + 5 * h);
}

// NVIDIA's tables give tokens/s and TFLOP/s of Super at a sequence length of 8,192. Their ratio is 84.73e9 FLOPs per
// token; the tables are rounded, so 0.5 % is allowed.
Test(hybrid_model, has_the_flops_of_super_as_published)
{
    cr_expect_float_eq(flops_of(&super, FLOPS_CAUSAL, 8192) / 8192.0 / 84.73e9, 1.0, 0.005);
}

// Megatron-LM (training.py) counts 2 h (2 d + 2 g N + heads) + 7 d N + 2 d h FLOPs per token and Mamba-2 layer in the
// forward pass, and three times this in training. h: hidden size; d: heads x head size; g: groups; N: state size.
Test(hybrid_model, counts_the_flops_of_a_scan_as_megatron_does)
{
    struct model_config two = with(&nemotron_h, "layers 3; pattern MM*"),
                        one = with(&nemotron_h, "layers 2; pattern M*");
    double expected         = 3.0 * 8192 * (2.0 * 8192 * 37120 + 7.0 * 16384 * 256 + 2.0 * 16384 * 8192);
    double causal           = flops_of(&two, FLOPS_CAUSAL, 8192) - flops_of(&one, FLOPS_CAUSAL, 8192);
    cr_expect_float_eq(causal, expected, 1e-12 * expected);
}

// NVIDIA's recipe counts 2.816e15 FLOPs for a sequence of 8192 tokens. Its formula has other terms for the scan of
// Mamba-2, so the counts differ by up to 0.2 %.
Test(hybrid_model, is_close_to_the_flops_of_the_recipe)
{
    cr_expect_float_eq(flops_of(&nemotron_h, FLOPS_FULL, 8192), 2.816e15, 0.005e15);
}

// MTP modules that share weights, and with them adapters, each multiply by these weights.
Test(hybrid_model, counts_the_flops_of_adapters_in_every_module)
{
    struct model_config repeated =
        with(&super, "layers 2; pattern *E/*E/*E; rank 8; alpha 16; targets qkv, projection, fc1, fc2");
    struct model_config separate = with(&repeated, "repeat_prediction no");
    const int64_t       h = 4096, attention = 8 * (h + 36 * 128 + 32 * 128 + h), shared = 2 * 8 * (h + 5376);
    cr_expect_eq(layers_trained_parameters(&repeated), 2 * (attention + shared));
    cr_expect_eq(layers_trained_parameters(&separate), 3 * (attention + shared));
    cr_expect_eq(flops_of(&repeated, FLOPS_FULL, 8192), flops_of(&separate, FLOPS_FULL, 8192));
}

Test(hybrid_model, says_what_is_wrong)
{
    static const struct model_error rows[] = {
        {&nano, "", ""},
        {&nano, "layers 51",
         "[model] pattern = MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME does not fit layers = "
         "51: its counts add up to 52; without its count, the last kind fills the remaining layers"},
        {&nano, "mamba_groups 0",
         "[model] mamba_heads = 64 and mamba_groups = 0: Mamba-2 layers need both: set them, or remove "
         "mamba (M) from pattern"},
        {&nano, "mamba_groups 5", "[model] mamba_groups = 5 does not divide mamba_heads = 64"},
        {&nano, "pattern 52 x experts",
         "[model] mamba_heads = 64, but pattern = 52 x experts has no mamba: add it to pattern, or leave "
         "mamba_heads out"},
        {&nano, "pattern MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME/*E/*E",
         "[model] pattern = MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME/*E/*E has 2 MTP "
         "modules, but predicted_tokens = 0: change one of them"},
        {&nano, "pattern MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME/*E/ME",
         "[model] pattern = MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME/*E/ME: after each / "
         "come the layers of an MTP module, which are the same in all modules, e.g. /*E/*E"},
        // Only the MTP modules have experts, or Mamba-2 layers.
        {&super, "layers 2; pattern M*/*E/*E", ""},
        {&super, "layers 2; pattern M*/*E/*E; top_k 513", "[model] top_k = 513 with experts = 512: expected 1 to 512"},
        {&super, "layers 2; pattern *E/ME/ME", ""},
        {&super, "layers 2; pattern *E/ME/ME; mamba_groups 5",
         "[model] mamba_groups = 5 does not divide mamba_heads = 128"},
    };
    EXPECT_MODEL_ERRORS(rows);
    struct model_config model = with(&nano, "family llama; pattern 52 x mamba");
    EXPECT_ERROR_WITH(layers_check(&model), EXIT_CONFIG, "has no Mamba-2 layers (mamba_heads): use family = gswbench");
}

// The pattern gets two MTP modules. Each has an attention and an expert layer, a projection from 2 x 2688 to 2688, and
// three more norms.
Test(hybrid_model, reads_the_layers_of_mtp_modules)
{
    struct model_config model = nano;
    strcat(model.pattern, "/*E/*E");
    model.predicted_tokens = 2;
    int64_t attention      = 2688 * 2 * (4096 + 256) + 2688;
    int64_t experts        = 128 * 2 * 2688 * 1856 + 2 * 2688 * 3712 + 128 * 2688 + 2688;
    EXPECT_SUCCESS(layers_check(&model));
    cr_expect_eq(layers_parameters(&model) - layers_parameters(&nano),
                 2 * (attention + experts + 2 * 2688 * 2688 + 3 * 2688));
}
