// SPDX-License-Identifier: MIT
// Appends tensors and ops to a plan under construction. The caller names the operands of each op, from which the
// assembly derives its dependencies on ops of other streams. The callers are the layers; builder.h has their state.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/plan.h"

// The last writer of a tensor, and its last reader on each stream; -1: none. A new op depends on these.
struct usage {
    int32_t writer;
    int32_t reader[STREAM_COUNT];
    // These apply to the tensor itself; the fields above apply to the whole tensor it is a part of.
    bool    is_apart;        // its uses are tracked separately from the whole tensor's
    int32_t quantizer;       // op that quantized the tensor to FP8, or transposed it if it is FP8; -1: none
    int32_t factor;          // index of the tensor with the inverse scales of a low-precision tensor
    int32_t tensor_scale;    // NVFP4: index of the tensor with the inverse scale of the whole tensor
};

struct assembly {
    struct plan  *plan;
    int32_t       tensor_capacity, op_capacity;
    struct usage *usage;                    // [tensor_capacity]; a use of a part counts as a use of the whole
    struct op_tag tag;                      // for the ops being appended
    bool          is_initial;               // for the ops being appended, as in struct op
    bool          is_aside;                 // another microbatch is interleaved with the current one
    int32_t       pending[STREAM_COUNT];    // [stream]: op that the next compute op must follow; -1: none
    int32_t       last_compute;             // -1: none
    int32_t       last_reader;              // last OP_READ_TOKEN_COUNTS, at which the host blocks; -1: none
};

// The caller owns the plan. Only the fields that describe the job are set; all others are zero.
void assembly_begin(struct assembly *assembly, struct plan *plan);
// Places activations, drops redundant dependencies, and frees everything but the plan.
void assembly_finish(struct assembly *assembly);
// Assigns arena offsets to activations (memory.c). clocks, position: from order_clocks.
void memory_place(struct plan *plan, const int32_t *clocks, const int32_t *position);
void assembly_free(struct assembly *assembly);    // instead of assembly_finish, if there are no activations to place

#define DIMS(...) ((const int64_t[4]){__VA_ARGS__})
int32_t assembly_tensor(struct assembly *assembly, const char *name, enum storage storage, enum format format,
                        const int64_t dim[4]);
int32_t assembly_activation(struct assembly *assembly, const char *name, const int64_t dim[4]);
// A part of another tensor, from element first_element of it. It has the format and storage of the whole.
int32_t assembly_part(struct assembly *assembly, const char *name, int32_t whole, int64_t first_element,
                      const int64_t dim[4]);
// Tracks uses of this part separately: from now on, ops on it and ops on other parts of the whole do not wait for each
// other. The caller must order ops that reach its bytes through another tensor.
void assembly_set_apart(struct assembly *assembly, int32_t part);

// A tensor can have a number of rows that is known only in the step, such as the tokens of an expert (struct
// row_count). assembly_row_count adds a row count to the plan and returns its index. assembly_rows returns the rows
// that the plan expects in a tensor, assembly_max_rows the rows that fit into its memory; both are equal without a row
// count. assembly_alike adds an activation with the rows and the row count of another tensor.
int32_t assembly_row_count(struct assembly *assembly, const struct row_count *row_count);
int64_t assembly_rows(const struct assembly *assembly, int32_t tensor);
int64_t assembly_max_rows(const struct assembly *assembly, int32_t tensor);
int64_t assembly_elements(const struct assembly *assembly, int32_t tensor);    // of the rows in the plan
int32_t assembly_alike(struct assembly *assembly, const char *name, int32_t tensor, int64_t columns);

void      assembly_set_part(struct assembly *assembly, enum model_part part);    // of the following ops
struct op assembly_op(const struct assembly *assembly, enum op_kind kind, const char *role);
void      assembly_operand(struct op *op, int slot, enum access access, int32_t tensor);    // tensor -1: none
int32_t   assembly_append(struct assembly *assembly, struct op *op);    // adds dependencies; returns its index
// Appends an op with these operands, in addition to those that it has. The op table says how it accesses them.
struct operand {
    int     slot;
    int32_t tensor;    // -1: none
};
#define SLOTS(...)                                                                                                     \
    (const struct operand[]){__VA_ARGS__}, sizeof((const struct operand[]){__VA_ARGS__}) / sizeof(struct operand)
int32_t assembly_append_with(struct assembly *assembly, struct op *op, const struct operand *operands, size_t count);
int32_t assembly_group(struct assembly *assembly, uint32_t axes);
// Makes an op that is not appended yet depend on op until, whatever its operands.
void assembly_hold(const struct assembly *assembly, struct op *op, int32_t until);
// Makes the next compute op wait for op `until` of another stream, whatever its operands. Without a limit on the ops
// that wait in that stream, their tensors could fill the memory.
void assembly_hold_compute(struct assembly *assembly, int32_t until);

// Fields of a communication op on whole tensors. in: -1 for a receive, or if out is updated in place. out: -1 for a
// send. makes: enum model_value; 0: the output, or in the backward pass the gradient of the input. hold: an op that
// must end first, or -1. peer, channel, ahead: as in struct communication_shape.
struct communication {
    enum op_kind kind;
    const char  *role;
    uint8_t      makes;
    uint32_t     axes;
    enum stream  stream;
    int32_t      in, out, hold;
    int32_t      peer, channel;
    int64_t      ahead;
};
int32_t assembly_communication(struct assembly *assembly, const struct communication *communication);
// Adds an operand to an op that is already appended. No other stream may have used the tensor.
void assembly_add_operand(struct assembly *assembly, int32_t op, int slot, enum access access, int32_t tensor);
bool assembly_is_current(const struct assembly *assembly, int32_t op, int32_t tensor);    // not written after that op
bool assembly_is_unread(const struct assembly *assembly, int32_t tensor);
void assembly_clear(struct assembly *assembly, const char *role, int32_t tensor);
void assembly_cast(struct assembly *assembly, const char *role, int32_t from, int32_t to, bool adds);
