// SPDX-License-Identifier: MIT
// What the time of an op depends on, but for the machine, as numbers and as text.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/measured.h"

enum { UPDATED = 128 };

static void number_rows(const struct op *op, int64_t *numbers)
{
    const struct rows_shape *shape    = &op->shape.rows;
    const int64_t            values[] = {shape->rows,  shape->columns, shape->valid_columns,
                                         shape->parts, shape->variant, op->fused_scaling};
    memcpy(numbers, values, sizeof(values));
}

static void number_attention(const struct attention_shape *shape, int64_t *numbers)
{
    const int64_t values[] = {shape->batch,  shape->sequence, shape->heads,      shape->kv_heads, shape->head_dim,
                              shape->rotary, shape->causal,   shape->adds_query, shape->earlier};
    memcpy(numbers, values, sizeof(values));
}

static void number_routing(const struct routing_shape *shape, int64_t *numbers)
{
    const int64_t values[] = {shape->rows,  shape->columns, shape->total,    shape->sequences, shape->experts,
                              shape->top_k, shape->owners,  shape->capacity, shape->balanced};
    memcpy(numbers, values, sizeof(values));
}

// Where the members of a group lie follows from how far apart in the order of ranks they are.
static void number_transfer(const struct transfer_shape *shape, const struct plan_group *group, int64_t *numbers)
{
    const int64_t values[] = {shape->elements, group->size, group->size > 1 ? group->ranks[1] - group->ranks[0] : 0};
    memcpy(numbers, values, sizeof(values));
}

static void number_shape(const struct op *op, int64_t *numbers)
{
    const struct gemm_shape *gemm = &op->shape.gemm;
    switch (op->kind) {
    case OP_GEMM:
        memcpy(numbers,
               (const int64_t[]){gemm->m, gemm->n, gemm->k, gemm->transpose_a, gemm->transpose_b, op->sums_fast,
                                 gemm->scaling_a, gemm->scaling_b},
               8 * sizeof(*numbers));
        break;
    case OP_ROPE_FORWARD:
    case OP_ROPE_BACKWARD:
    case OP_ATTENTION_FORWARD:
    case OP_ATTENTION_BACKWARD:
    case OP_ATTENTION_MERGE:
        number_attention(&op->shape.attention, numbers);
        break;
    case OP_ROUTE_FORWARD:
    case OP_ROUTE_BACKWARD:
    case OP_DISPATCH:
    case OP_COMBINE:
    case OP_COMBINE_BACKWARD:
        number_routing(&op->shape.routing, numbers);
        break;
    case OP_QUANTIZE:
        numbers[0] = op->shape.quantize.rows;
        numbers[1] = op->shape.quantize.columns;
        numbers[2] = op->shape.quantize.scaling;
        break;
    case OP_RESCALE:
        numbers[0] = op->shape.rescale.slots;
        numbers[1] = op->shape.rescale.history;
        break;
    case OP_CAST:
    case OP_MAGNITUDE:
    case OP_CLEAR:
    case OP_SQUARE_SUM:
    case OP_CLIP:
    case OP_ADAMW:
        numbers[0] = op->shape.elements.elements;
        break;
    default:
        number_rows(op, numbers);
    }
}

void op_key_init(struct op_key *key, const struct plan *plan, const struct op *op)
{
    *key = (struct op_key){.kind = op->kind};
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            int updated         = op->access[slot] == ACCESS_UPDATE ? UPDATED : 0;
            key->operands[slot] = (uint8_t)((1 + (int)plan->tensors[op->operand[slot]].dtype) | updated);
        }
    }
    if (op_is_transfer((enum op_kind)op->kind)) {
        number_transfer(&op->shape.transfer, &plan->groups[op->shape.transfer.group], key->numbers);
    } else {
        number_shape(op, key->numbers);
    }
}

// Of a list only what comes after the last that is not zero is left out.
static int count_operands(const struct op_key *key)
{
    int count = OP_OPERANDS;
    while (count > 1 && key->operands[count - 1] == 0) {
        count--;
    }
    return count;
}

const char *op_key_print(const struct op_key *key, char *text)
{
    int length   = snprintf(text, OP_KEY_BYTES, "%s ", op_name((enum op_kind)key->kind));
    int operands = count_operands(key), numbers = OP_KEY_NUMBERS;
    for (int i = 0; i < operands; i++) {
        int type = key->operands[i] & ~UPDATED;
        length += snprintf(text + length, (size_t)(OP_KEY_BYTES - length), "%s%s%s", i == 0 ? "" : ",",
                           type == 0 ? "-" : dtype_name((enum dtype)(type - 1)), key->operands[i] & UPDATED ? "+" : "");
    }
    while (numbers > 1 && key->numbers[numbers - 1] == 0) {
        numbers--;
    }
    for (int i = 0; i < numbers; i++) {
        length +=
            snprintf(text + length, (size_t)(OP_KEY_BYTES - length), "%s%" PRId64, i == 0 ? " " : "x", key->numbers[i]);
    }
    return text;
}

static bool parse_kind(const char *word, int64_t *kind)
{
    for (*kind = 0; *kind < OP_COUNT; ++*kind) {
        if (strcmp(word, op_name((enum op_kind) * kind)) == 0) {
            return true;
        }
    }
    return false;
}

static bool parse_operand(char *word, uint8_t *operand)
{
    size_t  length  = strlen(word);
    uint8_t updated = length > 0 && word[length - 1] == '+' ? UPDATED : 0;
    if (strcmp(word, "-") == 0) {
        *operand = 0;
        return true;
    }
    word[length - (updated != 0)] = '\0';
    for (int type = 0; type < DTYPE_COUNT; type++) {
        if (strcmp(word, dtype_name((enum dtype)type)) == 0) {
            *operand = (uint8_t)((1 + type) | updated);
            return true;
        }
    }
    return false;
}

static bool parse_operands(char *words, struct op_key *key)
{
    char *rest;
    int   count = 0;
    for (char *word = strtok_r(words, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (count == OP_OPERANDS || !parse_operand(word, &key->operands[count++])) {
            return false;
        }
    }
    return true;
}

static bool parse_numbers(char *words, struct op_key *key)
{
    char *rest;
    int   count = 0;
    for (char *word = strtok_r(words, "x", &rest); word != NULL; word = strtok_r(NULL, "x", &rest)) {
        if (count == OP_KEY_NUMBERS || strspn(word, "0123456789") != strlen(word) || strlen(word) > 18) {
            return false;
        }
        key->numbers[count++] = strtoll(word, NULL, 10);
    }
    return true;
}

bool op_key_parse(const char *text, struct op_key *key)
{
    char copy[OP_KEY_BYTES], *rest;
    *key = (struct op_key){.kind = 0};
    if (strlen(text) >= sizeof(copy)) {
        return false;
    }
    memcpy(copy, text, strlen(text) + 1);
    char *kind = strtok_r(copy, " ", &rest), *operands = strtok_r(NULL, " ", &rest),
         *numbers = strtok_r(NULL, " ", &rest);
    return numbers != NULL && strtok_r(NULL, " ", &rest) == NULL && parse_kind(kind, &key->kind) &&
           parse_operands(operands, key) && parse_numbers(numbers, key);
}
