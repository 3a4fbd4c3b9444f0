// SPDX-License-Identifier: MIT
// A plan under construction: how tensors and ops are appended to it. Whoever appends an op names what it reads and
// writes; which ops of other lanes it has to wait for follows from that.
#ifndef GSWBENCH_ASSEMBLY_H
#define GSWBENCH_ASSEMBLY_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/plan.h"

// The last op that wrote a tensor, and the last reader on each lane: what a new op must be ordered after. -1: none.
struct usage {
    int32_t writer;
    int32_t reader[LANE_COUNT];
    // Of the tensor itself, not of its whole:
    bool    is_apart;     // its uses are tracked apart from those of its whole
    int32_t quantizer;    // the op that made its copies in FP8, or its transpose if it is FP8; -1: none
    int32_t factor;       // the tensor of factors that an FP8 tensor is to be multiplied by
};

struct assembly {
    struct plan  *plan;
    int32_t       tensor_capacity, op_capacity;
    struct usage *usage;                  // [tensor_capacity] of wholes: touching a part is touching the whole
    struct op_tag tag;                    // of the ops being appended
    bool          is_initial;             // of the ops being appended
    bool          is_aside;               // another microbatch takes turns with the one at hand
    int32_t       pending[LANE_COUNT];    // ops that the next compute op waits for, whatever it touches; -1
    int32_t       last_compute;           // -1: none
    int32_t       last_reader;            // of tallies, for which the host waits before it goes on; -1: none
};

// The plan is zeroed but for the fields that say what it is built from; it belongs to the caller.
void assembly_begin(struct assembly *assembly, struct plan *plan);
// Places activations, drops waits that others imply, and frees everything but the plan.
void assembly_finish(struct assembly *assembly);
void assembly_free(struct assembly *assembly);    // in place of assembly_finish, when there is nothing to place

#define DIMS(...) ((const int64_t[4]){__VA_ARGS__})
int32_t assembly_tensor(struct assembly *assembly, const char *name, enum storage storage, enum format format,
                        const int64_t dim[4]);
int32_t assembly_activation(struct assembly *assembly, const char *name, const int64_t dim[4]);
// A part of another tensor, from its element first_element on; it has the whole's type and storage.
int32_t assembly_part(struct assembly *assembly, const char *name, int32_t whole, int64_t first_element,
                      const int64_t dim[4]);
// From now on ops on the part do not wait for ops on the rest of its whole. The caller orders ops that touch the same
// bytes under another name.
void assembly_set_apart(struct assembly *assembly, int32_t part);

// A tally that an op reads; how many rows of a tensor an op is planned with, and a tensor has places for, whether they
// follow a tally or not; and a new activation with as many rows as another, which follow what that follows.
int32_t assembly_tally(struct assembly *assembly, const struct tally *tally);
int64_t assembly_rows(const struct assembly *assembly, int32_t tensor);
int64_t assembly_most_rows(const struct assembly *assembly, int32_t tensor);
int64_t assembly_elements(const struct assembly *assembly, int32_t tensor);    // of the rows it is planned with
int32_t assembly_alike(struct assembly *assembly, const char *name, int32_t tensor, int64_t columns);

struct op assembly_op(const struct assembly *assembly, enum op_kind kind, const char *role);
void      assembly_operand(struct op *op, int slot, enum access access, int32_t tensor);
int32_t   assembly_append(struct assembly *assembly, struct op *op);    // adds waits for what its operands depend on
int32_t   assembly_group(struct assembly *assembly, uint32_t axes);
// Makes an op that is not appended yet wait for the op until, whatever it touches.
void assembly_hold(const struct assembly *assembly, struct op *op, int32_t until);
// Makes the next compute op wait for the op until, though no operand asks for it: this bounds how far a lane lags
// behind, and so how much memory it holds.
void assembly_hold_compute(struct assembly *assembly, int32_t until);

// A transfer of whole tensors. in -1: out is updated in place; a send has no out, a receive no in. hold: an op that
// ends first, whatever is touched, or -1. peer: of a send, receive or rotation; channel: of a send or receive.
struct transfer {
    enum op_kind kind;
    const char  *role;
    uint32_t     axes;
    enum lane    lane;
    int32_t      in, out, hold;
    int32_t      peer, channel;
    int64_t      ahead;
};
int32_t assembly_transfer(struct assembly *assembly, const struct transfer *transfer);
// Gives an appended op one more operand, which no other lane has touched.
void assembly_add_operand(struct assembly *assembly, int32_t op, int slot, enum access access, int32_t tensor);
bool assembly_is_current(const struct assembly *assembly, int32_t op, int32_t tensor);    // not written since that op
bool assembly_is_unread(const struct assembly *assembly, int32_t tensor);
void assembly_clear(struct assembly *assembly, const char *role, int32_t tensor);
void assembly_cast(struct assembly *assembly, const char *role, int32_t from, int32_t to, bool adds);

#endif
