// SPDX-License-Identifier: MIT
// Every op on the host and on the device; fused ones on the device, whole and in parts. Inputs are new in every run;
// outputs are poisoned before, and end with guards. The device runs each case several times and must give the same
// bits. ops_device SEED repeats a run.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buffers.h"
#include "device.h"
#include "gswbench/arena.h"
#include "op_operands.h"

enum { RUNS = 3 };    // of a case on the device

// Largest difference over largest value. fp32: sums in another order; bf16: one rounding apart on top of it. A device's
// matrix units keep sums of FP8 in 14 bits or so before they add them up in fp32, and read attention's probabilities in
// bf16.
static double tolerance_of(const struct op *op, const struct buffer operands[OP_OPERANDS], int slot)
{
    if (op->kind == OP_GEMM && slot == GEMM_C && format_is_narrow(operands[GEMM_A].format)) {
        return 8e-3;
    }
    if ((op->kind == OP_ATTENTION_FORWARD && slot == ATTENTION_OUT) || op->kind == OP_ATTENTION_BACKWARD) {
        return 8e-3;
    }
    if ((op->kind >= OP_QUANTIZE && op->kind <= OP_RESCALE) || op_is_fused(op)) {
        return 0;
    }
    return operands[slot].format == FORMAT_F32 ? 2e-5 : operands[slot].format == FORMAT_BF16 ? 8e-3 : 0;
}

// Runs the op on copies of the operands and leaves in them what the device made of them.
static void run_on_device(struct backend *device, const struct op *op, struct buffer operands[OP_OPERANDS])
{
    struct buffer buffers[OP_OPERANDS];
    memcpy(buffers, operands, sizeof(buffers));
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        if (operands[slot].data != NULL) {
            buffers[slot].data = backend_allocate(device, guarded_bytes(&operands[slot]));
            device->ops->upload(device, buffers[slot].data, operands[slot].data, guarded_bytes(&operands[slot]));
        }
    }
    const struct prepared *prepared;
    status                 outcome = backend_prepare(device, op, buffers, &prepared);
    if (failed(&outcome)) {
        printf("FAIL %s: %s\n", op->tag.role, outcome.text);
        exit(1);
    }
    backend_reserve_scratch(device, device->ops->scratch_bytes(device, op));
    backend_run(device, prepared, op, buffers);
    device->ops->streams->synchronize(device, op->lane);
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        if (operands[slot].data != NULL) {
            device->ops->download(device, operands[slot].data, buffers[slot].data, guarded_bytes(&operands[slot]));
            backend_release(device, buffers[slot].data, guarded_bytes(&operands[slot]));
        }
    }
}

// Runs the two parts of a fused op one after the other.
static void run_apart(struct backend *device, const struct op *op, struct buffer operands[OP_OPERANDS])
{
    int            slot  = op_fused_output((enum op_kind)op->kind);
    struct op      maker = *op, quantize = op_quantize_of(op);
    struct buffer  made[OP_OPERANDS] = {{.data = NULL}}, copies[OP_OPERANDS] = {{.data = NULL}};
    struct buffer *output = &made[slot];
    memcpy(made, operands, sizeof(*made) * OP_FUSED);
    memcpy(copies, operands + OP_FUSED, sizeof(*copies) * (OP_OPERANDS - OP_FUSED));
    bool is_absent = output->data == NULL;
    if (is_absent) {
        *output      = (struct buffer){.elements = op_operand_elements(op, slot), .format = operands[0].format};
        output->data = memory_allocate((size_t)guarded_bytes(output));
    }
    maker.operand_count = OP_FUSED;
    run_on_device(device, &maker, made);
    copies[QUANTIZE_IN] = *output;
    run_on_device(device, &quantize, copies);
    if (is_absent) {
        free(output->data);
    }
}

// FP8 codes are the same bit for bit, but for the sign of a NaN.
static bool is_same_element(const struct buffer *one, const struct buffer *other, int64_t i)
{
    double first = get(one, i), second = get(other, i);
    if (isnan(first) && isnan(second)) {
        return true;
    }
    return format_is_narrow(one->format) ? ((uint8_t *)one->data)[i] == ((uint8_t *)other->data)[i] : first == second;
}

