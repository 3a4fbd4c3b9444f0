// SPDX-License-Identifier: MIT
// The [fault] options.
#include "gswbench/fault_config.h"

// clang-format off
static const char *const kind_names[] = {
    [FAULT_NONE] = "none", [FAULT_NAN] = "nan", [FAULT_FLIP] = "flip", [FAULT_DELAY] = "delay", [FAULT_STOP] = "stop",
    [FAULT_SPIN] = "spin", [FAULT_SKIP] = "skip", [FAULT_SLOW] = "slow", NULL};

const struct option fault_options[] = {
    CHOICE_OPTION (fault_config, kind, "none", kind_names, "what goes wrong: nan, an element becomes no number; flip, a bit of it is flipped; delay, the rank sleeps before the op; stop, its process is stopped as by SIGSTOP; spin, it loops for ever; skip, the op is left out; slow, all ops that compute take longer, from that step on"),
    INTEGER_OPTION(fault_config, rank, "0", 0, 1000000, "rank that it happens on"),
    INTEGER_OPTION(fault_config, step, "0", -1, 1000000, "step that it happens in, counted from 0, traced ones behind the measured ones; -1: in the proof of the transfers before the first"),
    TEXT_OPTION   (fault_config, at, "", "op that it happens at: the first whose name, as gswbench plan --ops prints it, has these words; or, after the word tensor, the first tensor so named, before the step; empty: the first op"),
    INTEGER_OPTION(fault_config, element, "0", 0, 9007199254740991, "nan, flip: element of the tensor, or of all tensors that the op writes, one after the other; counted round where there are fewer"),
    INTEGER_OPTION(fault_config, bit, "0", 0, 31, "flip: bit of the element, 0 the lowest; counted round where there are fewer"),
    REAL_OPTION   (fault_config, amount, "1", 0, 1000000, "delay: seconds; slow: percent"),
    BOOLEAN_OPTION(fault_config, repeats, "no", "whether it happens again when the step is repeated to prove it"),
    END_OPTIONS
};
// clang-format on
