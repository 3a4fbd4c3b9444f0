// SPDX-License-Identifier: MIT
// Appends tensors and ops to a plan under construction. Layers name the operands of each op; from these the assembly
// derives the op's dependencies on ops of other streams.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/plan.h"

// The last ops that used a tensor. A new op depends on the writer of its operands, and on the readers of the operands
// that it writes. writer: last op that wrote the tensor. reader: for each stream, the last op that read it. -1: none.
// Uses of a part of a tensor (assembly_part) are recorded in `writer` and `reader` of the whole tensor, unless the part
// has is_apart. The fields after is_apart always describe the part itself.
struct usage {
    int32_t writer;
    int32_t reader[STREAM_COUNT];
    bool    is_apart;          // uses of this part of a tensor are tracked here (assembly_set_apart)
    int32_t quantizer;         // op that quantized the tensor, or transposed a quantized tensor; -1: none
    int32_t inverse_scales;    // tensor with the inverse scales of a low-precision tensor; -1: none
    int32_t tensor_scale;      // NVFP4: tensor with the inverse scale of the whole tensor; -1: none
};

struct assembly {
    struct plan  *plan;
    int32_t       tensor_capacity, op_capacity;
    struct usage *usage;                    // [tensor_capacity]
    struct op_tag tag;                      // tag of the ops being appended
    bool          is_initial;               // the ops being appended also run once before the first step (struct op)
    bool          is_aside;                 // ops of another microbatch are interleaved with the ops being appended
    int32_t       pending[STREAM_COUNT];    // op of each stream that the next compute op must wait for; -1: none
    int32_t       last_compute;             // last op of the compute stream; -1: none
    int32_t       last_reader;              // last OP_READ_TOKEN_COUNTS, where the host waits for the device; -1: none
};

// Begins a plan, which the caller owns. The caller has set the fields that describe the job, and zeroed all others.
void assembly_begin(struct assembly *assembly, struct plan *plan);
// Assigns memory to activations, drops redundant dependencies, and frees everything except the plan.
void assembly_finish(struct assembly *assembly);
// Assigns memory offsets to activations (memory.c). clocks and position: results of order_clocks (plan.h).
void memory_place(struct plan *plan, const int32_t *clocks, const int32_t *position);
void assembly_free(struct assembly *assembly);    // call instead of assembly_finish if the plan has no activations

#define DIMS(...) ((const int64_t[4]){__VA_ARGS__})
int32_t assembly_tensor(struct assembly *assembly, const char *name, enum storage storage, enum format format,
                        const int64_t dim[4]);
int32_t assembly_activation(struct assembly *assembly, const char *name, const int64_t dim[4]);
// Adds a part of the tensor `whole`, from element first_element on. The part has the format and storage of the whole.
int32_t assembly_part(struct assembly *assembly, const char *name, int32_t whole, int64_t first_element,
                      const int64_t dim[4]);
// Tracks uses of this part separately: from now on, ops on it and ops on other parts of the whole do not wait for each
// other. The caller must order ops that access the part's bytes through another tensor.
void assembly_set_apart(struct assembly *assembly, int32_t part);

// A tensor can have a number of rows that is known only in the step, such as the tokens of an expert (struct
// row_count). assembly_row_count adds a row count to the plan and returns its index. assembly_rows returns the rows
// that the plan expects in a tensor, assembly_max_rows the rows that fit into its memory; both are equal without a row
// count. assembly_alike adds an activation with the rows and the row count of another tensor.
int32_t assembly_row_count(struct assembly *assembly, const struct row_count *row_count);
int64_t assembly_rows(const struct assembly *assembly, int32_t tensor);
int64_t assembly_max_rows(const struct assembly *assembly, int32_t tensor);
int64_t assembly_elements(const struct assembly *assembly, int32_t tensor);    // elements in the expected rows
int32_t assembly_alike(struct assembly *assembly, const char *name, int32_t tensor, int64_t columns);

void      assembly_set_part(struct assembly *assembly, enum model_part part);    // the model part of the following ops
struct op assembly_op(const struct assembly *assembly, enum op_kind kind, const char *role);
void      assembly_operand(struct op *op, int slot, int32_t tensor);    // tensor -1: none
// Appends an op, with its dependencies and with the accesses of the op table. Returns its index. assembly_append_with
// appends it with these operands in addition to operands that it already has.
int32_t assembly_append(struct assembly *assembly, struct op *op);
struct operand {
    int     slot;
    int32_t tensor;    // -1: none
};
#define SLOTS(...)                                                                                                     \
    (const struct operand[]){__VA_ARGS__}, sizeof((const struct operand[]){__VA_ARGS__}) / sizeof(struct operand)
int32_t assembly_append_with(struct assembly *assembly, struct op *op, const struct operand *operands, size_t count);
int32_t assembly_group(struct assembly *assembly, uint32_t axes);
// Makes `op`, which is not appended yet, wait for the op with index `until`, even if they share no operands.
void assembly_hold(const struct assembly *assembly, struct op *op, int32_t until);
// Makes the next compute op wait for op `until` of another stream. This limits the lag of that stream: otherwise the
// tensors of its waiting ops, such as gradients to reduce, could fill the memory.
void assembly_hold_compute(struct assembly *assembly, int32_t until);

// A communication op on all elements of its tensors. in: tensor to send; -1 for a receive, or if `out` is updated in
// place. out: result; -1 for a send. makes (enum model_value): what `out` is for its linear; MAKES_OUTPUT
// becomes MAKES_INPUT_GRADIENT in the backward pass. hold: an op that must end before this op starts; -1: none.
// peer, channel, ahead: as in struct communication_shape.
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
// Adds an operand, but no dependency, to an appended op. No op of another stream may have used the tensor.
void assembly_add_operand(struct assembly *assembly, int32_t op, int slot, int32_t tensor);
// Returns whether the tensor has not been written after this op.
bool assembly_is_current(const struct assembly *assembly, int32_t op, int32_t tensor);
bool assembly_is_unread(const struct assembly *assembly, int32_t tensor);
void assembly_clear(struct assembly *assembly, const char *role, int32_t tensor);
void assembly_cast(struct assembly *assembly, const char *role, int32_t from, int32_t to, bool adds);
