// SPDX-License-Identifier: MIT
// Compares every op on the host and on the GPU; fused ops are compared with their parts on the GPU. Inputs differ in
// every run. Outputs are filled with NaN and followed by guard values, so unwritten and overrun elements are found. The
// GPU runs each case several times and must give the same bits. It then runs the case with a launch for a single SM, so
// that grid-stride loops iterate, and attention with cuDNN. A case that crashes or is refused does not end the others.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buffers.h"
#include "device.h"
#include "gswbench/arena.h"
#include "isolated.h"
#include "op_compare.h"
#include "op_operands.h"
#include "op_variants.h"

enum { RUNS = 3, CASE_SECONDS = 120, PLACE_ALIGNMENT = 256 };    // runs of a case on the GPU, and its time limit

static int      runs = RUNS, only_way = -1;    // only_way: the only setup in `ways` to test, or -1 for all
static uint64_t seed;

// Setups of the GPU backend under which the cases run.
struct way {
    const char          *name;    // is empty for the default setup
    struct backend_setup setup;
};
static const struct way ways[] = {
    {"", {.threads = 2, .is_deterministic = true, .attention = ATTENTION_OWN, .cache = ""}},
    {" (one multiprocessor)",
     {.threads = 2, .is_deterministic = true, .attention = ATTENTION_OWN, .processors = 1, .cache = ""}},
    {" (cuDNN)", {.threads = 2, .is_deterministic = true, .attention = ATTENTION_CUDNN, .cache = ""}},
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]), WAY_PLAIN = 0, WAY_CUDNN = WAYS - 1 };

static struct backend host, device;
static int            open_way = -1;    // index into `ways` of the setup with which `device` is open

// Returns the tolerance of a row, relative to its norm. fp32 results differ by the order of summation, and bf16 results
// by one rounding more. Tensor cores accumulate FP8 products with about 14 bits before they add in fp32, and attention
// reads its probabilities in bf16.
static double tolerance_of(const struct op *op, const struct buffer operands[OP_OPERANDS], int slot)
{
    if (op->kind == OP_GEMM && slot == GEMM_C && format_is_low_precision(operands[GEMM_A].format)) {
        return 8e-3;
    }
    if (op->kind == OP_ATTENTION_FORWARD && slot == ATTENTION_OUT) {
        return 8e-3;
    }
    // Three values are rounded: probabilities, their gradients and the result.
    if (op->kind == OP_ATTENTION_BACKWARD) {
        return 1.2e-2;
    }
    // These gradients are sums over positions and states whose terms cancel. The host sums by chunk, the GPU by
    // position: in 60 draws of the inputs they differed by up to 3e-4.
    if (op->kind == OP_SCAN_BACKWARD && slot >= SCAN_GRADIENT_PACKED && slot <= SCAN_GRADIENT_DECAY &&
        operands[slot].format == FORMAT_F32) {
        return 1e-3;
    }
    if ((op->kind >= OP_QUANTIZE && op->kind <= OP_RESCALE) || op_is_fused(op)) {
        return 0;
    }
    return operands[slot].format == FORMAT_F32 ? 2e-5 : operands[slot].format == FORMAT_BF16 ? 8e-3 : 0;
}

// Compares the operands of an op with the expected ones, and prints the differences.
static bool agrees(const struct op *op, const struct buffer found[OP_OPERANDS],
                   const struct buffer expected[OP_OPERANDS])
{
    bool passes = true;
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            double error  = compare_rows(&found[slot], &expected[slot], compare_row(op, slot, expected[slot].elements)),
                   bound  = tolerance_of(op, expected, slot);
            bool is_close = error <= bound;
            if (!is_close || (op->access[slot] & ACCESS_WRITE)) {
                printf("%s %s: operand %d (%s) differs by %.2g, at most %.2g\n", is_close ? "ok  " : "FAIL",
                       op->tag.role, slot, format_name(expected[slot].format), error, bound);
            }
            passes = passes && is_close;
        }
    }
    return passes;
}

// Returns whether the op gives the same bits again from the same inputs. `order` is another order of threads, which
// only an emulated GPU uses.
static bool repeats(const struct op *op, const struct buffer found[OP_OPERANDS], struct buffer again[OP_OPERANDS],
                    unsigned order)
{
    bool passes = true;
    device_order(order);
    run_on_device(&device, op, 0, again);
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0 &&
            memcmp(again[slot].data, found[slot].data, (size_t)guarded_bytes(&found[slot])) != 0) {
            printf("FAIL %s: operand %d has other bits in run %u\n", op->tag.role, slot, order);
            passes = false;
        }
    }
    return passes;
}

