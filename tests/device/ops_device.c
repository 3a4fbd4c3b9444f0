// SPDX-License-Identifier: MIT
// Every op on the host and on the device: one table of shapes, odd ones included. Inputs are new in every run; outputs
// are poisoned before, and end with guards. ops_device SEED repeats a run.
#include <math.h>
#include <string.h>
#include <time.h>

#include "../buffers.h"
#include "device.h"
#include "gswbench/arena.h"

// Elements behind each buffer that nobody may write.
enum { GUARDS = 64 };

// How an input looks; outputs are poisoned, and so is what stands behind every buffer.
enum fill {
    NORMAL,
    POSITIVE,    // 0.5 + |normal|: second moments, 1/deviations
    INDICES,     // 0 .. bound - 1
};

// An operand of a case; access 0: absent.
struct operand {
    enum access access;
    enum dtype  dtype;
    enum fill   fill;
    uint32_t    bound;
};

struct device_case {
    const char    *name;
    struct op      op;    // kind, shape, accumulates; the rest follows from the operands
    struct operand operands[OP_OPERANDS];
};

// Largest difference over largest value. fp32: sums in another order; bf16: one rounding apart on top of it.
static double tolerance_of(enum dtype dtype)
{
    return dtype == DTYPE_F32 ? 2e-5 : dtype == DTYPE_BF16 ? 8e-3 : 0;
}

// clang-format off
#define R(type) {ACCESS_READ, DTYPE_##type, NORMAL, 0}
#define W(type) {ACCESS_WRITE, DTYPE_##type, NORMAL, 0}
#define U(type) {ACCESS_UPDATE, DTYPE_##type, NORMAL, 0}

#define GEMM(m, n, k, ta, tb, adds, in, out)                                                          \
    {"gemm " #m " x " #n " x " #k " " #ta #tb " " #in " " #out " " #adds,                             \
     {.kind = OP_GEMM, .accumulates = GEMM_##adds, .shape.gemm = {m, n, k, GEMM_##ta, GEMM_##tb}},    \
     {R(in), R(in), GEMM_OUT_##adds(out)}}
enum { GEMM_n = 0, GEMM_t = 1, GEMM_set = 0, GEMM_add = 1 };
#define GEMM_OUT_set W
#define GEMM_OUT_add U

static const struct device_case cases[] = {
    GEMM(256, 512, 384, n, n, set, BF16, BF16), GEMM(256, 512, 384, n, t, set, BF16, BF16),
    GEMM(256, 512, 384, t, n, set, BF16, BF16), GEMM(256, 512, 384, t, t, set, BF16, BF16),
    GEMM(256, 512, 384, n, t, set, BF16, F32),  GEMM(256, 512, 384, t, n, add, BF16, F32),
    GEMM(256, 512, 384, t, n, add, BF16, BF16), GEMM(136, 72, 200, t, n, set, BF16, F32),
    GEMM(129, 71, 203, n, n, set, BF16, BF16),  GEMM(129, 71, 203, n, t, set, BF16, F32),
    GEMM(129, 71, 203, t, n, add, BF16, F32),   GEMM(7, 5, 3, t, t, set, BF16, BF16),
    GEMM(1, 1, 1, n, n, set, BF16, F32),        GEMM(1, 4096, 64, n, t, set, BF16, BF16),
    GEMM(64, 48, 80, n, n, set, F32, F32),      GEMM(64, 48, 80, n, t, add, F32, F32),
    GEMM(33, 17, 65, t, n, add, F32, F32),      GEMM(33, 17, 65, t, t, set, F32, F32),
};
// clang-format on

static void poison(const struct buffer *buffer, int64_t first, int64_t count)
{
    int64_t width = dtype_bytes(buffer->dtype);
    // All bits set is a NaN; an integer of that value is an absent slot, so another one is taken.
    memset((char *)buffer->data + first * width, buffer->dtype == DTYPE_I32 ? 0x7f : 0xff, (size_t)(count * width));
}

static void fill_buffer(const struct buffer *buffer, const struct operand *operand, uint64_t key)
{
    for (int64_t i = 0; i < buffer->elements && (operand->access & ACCESS_READ); i++) {
        double normal = (double)random_normal(key, (uint64_t)i);
        set(buffer, i,
            operand->fill == INDICES    ? random_below(key, 0, (uint64_t)i, operand->bound)
            : operand->fill == POSITIVE ? 0.5 + fabs(normal)
                                        : normal);
    }
}

static struct op complete_op(const struct device_case *test)
{
    struct op op = test->op;
    op.tag.role  = test->name;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        op.operand[slot] = test->operands[slot].access != 0 ? slot : -1;
        op.access[slot]  = (uint8_t)test->operands[slot].access;
        if (op.operand[slot] >= 0) {
            op.operand_count = (uint8_t)(slot + 1);
        }
    }
    return op;
}

static void make_operands(const struct device_case *test, const struct op *op, uint64_t seed,
                          struct buffer buffers[OP_OPERANDS])
{
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        buffers[slot] = (struct buffer){.data = NULL};
        if (op->operand[slot] >= 0) {
            int64_t elements = op_operand_elements(op, slot);
            buffers[slot]    = (struct buffer){
                   .data     = memory_allocate((size_t)((elements + GUARDS) * dtype_bytes(test->operands[slot].dtype))),
                   .elements = elements,
                   .dtype    = test->operands[slot].dtype};
            poison(&buffers[slot], 0, elements + GUARDS);
            fill_buffer(&buffers[slot], &test->operands[slot], random_key(seed, (uint64_t)slot));
        }
    }
}

static int64_t guarded_bytes(const struct buffer *buffer)
{
    return (buffer->elements + GUARDS) * dtype_bytes(buffer->dtype);
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
    status prepared = device->ops->prepare(device, op, buffers);
    if (failed(&prepared)) {
        printf("FAIL %s: %s\n", op->tag.role, prepared.text);
        exit(1);
    }
    backend_reserve_scratch(device, device->ops->scratch_bytes(device, op));
    device->ops->run[op->kind](device, op, buffers);
    device->ops->streams->synchronize(device, op->lane);
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        if (operands[slot].data != NULL) {
            device->ops->download(device, operands[slot].data, buffers[slot].data, guarded_bytes(&operands[slot]));
            backend_release(device, buffers[slot].data, guarded_bytes(&operands[slot]));
        }
    }
}

