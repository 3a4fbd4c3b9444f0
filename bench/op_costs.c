// SPDX-License-Identifier: MIT
// Prints the predicted seconds of single compute ops, for comparison with measured tables:
//
//     bench_op_costs OVERRIDE... < OPS
//
// OPS has one op per line in the form of section [measured], such as gemm bf16,bf16,bf16 512x512x512x0x1. OVERRIDE is a
// value such as hardware.profile=b200.
#include <stdio.h>
#include <string.h>

#include "gswbench/measured.h"
#include "gswbench/op_operands.h"
#include "gswbench/op_table.h"
#include "gswbench/predict.h"

static void set_field(struct op *op, const struct op_field *field, int64_t value)
{
    void *at = (char *)op + field->offset;
    switch ((enum op_field_type)field->type) {
    case OP_FIELD_INT64:
        *(int64_t *)at = value;
        break;
    case OP_FIELD_INT32:
        *(int32_t *)at = (int32_t)value;
        break;
    case OP_FIELD_UINT8:
        *(uint8_t *)at = (uint8_t)value;
        break;
    case OP_FIELD_BOOL:
        *(bool *)at = value != 0;
        break;
    }
}

// Makes an op from its key, the inverse of op_key_init. Each operand gets its own tensor.
static struct op make_op(const struct op_key *key, struct tensor tensors[OP_OPERANDS])
{
    struct op op     = {.kind = (uint8_t)key->kind};
    int       number = 0;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        int type         = key->operands[slot] & 127;
        op.operand[slot] = type == 0 ? -1 : slot;
        op.access[slot]  = key->operands[slot] > 127 ? ACCESS_UPDATE : ACCESS_READ;
        tensors[slot]    = (struct tensor){.format = type == 0 ? FORMAT_BF16 : (enum format)(type - 1)};
    }
    for (const struct op_field *field = op_table[key->kind].shape; field->name != NULL; field++) {
        if (field->uses & OP_FIELD_KEY) {
            set_field(&op, field, key->numbers[number++]);
        }
    }
    op.accumulates   = op.kind == OP_GEMM && op.access[GEMM_C] == ACCESS_UPDATE;
    op.sums_fast     = op.kind == OP_GEMM;    // as in the measured tables
    op.operand_count = op.kind == OP_GEMM || op.kind == OP_QUANTIZE ? OP_SLOTS : OP_OPERANDS;
    return op;
}

int main(int count, char **words)
{
    struct config         config;
    struct text_buffer    errors  = {0};
    struct config_request request = {
        .name = "tiny-llama", .overrides = (const char *const *)words + 1, .override_count = count - 1};
    status result = config_read(&config, &request, &errors);
    if (failed(&result)) {
        fprintf(stderr, "%s", errors.text);
        return 3;
    }
    struct machine machine = predict_machine(&config, NULL);
    char           line[OP_KEY_BYTES];
    for (int number = 1; fgets(line, sizeof(line), stdin) != NULL; number++) {
        struct op_key key;
        struct tensor tensors[OP_OPERANDS];
        struct plan   plan        = {.tensors = tensors};
        line[strcspn(line, "\n")] = '\0';
        if (!op_key_parse(line, &key) || op_is_communication((enum op_kind)key.kind)) {
            fprintf(stderr, "line %d: expected a compute op, such as gemm bf16,bf16,bf16 512x512x512x0x1\n", number);
            return 2;
        }
        struct op op = make_op(&key, tensors);
        printf("%.6g\n", predict_cost_op(&machine, &plan, &op).seconds);
    }
    text_free(&errors);
    return 0;
}