// Returns whether the GPU refuses the op. Known limits count as skipped, such as FP8 on an old GPU, or a shape that
// cuDNN does not support. Other refusals count as failed.
static bool is_refused(const struct op *op, const struct buffer operands[OP_OPERANDS], enum outcome *outcome)
{
    struct buffer          unplaced[OP_OPERANDS];
    const struct prepared *prepared;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        unplaced[slot]      = operands[slot];
        unplaced[slot].data = operands[slot].data != NULL ? (void *)(uintptr_t)PLACE_ALIGNMENT : NULL;
    }
    status prepares = backend_prepare(&device, op, unplaced, &prepared);
    *outcome        = open_way == WAY_CUDNN || prepares.exit_code == EXIT_CONFIG ? OUTCOME_SKIPPED : OUTCOME_FAILED;
    if (failed(&prepares)) {
        printf("%s %s: refused: %s\n", *outcome == OUTCOME_SKIPPED ? "skip" : "FAIL", op->tag.role, prepares.text);
    }
    return failed(&prepares);
}

// cuDNN sums query gradients in a random order, so its backward pass runs only once.
static int runs_of(const struct op *op)
{
    return open_way == WAY_PLAIN || (open_way == WAY_CUDNN && op->kind == OP_ATTENTION_FORWARD) ? runs : 1;
}

// Runs a case and returns whether all checks pass. `beside` misaligns the operands by this number of elements.
static bool passes(const struct op_case *test, const struct op *op, int beside, struct buffer expected[OP_OPERANDS])
{
    struct buffer found[OP_OPERANDS];
    make_operands(&host, test, op, seed, found);
    device_order(0);
    if (op_is_fused(op)) {
        run_apart_on_device(&device, op, expected);
    } else {
        run_on_host(&host, op, expected);
    }
    run_on_device(&device, op, beside, found);
    bool is_right = agrees(op, found, expected);
    for (unsigned order = 1; order < (unsigned)runs_of(op); order++) {
        struct buffer again[OP_OPERANDS];
        make_operands(&host, test, op, seed, again);
        is_right = repeats(op, found, again, order) && is_right;
        free_buffers(again);
    }
    free_buffers(found);
    return is_right;
}

// A case that the command line selects, with the setup under which it runs.
struct selected {
    int way;
    int test;       // index into op_cases; -1: a check that the table has every op of the backend
    int variant;    // 0: the case is not varied
};
static struct selected *selected;
static int              selected_count;

static void name_case(int index, char *text, int bytes)
{
    const struct selected *one = &selected[index];
    struct op_variant      varied;
    if (one->variant > 0) {
        vary_case(&varied, &op_cases[one->test], one->variant);
    }
    snprintf(text, (size_t)bytes, "%s%s",
             one->test < 0      ? "the table has every op"
             : one->variant > 0 ? varied.name
                                : op_cases[one->test].name,
             ways[one->way].name);
}

static enum outcome run_table(void)
{
    bool has[OP_COUNT] = {false}, is_complete = true;
    for (int i = 0; i < op_case_count; i++) {
        has[op_cases[i].op.kind] = true;
    }
    for (enum op_kind kind = 0; kind < OP_COUNT; kind++) {
        if (!has[kind] && backend_cuda.run[kind] != NULL) {
            printf("FAIL no case of %s\n", op_name(kind));
            is_complete = false;
        }
    }
    return is_complete ? OUTCOME_PASSED : OUTCOME_FAILED;
}

// Opens the GPU backend with this setup, unless it is open with it.
static void change_way(int way)
{
    if (open_way >= 0 && way != open_way) {
        backend_close(&device);
    }
    if (way != open_way) {
        device_check(backend_open(&device, "cuda", &ways[way].setup));
        open_way = way;
    }
}

static enum outcome run_case(int index)
{
    const struct op_case *test = &op_cases[selected[index].test];
    struct op_variant     varied;
    char                  name[256];
    struct buffer         expected[OP_OPERANDS];
    enum outcome          outcome;
    int                   beside = 0;
    if (selected[index].test < 0) {
        return run_table();
    }
    if (selected[index].variant > 0) {
        vary_case(&varied, test, selected[index].variant);
        test   = &varied.test;
        beside = varied.beside;
    }
    struct op op = complete_op(test);
    name_case(index, name, sizeof(name));
    op.tag.role = name;
    change_way(selected[index].way);
    make_operands(&host, test, &op, seed, expected);
    if (!is_refused(&op, expected, &outcome)) {
        outcome = passes(test, &op, beside, expected) ? OUTCOME_PASSED : OUTCOME_FAILED;
    }
    free_buffers(expected);
    return outcome;
}

