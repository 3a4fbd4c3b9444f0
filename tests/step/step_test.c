// SPDX-License-Identifier: MIT
// Tests steps of handmade plans: dependencies between streams, memory, refused plans, and the record of executed ops.
#include "step/internal.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "hand.h"
#include "meshes.h"
#include "success.h"

static struct hand      *hand;
static struct local_hub *hub;
static struct bench      bench;

static void open_hand(void)
{
    hand = hand_new(1, 0);
    hub  = local_hub_open(1);
}

static void close_hand(void)
{
    if (bench.step != NULL) {
        bench_close(&bench);
    }
    local_hub_close(hub);
    free(hand);
}

TestSuite(step, .init = open_hand, .fini = close_hand, .timeout = 60);

static void slow_double(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    (void)group, (void)op, (void)format;
    sleep_ms(20);
    *(float *)out = *(const float *)in * 2.0f;
}

static void fast_increment(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    (void)group, (void)op, (void)format;
    *(float *)out = *(const float *)in + 1.0f;
}

// Opens a step of three ops: set a value, double it on another stream, and add one on the first.
static void open_three_ops(void)
{
    int32_t set           = hand_append(hand, OP_GEMM, STREAM_COMPUTE, OPERANDS(-1, -1, 0), -1);
    int32_t communication = hand_append(hand, OP_ALL_GATHER, STREAM_TENSOR, OPERANDS(0, 1, -1), set);
    hand_append(hand, OP_CAST, STREAM_COMPUTE, OPERANDS(1, 2, -1), communication);
    bench_open(&bench, hand, hub, slow_double);
}

Test(step, leaves_the_time_of_each_op_while_it_is_traced)
{
    struct op_time times[3] = {{.begin = -1}}, traced[3];
    open_three_ops();

    step_trace(bench.step, times);
    step_run(bench.step);
    step_trace(bench.step, NULL);

    memcpy(traced, times, sizeof(times));
    step_run(bench.step);
    cr_expect_arr_eq(times, traced, sizeof(times));    // unchanged, since tracing is off again
    cr_expect(times[0].begin >= 0 && times[0].begin < 1);
    cr_expect_geq(times[0].end, times[0].begin + 0.020);
    cr_expect_geq(times[1].begin, times[0].end);    // waits for op 0
    cr_expect_geq(times[1].end, times[1].begin + 0.020);
    cr_expect_geq(times[2].begin, times[1].end);
    cr_expect_geq(times[2].end, times[2].begin);
}

// A delay fault and tracing both wrap an op. The traced time must include the delay, whichever of the two was set
// first.
Test(step, times_the_delay_of_a_fault_as_part_of_its_op)
{
    const struct step_fault delay    = {.kind = FAULT_DELAY, .op = 0, .tensor = -1, .amount = 0.05};
    struct op_time          times[3] = {{.begin = -1}};
    open_three_ops();
    step_set_fault(bench.step, &delay);
    step_trace(bench.step, times);
    step_run(bench.step);
    cr_expect_geq(times[0].end, times[0].begin + 0.070);
}

static int synchronized;

static void count_synchronize(struct backend *backend, int stream)
{
    (void)backend, (void)stream;
    synchronized++;
}

// If one thread issues all ops, waiting for a receive could keep it from issuing the send that the other rank needs.
Test(step, waits_for_the_faulty_op_only_to_change_its_output)
{
    float                        value    = 1;
    const struct op              op       = {.operand_count = 1, .access = {ACCESS_WRITE}};
    const struct backend_streams device   = {.synchronize = count_synchronize};
    const struct queued_op       queued   = {.op = &op, .buffers = {{.data = &value, .elements = 1}}};
    struct backend               backend  = {.ops = &hand_backend};
    struct streams               streams  = {.backend = &backend, .device_streams = &device};
    struct step_fault            fault    = {.kind = FAULT_DELAY, .op = 0, .tensor = -1};
    struct injection             injected = {.fault = &fault, .faulty = &queued};
    fault_after(&streams, &queued, &injected);
    cr_expect_eq(synchronized, 0);
    fault.kind = FAULT_NAN;
    fault_after(&streams, &queued, &injected);
    cr_expect_eq(synchronized, 1);
    cr_expect(isnan(value));
}

