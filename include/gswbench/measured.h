// SPDX-License-Identifier: MIT
// Times of single ops that were measured on a machine: an op with an exact entry takes it instead of the cost model.
#ifndef GSWBENCH_MEASURED_H
#define GSWBENCH_MEASURED_H

#include <stddef.h>
#include <stdint.h>

#include "gswbench/config.h"
#include "gswbench/plan.h"
#include "gswbench/quantity.h"
#include "gswbench/status.h"

enum { OP_KEY_NUMBERS = 13, OP_KEY_BYTES = 256 };

// Everything about an op that its time depends on, apart from the machine: kind, operand types, shape.
struct op_key {
    int64_t kind;                       // enum op_kind
    uint8_t operands[OP_OPERANDS];      // 0: absent; else 1 + enum format, and 128 when it is updated
    int64_t numbers[OP_KEY_NUMBERS];    // of the shape, in the order of docs/method.md; the rest is zero
};

void op_key_init(struct op_key *key, const struct plan *plan, const struct op *op);

// "gemm bf16,bf16,bf16+ 4096x28672x8192x0x1": kind; an element type for each operand, - where it is absent and + where
// it is updated; numbers. Returns text, which has OP_KEY_BYTES.
const char *op_key_print(const struct op_key *key, char *text);
bool        op_key_parse(const char *text, struct op_key *key);

struct measured_op {
    struct op_key   key;
    struct quantity seconds;    // from the end of the op before it to its own end, when ops follow each other
};
struct measured_ops {
    struct measured_op *ops;    // [count], in the order of their keys
    int32_t             count;
};

// Reads the lines KEY = SECONDS of section [measured] of a hardware profile; a file without it has none. Errors name
// the file and the line.
status measured_read(struct measured_ops *measured, const char *path);
// The same of the profile that [hardware] of a configuration names; without one there is nothing. The caller frees it,
// after an error too.
status measured_read_profile(struct measured_ops *measured, const struct config *config);
void   measured_free(struct measured_ops *measured);

// The time of an op, of a plan or by its key; NULL: it was not measured.
const struct quantity *measured_find(const struct measured_ops *measured, const struct plan *plan, const struct op *op);
const struct quantity *measured_find_key(const struct measured_ops *measured, const struct op_key *key);

#endif