// The error, or infinity: an element that is poisoned on one side only, or a guard that was written.
static double compare(const struct buffer *device, const struct buffer *host)
{
    double largest = 1e-30, difference = 0;
    for (int64_t i = 0; i < host->elements; i++) {
        double expected = get(host, i), found = get(device, i);
        if (isnan(expected) != isnan(found)) {
            return INFINITY;
        }
        if (!isnan(expected)) {
            largest    = fmax(largest, fabs(expected));
            difference = fmax(difference, fabs(found - expected));
        }
    }
    struct buffer guards = {.data = memory_allocate(GUARDS * 4), .elements = GUARDS, .dtype = host->dtype};
    poison(&guards, 0, GUARDS);
    int64_t width  = dtype_bytes(host->dtype);
    bool is_intact = memcmp(guards.data, (char *)device->data + host->elements * width, (size_t)(GUARDS * width)) == 0;
    free(guards.data);
    return is_intact ? difference / largest : INFINITY;
}

static bool run_case(const struct device_case *test, struct backend *host, struct backend *device, uint64_t seed)
{
    struct op     op = complete_op(test);
    struct buffer expected[OP_OPERANDS], found[OP_OPERANDS];
    bool          passes = true;
    if (device->ops->run[op.kind] == NULL) {
        printf("none %s: the device has no %s\n", test->name, op_name((enum op_kind)op.kind));
        return true;
    }
    make_operands(test, &op, seed, expected);
    make_operands(test, &op, seed, found);
    backend_reserve_scratch(host, host->ops->scratch_bytes(host, &op));
    host->ops->run[op.kind](host, &op, expected);
    run_on_device(device, &op, found);
    for (int slot = 0; slot < op.operand_count; slot++) {
        if (op.operand[slot] >= 0) {
            double error = compare(&found[slot], &expected[slot]), bound = tolerance_of(expected[slot].dtype);
            bool   is_close = error <= bound;
            if (!is_close || (op.access[slot] & ACCESS_WRITE)) {
                printf("%s %s: operand %d differs by %.2g, at most %.2g\n", is_close ? "ok  " : "FAIL", test->name,
                       slot, error, bound);
            }
            passes = passes && is_close;
        }
    }
    free_buffers(expected);
    free_buffers(found);
    return passes;
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
    int count = (int)(sizeof(cases) / sizeof(cases[0])), failures = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < count; i++) {
        failures += !run_case(&cases[i], &host, &device, seed + (uint64_t)i);
    }
    printf("%d cases, %d failed\n", count, failures);
    backend_close(&device);
    backend_close(&host);
    return failures > 0;
}
