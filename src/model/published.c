// SPDX-License-Identifier: MIT
// FLOP conventions, and the [published] options.
#include "gswbench/json.h"
#include "gswbench/model.h"

// clang-format off
const char *const model_flop_names[] = {
    [FLOPS_PUBLISHED] = "published", [FLOPS_FULL] = "full", [FLOPS_CAUSAL] = "causal", [FLOPS_6N] = "six_n",
    [FLOPS_HARDWARE]  = "hardware",  [FLOPS_COUNT] = NULL,
};

#define CONVENTION(key, convention) JSON_PLACE(JSON_FIELD_REAL, key, convention, sizeof(double))
const struct json_field model_flop_fields[] = {
    CONVENTION("published", FLOPS_PUBLISHED),
    CONVENTION("full", FLOPS_FULL),
    CONVENTION("causal", FLOPS_CAUSAL),
    CONVENTION("six_n", FLOPS_6N),
    CONVENTION("hardware", FLOPS_HARDWARE),
    JSON_END
};

// Conventions that a published table can use, in the order of enum flop_convention.
static const char *const convention_names[] = {
    [FLOPS_PUBLISHED] = "none", [FLOPS_FULL] = "full", [FLOPS_CAUSAL] = "causal", [FLOPS_6N] = "6n", NULL,
};

static const char *const memory_names[] = {[MEMORY_ALLOCATED] = "allocated", [MEMORY_RESERVED] = "reserved", NULL};

#define PEAK_OPTION(NAME, name) \
    {"peak_" #name, OPTION_REAL, OPTION_FIELD(published_config, peak[RATE_##NAME]), "0", 0, 1e18, NULL, \
     #NAME " peak per device in FLOP/s that the published MFU divides by; 0: none"},

const struct option published_options[] = {
    TEXT_OPTION   (published_config, source, "", "publication of the figures"),
    TEXT_OPTION   (published_config, device, "", "device of the figures, as its driver names it; empty: the device of this file's [hardware] profile"),
    TEXT_OPTION   (published_config, variant, "", "variant of a config, e.g. compiled; selects [when variant=NAME]"),
    CHOICE_OPTION (published_config, convention, "none", convention_names, "convention by which the publication counts model FLOPs"),
    INTEGER_OPTION(published_config, flop_kv_heads, "0", 0, 4096, "key and value heads in the published FLOP count; 0: as the model"),
    INTEGER_OPTION(published_config, flop_digits, "0", 0, 15, "significant digits of the published FLOPs per sequence; 0: exact"),
    BOOLEAN_OPTION(published_config, count_embedding, "yes", "6n: N includes the input embedding"),
    RATES(PEAK_OPTION)
    REAL_OPTION   (published_config, step_seconds, "0", 0, 1e9, "published step time in seconds for the ranks and precision of its [when ...] section; 0: not published"),
    REAL_OPTION   (published_config, mfu_percent, "0", 0, 100, "published MFU in percent for the ranks and precision of its [when ...] section; 0: not published"),
    REAL_OPTION   (published_config, memory_gib, "0", 0, 1e6, "published memory in GiB of the rank with the highest use, for the ranks and precision of its [when ...] section; 0: not published"),
    CHOICE_OPTION (published_config, memory, "allocated", memory_names, "meaning of memory_gib: peak memory that the allocator has given out (allocated), or has taken from the device (reserved)"),
    BOOLEAN_OPTION(published_config, fitted, "no", "parameters of the cost model were fitted to these step times"),
    END_OPTIONS
};
// clang-format on