// The error, or infinity: an element that is a number or infinite on one side only, another code of FP8, or a guard
// that was written.
static double compare(const struct buffer *device, const struct buffer *host)
{
    double largest = 1e-30, difference = 0;
    for (int64_t i = 0; i < host->elements; i++) {
        double expected = get(host, i), found = get(device, i);
        bool   is_comparable = isfinite(found) && isfinite(expected) && !format_is_narrow(host->format);
        if (!is_comparable && !is_same_element(device, host, i)) {
            return INFINITY;
        }
        if (isfinite(expected)) {
            largest    = fmax(largest, fabs(expected));
            difference = fmax(difference, fabs(found - expected));
        }
    }
    struct buffer guards = {.data = memory_allocate(GUARDS * 4), .elements = GUARDS, .format = host->format};
    poison(&guards, 0, GUARDS);
    bool is_intact = memcmp(guards.data, (char *)device->data + format_offset(host->format, host->elements),
                            (size_t)format_bytes(host->format, GUARDS)) == 0;
    free(guards.data);
    return is_intact ? difference / largest : INFINITY;
}

// Whether the operands are what they are expected to be.
static bool agrees(const struct op *op, const struct buffer found[OP_OPERANDS],
                   const struct buffer expected[OP_OPERANDS])
{
    bool passes = true;
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            double error = compare(&found[slot], &expected[slot]), bound = tolerance_of(op, expected, slot);
            bool   is_close = error <= bound;
            if (!is_close || (op->access[slot] & ACCESS_WRITE)) {
                printf("%s %s: operand %d (%s) differs by %.2g, at most %.2g\n", is_close ? "ok  " : "FAIL",
                       op->tag.role, slot, format_name(expected[slot].format), error, bound);
            }
            passes = passes && is_close;
        }
    }
    return passes;
}

// Whether the op gives the same bits again, from the same inputs; on an emulated device in another order of threads.
static bool repeats(struct backend *device, const struct op *op, const struct buffer found[OP_OPERANDS],
                    struct buffer again[OP_OPERANDS], unsigned order)
{
    bool passes = true;
    device_order(order);
    run_on_device(device, op, again);
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0 &&
            memcmp(again[slot].data, found[slot].data, (size_t)guarded_bytes(&found[slot])) != 0) {
            printf("FAIL %s: operand %d has other bits in run %u\n", op->tag.role, slot, order);
            passes = false;
        }
    }
    return passes;
}

static bool run_case(const struct op_case *test, struct backend *host, struct backend *device, uint64_t seed)
{
    struct op     op = complete_op(test);
    struct buffer expected[OP_OPERANDS], found[OP_OPERANDS];
    make_operands(host, test, &op, seed, expected);
    make_operands(host, test, &op, seed, found);
    device_order(0);
    if (op_is_fused(&op)) {
        run_apart(device, &op, expected);
    } else {
        run_on_host(host, &op, expected);
    }
    run_on_device(device, &op, found);
    bool passes = agrees(&op, found, expected);
    free_buffers(expected);

    for (unsigned order = 1; order < RUNS; order++) {
        struct buffer again[OP_OPERANDS];
        make_operands(host, test, &op, seed, again);
        passes = repeats(device, &op, found, again, order) && passes;
        free_buffers(again);
    }
    free_buffers(found);
    return passes;
}

// Every op that the device has stands in the table.
static bool table_is_complete(const struct backend *device)
{
    bool has[OP_COUNT] = {false}, is_complete = true;
    for (int i = 0; i < op_case_count; i++) {
        has[op_cases[i].op.kind] = true;
    }
    for (enum op_kind kind = 0; kind < OP_COUNT; kind++) {
        if (!has[kind] && device->ops->run[kind] != NULL) {
            printf("FAIL no case of %s\n", op_name(kind));
            is_complete = false;
        }
    }
    return is_complete;
}

int main(int argc, char **argv)
{
    device_require();
    uint64_t       seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
    struct backend host, device;
    status         opened = backend_open(&host, "host", &device_setup);
    if (!failed(&opened)) {
        opened = backend_open(&device, "cuda", &device_setup);
    }
    if (failed(&opened)) {
        printf("FAIL %s\n", opened.text);
        return 1;
    }
    int failures = !table_is_complete(&device);
    printf("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < op_case_count; i++) {
        failures += !run_case(&op_cases[i], &host, &device, seed + (uint64_t)i);
    }
    printf("%d cases, %d failed\n", op_case_count, failures);
    backend_close(&device);
    backend_close(&host);
    return failures > 0;
}
