// SPDX-License-Identifier: MIT
// Measured times of single ops. If an op's exact shape was measured, predictions use this time, not the cost model.
#pragma once

#include <stdint.h>

#include "gswbench/config.h"
#include "gswbench/plan.h"
#include "gswbench/quantity.h"
#include "gswbench/status.h"

enum { OP_KEY_NUMBERS = 13, OP_KEY_BYTES = 256 };

// Everything that determines the time of an op on a given machine: kind, operand formats, shape.
struct op_key {
    int64_t kind;                       // enum op_kind
    uint8_t operands[OP_OPERANDS];      // 0: absent; else 1 + enum format, plus 128 if the op updates the operand
    int64_t numbers[OP_KEY_NUMBERS];    // sizes of the shape, in the order of docs/predictions.md; unused numbers are 0
};

void op_key_init(struct op_key *key, const struct plan *plan, const struct op *op);

// Prints and parses a key such as "gemm bf16,bf16,bf16+ 4096x28672x8192x0x1": the kind, the format of each operand
// ("-" absent, "+" updated), and the numbers. text has OP_KEY_BYTES bytes and is returned.
const char *op_key_print(const struct op_key *key, char *text);
bool        op_key_parse(const char *text, struct op_key *key);

struct measured_op {
    struct op_key   key;
    struct quantity seconds;    // from the end of the previous op to the end of this one, with launch gaps included
};
struct measured_ops {
    struct measured_op *ops;    // [count], sorted by key
    int32_t             count;
};

// Reads the lines KEY = SECONDS of section [measured] in a hardware profile, if it has one. Errors name file and line.
status measured_read(struct measured_ops *measured, const char *path);
// Reads the profile that [hardware] names. If it names none, the list is empty. The caller frees the list, also after
// an error.
status measured_read_profile(struct measured_ops *measured, const struct config *config);
void   measured_free(struct measured_ops *measured);

// Return the measured time of an op, or NULL if it was not measured.
const struct quantity *measured_find(const struct measured_ops *measured, const struct plan *plan, const struct op *op);
const struct quantity *measured_find_key(const struct measured_ops *measured, const struct op_key *key);
