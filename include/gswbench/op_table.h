// SPDX-License-Identifier: MIT
// What is known of each kind of op: one row a kind. Everything that depends on the kind of an op looks it up here:
// printing and JSON, keys of measured times, operands, FLOPs, prices, the waterfall, the verifier, and the table in
// docs/method.md.
#ifndef GSWBENCH_OP_TABLE_H
#define GSWBENCH_OP_TABLE_H

#include "gswbench/op.h"

// A number of an op's shape, or of the op itself, by its name. What decides the time of an op is part of its key.
struct op_field {
    const char *name;      // NULL ends a list
    uint8_t     type;      // enum op_field_type
    uint8_t     uses;      // OP_FIELD_SHOWN, OP_FIELD_KEY
    uint16_t    offset;    // in struct op
};
enum op_field_type { OP_FIELD_INT64, OP_FIELD_INT32, OP_FIELD_UINT8, OP_FIELD_BOOL };
enum { OP_FIELD_SHOWN = 1, OP_FIELD_KEY = 2, OP_FIELD_BOTH = OP_FIELD_SHOWN | OP_FIELD_KEY };

// How many elements an operand has by the shape of its op: -1 for transfers, whose groups say more.
struct op_size {
    const struct op_field *shape;    // whose fields it counts with; NULL: none
    int64_t (*elements)(const struct op *op);
    bool is_share;    // of a transfer: what one rank of the group has of all its elements
};

enum op_use {
    OP_USE_NONE,    // the kind has no such operand
    OP_USE_READ,
    OP_USE_WRITE,
    OP_USE_UPDATE,
    OP_USE_ADD,              // updated when the op accumulates, else written
    OP_USE_ADD_QUERY,        // updated when the shape adds_query, else written
    OP_USE_UNLESS_MASTER,    // written from a master copy, updated where there is none
};
enum op_need {
    OP_NEED_ALWAYS,
    OP_NEED_NEVER,
    OP_NEED_OWN_SCALE,    // where the op finds one scale itself
    OP_NEED_NO_MASTER,    // where there is no master copy
};

struct op_slot {
    const char           *name;
    uint8_t               use, need;    // enum op_use, enum op_need
    bool                  is_table;     // only the rows of the op's tokens are touched
    const struct op_size *size;
    uint8_t               twice;    // enum op_twice
    uint8_t               holds;    // enum op_content
};

// When an operand that is read is read a second time.
enum op_twice {
    OP_TWICE_NEVER,
    OP_TWICE_TO_SCALE,     // a scale is found first
    OP_TWICE_TO_COPY,      // copies are made of what is not stored, after all of a row is known
    OP_TWICE_TO_REPEAT,    // the same, after all of a matrix is known: a scale is found first
};

// How an op is priced.
enum op_price {
    OP_PRICE_NONE,
    OP_PRICE_GEMM,
    OP_PRICE_ATTENTION_FORWARD,
    OP_PRICE_ATTENTION_BACKWARD,
    OP_PRICE_MEMORY,    // the bytes of its operands
    OP_PRICE_CAST,      // the same, where another program may fuse what makes FP8 copies
    OP_PRICE_ROUTE,     // the same, and what a host does for experts
    OP_PRICE_TRANSFER,
};

// The way that a transfer takes through its group.
enum op_route { OP_ROUTE_NONE, OP_ROUTE_RING, OP_ROUTE_TREE, OP_ROUTE_ALL_TO_ALL, OP_ROUTE_HOP };

// What the peer of a transfer's shape is: nothing, the other end of a link, the member that has the data, or how many
// places they go round the ring.
enum op_peer { OP_PEER_NONE, OP_PEER_END, OP_PEER_ROOT, OP_PEER_PLACES };

// In which part of a waterfall the time of an op of the forward or the backward pass goes.
enum op_part {
    OP_PART_NONE,
    OP_PART_GEMM,
    OP_PART_ATTENTION,
    OP_PART_MEMORY,
    OP_PART_CAST,
    OP_PART_CONVERSION,
    OP_PART_EXPOSED
};

enum { OP_SLOTS = ROUTE_BIAS + 1 };

struct op_row {
    const struct op_field *shape;
    uint8_t                price, part, route, peer;    // enum op_price, enum op_part, enum op_route, enum op_peer
    uint8_t                fused_output;                // slot of the output that FP8 copies may be fused to; 0: none
    struct op_slot         slots[OP_SLOTS];
};
extern const struct op_row op_table[OP_COUNT];

// Shapes.
extern const struct op_field gemm_fields[], rows_fields[], attention_fields[], routing_fields[], quantize_fields[],
    rescale_fields[], elements_fields[], transfer_fields[], link_fields[];

int64_t op_field_value(const struct op *op, const struct op_field *field);

#endif
