// SPDX-License-Identifier: MIT
// Builds and prints the key of an op: everything that determines its time, except the machine. Ops with equal keys take
// the same time, so one measurement serves all.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/measured.h"
#include "gswbench/op_table.h"

enum { UPDATED = 128 };

void op_key_init(struct op_key *key, const struct plan *plan, const struct op *op)
{
    *key = (struct op_key){.kind = op->kind};
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            int updated         = op->access[slot] == ACCESS_UPDATE ? UPDATED : 0;
            key->operands[slot] = (uint8_t)((1 + (int)plan->tensors[op->operand[slot]].format) | updated);
        }
    }
    int count = 0;
    for (const struct op_field *field = op_table[op->kind].shape; field->name != NULL; field++) {
        if (field->uses & OP_FIELD_KEY) {
            key->numbers[count++] = op_field_value(op, field);
        }
    }
    // the time depends on the nodes of the ranks, which follow from group size and rank stride
    if (op_is_communication((enum op_kind)op->kind)) {
        const struct plan_group *group = &plan->groups[op->shape.communication.group];
        key->numbers[count]            = group->size;
        key->numbers[count + 1]        = group->size > 1 ? group->ranks[1] - group->ranks[0] : 0;
    }
}

// Returns the number of operands to print. Absent operands at the end of the list are not printed.
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
        length +=
            snprintf(text + length, (size_t)(OP_KEY_BYTES - length), "%s%s%s", i == 0 ? "" : ",",
                     type == 0 ? "-" : format_name((enum format)(type - 1)), key->operands[i] & UPDATED ? "+" : "");
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
    for (int type = 0; type < FORMAT_COUNT; type++) {
        if (strcmp(word, format_name((enum format)type)) == 0) {
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