Test(step, injects_no_nan_into_integers)
{
    static const char *const at[]   = {"tensor value, layer 0, microbatch 0", "gemm"};
    struct fault_config      config = {.kind = FAULT_NAN};
    struct step_fault        fault;
    hand_append(hand, OP_GEMM, STREAM_COMPUTE, OPERANDS(-1, -1, 0), -1);
    hand->plan.mesh        = MESH(.dp = 1);
    hand->ops[0].access[2] = ACCESS_WRITE;
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        snprintf(config.at, sizeof(config.at), "%s", at[i]);
        hand->tensors[0].format = FORMAT_F32;
        EXPECT_SUCCESS(step_find_fault(&fault, &hand->plan, &config));
        hand->tensors[0].format = FORMAT_I32;
        EXPECT_ERROR_WITH(step_find_fault(&fault, &hand->plan, &config), EXIT_CONFIG,
                          "FP4 and integers have no NaN: choose another element");
    }
}

Test(step, injects_nan_into_the_output_that_has_the_element)
{
    struct fault_config config = {.kind = FAULT_NAN, .at = "gemm"};
    struct step_fault   fault;
    hand_append(hand, OP_GEMM, STREAM_COMPUTE, OPERANDS(-1, 0, 1), -1);
    hand->plan.mesh         = MESH(.dp = 1);
    hand->ops[0].access[1]  = ACCESS_WRITE;
    hand->ops[0].access[2]  = ACCESS_WRITE;
    hand->tensors[0].format = FORMAT_I32;
    for (int output = 0; output < 2; output++) {
        config.element = output == 0 ? hand->tensors[0].elements - 1 : hand->tensors[0].elements;
        status found   = step_find_fault(&fault, &hand->plan, &config);
        cr_expect_eq(failed(&found), output == 0, "%s", found.text);
    }
}

Test(step, executes_each_op_once_and_keeps_waits_in_both_directions_between_streams)
{
    struct step_departure departure;
    open_three_ops();
    for (int run = 0; run < 2; run++) {
        step_run(bench.step);
        cr_expect(step_followed_plan(bench.step, &departure));
        cr_expect_eq(bench_value(&bench, 2), 11.0f);
    }
}

Test(step, has_not_followed_a_plan_of_which_it_left_out_an_op)
{
    const struct step_fault skip = {.kind = FAULT_SKIP, .op = 2, .tensor = -1};
    struct step_departure   departure;
    open_three_ops();
    step_set_fault(bench.step, &skip);
    step_run(bench.step);
    cr_assert_not(step_followed_plan(bench.step, &departure));
    cr_expect_eq(departure.stream, STREAM_COMPUTE);
    cr_expect_eq(departure.executed, 1);
    cr_expect_eq(departure.planned, 2);
}

Test(step, has_not_followed_a_plan_in_another_order)
{
    struct step_departure departure;
    open_three_ops();
    step_run(bench.step);
    struct queue     *queue = &bench.step->streams.queues[STREAM_COMPUTE];
    struct queued_op *first = queue->ops[0];
    queue->ops[0]           = queue->ops[1];
    queue->ops[1]           = first;
    cr_expect_not(step_followed_plan(bench.step, &departure));
}

static char calls[64];

static void call(const void *state, const struct op *op)
{
    snprintf(calls + strlen(calls), sizeof(calls) - strlen(calls), "%s%d ", (const char *)state, op->kind == OP_GEMM);
}

static void end(const void *state, const struct op *op)
{
    (void)state, (void)op;
    strcat(calls, "end ");
}

