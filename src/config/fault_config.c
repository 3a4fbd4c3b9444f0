// SPDX-License-Identifier: MIT
// The [fault] options.
#include "gswbench/fault_config.h"

// clang-format off
static const char *const kind_names[] = {
    [FAULT_NONE] = "none", [FAULT_NAN] = "nan", [FAULT_FLIP] = "flip", [FAULT_DELAY] = "delay", [FAULT_STOP] = "stop",
    [FAULT_SPIN] = "spin", [FAULT_SKIP] = "skip", [FAULT_SLOW] = "slow", NULL};

const struct option fault_options[] = {
    CHOICE_OPTION (fault_config, kind, "none", kind_names, "nan: an element becomes NaN; flip: one of its bits flips; delay: the rank sleeps before the op; stop: SIGSTOP; spin: endless loop; skip: the op is left out; slow: all compute ops take longer from that step on"),
    INTEGER_OPTION(fault_config, rank, "0", 0, 1000000, "rank of the fault"),
    INTEGER_OPTION(fault_config, step, "0", -1, 1000000, "step of the fault, counted from 0, traced steps after measured ones; -1: during the verification of collectives before the first step"),
    TEXT_OPTION   (fault_config, at, "", "op of the fault: the first whose name in gswbench plan --ops contains this text; or, after the word tensor, the first tensor with such a name, before the step; empty: the first op"),
    INTEGER_OPTION(fault_config, element, "0", 0, 9007199254740991, "nan, flip: index into the tensor, or into all outputs of the op in order; modulo their size"),
    INTEGER_OPTION(fault_config, bit, "0", 0, 31, "flip: bit of the element, 0 is the lowest; modulo its size"),
    REAL_OPTION   (fault_config, amount, "1", 0, 1000000, "delay: seconds; slow: percent"),
    BOOLEAN_OPTION(fault_config, repeats, "no", "inject the fault again when verification repeats the step"),
    END_OPTIONS
};
// clang-format on