static void open_backends(void)
{
    device_require();
    device_check(backend_open(&host, "host", &device_setup));
}

static void close_backends(void)
{
    if (open_way >= 0) {
        backend_close(&device);
    }
    backend_close(&host);
}

// A setup applies to a case if it can change its result. GEMMs are done by cuBLASLt, which ignores the number of SMs of
// gswbench's kernels, and cuDNN has only attention.
static bool has_way(int way, int test)
{
    if (only_way >= 0 && way != only_way) {
        return false;
    }
    uint8_t kind = test < 0 ? OP_COUNT : op_cases[test].op.kind;
    return way == WAY_PLAIN || (way == WAY_CUDNN ? kind == OP_ATTENTION_FORWARD || kind == OP_ATTENTION_BACKWARD
                                                 : test >= 0 && kind != OP_GEMM);
}

// Selects the cases whose name contains one of the words. Without words, selects all cases.
static void select_cases(char **words, int count)
{
    selected = memory_allocate((size_t)(WAYS * (op_case_count + 1)) * sizeof(*selected));
    for (int i = 0; i < WAYS * (op_case_count + 1); i++) {
        char name[256];
        bool is_asked            = count == 0;
        selected[selected_count] = (struct selected){i / (op_case_count + 1), i % (op_case_count + 1) - 1, 0};
        name_case(selected_count, name, sizeof(name));
        for (int word = 0; word < count; word++) {
            is_asked = is_asked || strstr(name, words[word]) != NULL;
        }
        selected_count += is_asked && has_way(selected[selected_count].way, selected[selected_count].test);
    }
}

// Returns the setup with this name, or WAYS if there is none.
static int find_way(const char *name)
{
    static const char *const names[WAYS] = {"plain", "one", "cudnn"};
    int                      way         = 0;
    while (way < WAYS && strcmp(names[way], name) != 0) {
        way++;
    }
    return way;
}

// Replaces the selected cases by their variants, once each.
static void select_variants(void)
{
    int               count = selected_count;
    struct selected  *plain = selected;
    struct op_variant varied;
    selected       = memory_allocate((size_t)(count * VARIANTS) * sizeof(*selected));
    selected_count = 0;
    runs           = 1;
    for (int i = 0; i < count; i++) {
        for (int how = 1; how < VARIANTS && plain[i].way == WAY_PLAIN && plain[i].test >= 0; how++) {
            if (vary_case(&varied, &op_cases[plain[i].test], how)) {
                selected[selected_count++] = (struct selected){WAY_PLAIN, plain[i].test, how};
            }
        }
    }
    free(plain);
}

static int list_cases(void)
{
    for (int i = 0; i < selected_count; i++) {
        char name[256];
        name_case(i, name, sizeof(name));
        puts(name);
    }
    return EXIT_VALID;
}

int main(int argc, char **argv)
{
    int  counts[OUTCOME_COUNT], first = 1;
    bool lists = false, varies = false;
    seed = (uint64_t)time(NULL);
    for (; first < argc && argv[first][0] == '-'; first++) {
        if (strcmp(argv[first], "--list") == 0) {
            lists = true;
        } else if (strcmp(argv[first], "--variants") == 0) {
            varies = true;
        } else if (strcmp(argv[first], "--seed") == 0 && first + 1 < argc) {
            seed = strtoull(argv[++first], NULL, 10);
        } else if (strcmp(argv[first], "--runs") == 0 && first + 1 < argc) {
            runs = atoi(argv[++first]);
        } else if (strcmp(argv[first], "--way") == 0 && first + 1 < argc && find_way(argv[first + 1]) < WAYS) {
            only_way = find_way(argv[++first]);
        } else {
            fprintf(
                stderr,
                "usage: %s [--list] [--variants] [--seed N] [--runs N] [--way plain|one|cudnn] [PART OF A NAME...]\n",
                argv[0]);
            return EXIT_USAGE;
        }
    }
    select_cases(argv + first, argc - first);
    if (varies) {
        select_variants();
    }
    if (lists || selected_count == 0) {
        return lists ? list_cases() : EXIT_USAGE;
    }
    printf("seed %llu\n", (unsigned long long)seed);
    const struct isolated cases = {selected_count, name_case, open_backends, run_case, close_backends, CASE_SECONDS};
    int                   code  = isolated_run(&cases, counts);
    if (code == 0) {
        printf("%d cases, %d failed, %d skipped\n", selected_count, counts[OUTCOME_FAILED], counts[OUTCOME_SKIPPED]);
    }
    return code != 0 ? code : counts[OUTCOME_FAILED] > 0;
}