// A fault that skips an op still lies between its start and end callbacks. After all observers are removed, no callback
// is called.
Test(step, calls_observers_around_each_op_until_they_are_removed)
{
    const struct step_fault skip  = {.kind = FAULT_SKIP, .op = 0, .tensor = -1};
    const struct step_watch watch = {call, end, "op"};
    hand_append(hand, OP_GEMM, STREAM_COMPUTE, OPERANDS(-1, -1, 0), -1);
    hand_append(hand, OP_CAST, STREAM_COMPUTE, OPERANDS(0, 2, -1), 0);
    bench_open(&bench, hand, hub, NULL);

    step_set_fault(bench.step, &skip);
    step_set_watch(bench.step, &watch);
    step_run(bench.step);
    cr_expect_str_eq(calls, "op1 end op0 end ");
    cr_expect_eq(bench_value(&bench, 2), 1.0f);

    step_set_watch(bench.step, NULL);
    step_set_fault(bench.step, NULL);
    step_run(bench.step);
    cr_expect_str_eq(calls, "op1 end op0 end ");
    cr_expect_eq(bench_value(&bench, 2), 6.0f);
}

Test(step, passes_a_value_between_streams_thousands_of_times)
{
    int32_t last = -1;
    for (int i = 0; i < OPS_MAX / 2; i++) {
        last = hand_append(hand, OP_CAST, STREAM_COMPUTE, OPERANDS(1, 0, -1), last);
        last = hand_append(hand, OP_ALL_GATHER, i % 3 == 0 ? STREAM_TENSOR : STREAM_GRADIENT_REDUCE, OPERANDS(0, 1, -1),
                           last);
    }
    bench_open(&bench, hand, hub, fast_increment);
    for (int step = 1; step <= 10; step++) {
        step_run(bench.step);
        cr_expect_eq(bench_value(&bench, 1), (float)(step * OPS_MAX));
    }
}

// Two ranks list two independent collectives on two streams in opposite orders. One thread that ran the list of a rank
// in order would deadlock.
struct crossing {
    struct local_hub *hub;
    int64_t           rank;
    float             first, second;
};

static void *run_crossing(void *argument)
{
    struct crossing *self       = argument;
    struct hand     *own        = hand_new(2, self->rank);
    int32_t          make       = hand_append(own, OP_GEMM, STREAM_COMPUTE, OPERANDS(-1, -1, 0), -1);
    int32_t          more       = hand_append(own, OP_CAST, STREAM_COMPUTE, OPERANDS(0, 2, -1), -1);
    own->ops[make].shape.gemm.m = 10 * (self->rank + 1);
    if (self->rank == 0) {
        int32_t first  = hand_append(own, OP_ALL_REDUCE, STREAM_TENSOR, OPERANDS(-1, 0, -1), more);
        int32_t second = hand_append(own, OP_ALL_REDUCE, STREAM_GRADIENT_REDUCE, OPERANDS(-1, 2, -1), more);
        hand_append(own, OP_CAST, STREAM_COMPUTE, OPERANDS(0, 1, -1), first);
        hand_append(own, OP_CAST, STREAM_COMPUTE, OPERANDS(2, 3, -1), second);
    } else {
        int32_t second = hand_append(own, OP_ALL_REDUCE, STREAM_GRADIENT_REDUCE, OPERANDS(-1, 2, -1), more);
        hand_append(own, OP_CAST, STREAM_COMPUTE, OPERANDS(2, 3, -1), second);
        int32_t first = hand_append(own, OP_ALL_REDUCE, STREAM_TENSOR, OPERANDS(-1, 0, -1), more);
        hand_append(own, OP_CAST, STREAM_COMPUTE, OPERANDS(0, 1, -1), first);
    }
    struct bench bench_of_rank;
    bench_open(&bench_of_rank, own, self->hub, NULL);
    for (int step = 0; step < 5; step++) {
        step_run(bench_of_rank.step);
    }
    self->first  = bench_value(&bench_of_rank, 1);
    self->second = bench_value(&bench_of_rank, 3);
    bench_close(&bench_of_rank);
    free(own);
    return NULL;
}

