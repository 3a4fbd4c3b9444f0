// SPDX-License-Identifier: MIT
// Declares the table of op kinds. A row has the operands of a kind, its cost model, its part of the waterfall, and the
// fields of its shape. The cost model also selects the formula of FLOPs. The fields are printed, written to JSON, and
// form the key of a measured time. docs/predictions.md lists the keys.
#pragma once

#include "gswbench/op.h"

// A named number in an op's shape, or in struct op. Numbers that affect the duration of an op are part of its key.
struct op_field {
    const char *name;      // NULL ends a list
    uint8_t     type;      // enum op_field_type
    uint8_t     uses;      // bits: OP_FIELD_SHOWN (printed with the op), OP_FIELD_KEY (part of its key)
    uint16_t    offset;    // offset in struct op
};
enum op_field_type { OP_FIELD_INT64, OP_FIELD_INT32, OP_FIELD_UINT8, OP_FIELD_BOOL };
enum { OP_FIELD_SHOWN = 1, OP_FIELD_KEY = 2, OP_FIELD_BOTH = OP_FIELD_SHOWN | OP_FIELD_KEY };

// Computes the number of elements of an operand from the op's shape. For communication, `elements` returns -1, because
// the number depends on the size of the group.
struct op_size {
    const struct op_field *shape;    // shape fields that the number depends on; NULL: none
    int64_t (*elements)(const struct op *op);
    bool is_share;    // communication: the operand has 1 / group size of the shape's elements
};

enum op_use {
    OP_USE_NONE,    // no such operand
    OP_USE_READ,
    OP_USE_WRITE,
    OP_USE_UPDATE,
    OP_USE_ADD,              // updated if the op accumulates, else written
    OP_USE_ADD_QUERY,        // updated if the shape has adds_query, else written
    OP_USE_UNLESS_MASTER,    // written if there are master weights, else updated
};
enum op_need {
    OP_NEED_ALWAYS,    // the operand must be present
    OP_NEED_NEVER,
    OP_NEED_OWN_SCALE,    // required if the op computes an FP8 per-tensor scale
    OP_NEED_NO_MASTER,    // required if there are no master weights
};

struct op_slot {
    const char           *name;
    uint8_t               use, need;    // enum op_use, enum op_need
    bool                  is_table;     // the op accesses only the table rows of its tokens
    const struct op_size *size;
    uint8_t               twice;      // enum op_twice
    uint8_t               holds;      // enum op_content
    const struct op_size *touched;    // number of elements that the op accesses; NULL: all
};

// Why an op reads an input operand a second time.
enum op_twice {
    OP_TWICE_NEVER,
    OP_TWICE_TO_SCALE,     // first to compute a scale, then to quantize
    OP_TWICE_TO_COPY,      // first for the statistics of a row, then to quantize the output, which is not stored
    OP_TWICE_TO_REPEAT,    // first for the scale of the output, then to quantize the output, which is not stored
};

// Cost model of an op.
enum op_cost {
    OP_COST_NONE,
    OP_COST_GEMM,
    OP_COST_ATTENTION_FORWARD,
    OP_COST_ATTENTION_BACKWARD,
    OP_COST_MEMORY,          // bytes of the operands
    OP_COST_CAST,            // bytes of the operands, or less if the modelled framework fuses the quantization
    OP_COST_SCAN_FORWARD,    // bytes of the operands and of the intermediate results of chunks
    OP_COST_SCAN_BACKWARD,
    OP_COST_ROUTE,    // bytes of the operands; a modelled framework adds host time per expert
    OP_COST_COMMUNICATION,
};

// The path of a communication op's data through its group.
enum op_route { OP_ROUTE_NONE, OP_ROUTE_RING, OP_ROUTE_TREE, OP_ROUTE_ALL_TO_ALL, OP_ROUTE_HOP };

// The meaning of `peer` in a communication_shape: unused, other rank of a send or receive, root, or distance in the
// ring.
enum op_peer { OP_PEER_NONE, OP_PEER_END, OP_PEER_ROOT, OP_PEER_PLACES };

// The part of the step time (waterfall) that an op of the forward or backward pass counts for.
enum op_part {
    OP_PART_NONE,
    OP_PART_GEMM,
    OP_PART_ATTENTION,
    OP_PART_MEMORY,
    OP_PART_CAST,          // quantization to FP8 or FP4
    OP_PART_CONVERSION,    // OP_CAST that changes the format and does not accumulate
    OP_PART_EXPOSED        // time in which only communication runs
};

enum { OP_SLOTS = SCAN_GRADIENT_SKIP + 1 };

struct op_row {
    const struct op_field *shape;
    uint8_t                cost, part, route, peer;    // enum op_cost, enum op_part, enum op_route, enum op_peer
    uint8_t                fused_output;               // output slot that the op can also quantize; 0: none
    struct op_slot         slots[OP_SLOTS];
};
extern const struct op_row op_table[OP_COUNT];

// Lists of the fields of each shape, for op_row.shape.
extern const struct op_field gemm_fields[], rows_fields[], attention_fields[], mamba_fields[], routing_fields[],
    quantize_fields[], rescale_fields[], elements_fields[], communication_fields[], link_fields[];

int64_t op_field_value(const struct op *op, const struct op_field *field);