Test(step, does_not_deadlock_when_ranks_list_streams_in_different_orders)
{
    struct local_hub *both     = local_hub_open(2);
    struct crossing   ranks[2] = {{.hub = both, .rank = 0}, {.hub = both, .rank = 1}};
    pthread_t         threads[2];
    for (int rank = 0; rank < 2; rank++) {
        pthread_create(&threads[rank], NULL, run_crossing, &ranks[rank]);
    }
    for (int rank = 0; rank < 2; rank++) {
        pthread_join(threads[rank], NULL);
    }
    for (int rank = 0; rank < 2; rank++) {
        cr_expect_eq(ranks[rank].first, 31.0f);     // 10 + 20, plus 1
        cr_expect_eq(ranks[rank].second, 33.0f);    // 11 + 21, plus 1
    }
    local_hub_close(both);
}

Test(step, allocates_what_the_plan_says_and_nothing_in_steps)
{
    hand_append(hand, OP_GEMM, STREAM_COMPUTE, OPERANDS(-1, -1, 0), -1);
    bench_open(&bench, hand, hub, NULL);

    int64_t allocations = bench.backend.allocations;
    cr_expect_eq(allocations, 3);    // two storages and the scratch memory
    cr_expect_eq(hand_reserved_bytes, 4096);
    cr_expect_eq(step_storage(bench.step, STORAGE_ACTIVATION).elements, 512);
    cr_expect_eq(step_storage(bench.step, STORAGE_RESULT).elements, 512);
    cr_expect_eq(step_storage(bench.step, STORAGE_WEIGHT).elements, 0);
    step_run(bench.step);
    step_run(bench.step);
    cr_expect_eq(bench.backend.allocations, allocations);

    bench_close(&bench);
    cr_expect_eq(bench.backend.allocated_bytes, 4096);    // the backend keeps its scratch memory
}

Test(step, places_tensors_at_their_offsets)
{
    bench_open(&bench, hand, hub, NULL);
    for (int32_t tensor = 0; tensor < TENSORS; tensor++) {
        step_write(bench.step, tensor, &(float){(float)tensor + 0.5f});
    }
    for (int32_t tensor = 0; tensor < TENSORS; tensor++) {
        cr_expect_eq(bench_value(&bench, tensor), (float)tensor + 0.5f);
    }
    struct buffer first = step_buffer(bench.step, 0), third = step_buffer(bench.step, 2);
    cr_expect_eq((char *)third.data - (char *)first.data, 256);
    cr_expect_eq(third.elements, 1);
    cr_expect_eq(third.format, FORMAT_F32);
}

// Opens a step that must fail, and returns the error.
static status refused(void)
{
    struct backend backend = {.ops = &hand_backend};
    struct comm    comm;
    struct step   *step;
    comm_open_local(&comm, hub, 0);
    status result = step_open(&step, &hand->plan, &backend, &comm);
    cr_expect_eq(backend.allocations, 0);
    comm_close(&comm);
    return result;
}

Test(step, names_the_op_that_the_backend_lacks)
{
    hand_append(hand, OP_CLIP, STREAM_COMPUTE, OPERANDS(0, 1, 2), -1);
    EXPECT_ERROR(refused(), EXIT_CONFIG, "[run] backend = test: does not execute op 0 clip \"step\", forward");
}

Test(step, says_what_needs_the_memory_that_is_not_there)
{
    hand_append(hand, OP_GEMM, STREAM_COMPUTE, OPERANDS(-1, -1, 0), -1);
    hand->plan.storage_bytes[STORAGE_ACTIVATION] = (int64_t)3 << 30;
    hand_available_bytes                         = (int64_t)2 << 30;
    status result                                = refused();
    cr_expect_eq(result.exit_code, EXIT_MEMORY);
    cr_expect_not_null(strstr(result.text, "3.00 GiB needed by 1 rank in this memory, 2.00 GiB available"));
    cr_expect_not_null(strstr(result.text, "activations 3.00 GiB"));
    cr_expect_not_null(strstr(result.text, "results 512 B"));
}
