// SPDX-License-Identifier: MIT
// The digests that verify results must be equal on the GPU and on the host. On an emulated GPU, this also counts the
// memory that verification of a step moves. It must be as stated, and at most three times the training state.
#include <math.h>
#include <string.h>

#include "device.h"
#include "gswbench/arena.h"
#include "gswbench/random.h"
#include "gswbench/step.h"
#include "gswbench/validate.h"
#include "layouts.h"

// Compares the digest of random data on the GPU and on the host. The data starts `shift` bytes after a multiple of 16.
static bool is_the_hosts(struct backend *backend, enum format format, int64_t elements, int64_t shift)
{
    int64_t       bytes = format_bytes(format, elements);
    char         *data  = memory_allocate((size_t)bytes);
    char         *there = backend_allocate(backend, bytes + 256);
    struct digest host, device, other;
    for (int64_t i = 0; i < bytes; i++) {    // values below 64 keep the exponents of fp32 and bf16 small
        data[i] = (char)(random_below(5, (uint64_t)format, (uint64_t)i, 64));
    }
    struct buffer buffer = {there + shift, elements, format};
    backend->ops->upload(backend, buffer.data, data, bytes);
    backend->ops->digest(backend, &buffer, &device);
    digest_take(&host, format, data, elements);
    data[bytes - 1] ^= 1;
    digest_take(&other, format, data, elements);
    bool is = device.hash == host.hash && other.hash != host.hash &&
              digest_distance(&device, &host) <= 1e-12 * digest_norm(&host);
    backend_release(backend, there, bytes + 256);
    free(data);
    return is;
}

static void compare_digests(struct backend *backend)
{
    static const enum format formats[] = {FORMAT_F32, FORMAT_BF16, FORMAT_E4M3, FORMAT_I32};
    static const int64_t     sizes[]   = {1, 7, 4096, 100003};
    for (int i = 0; i < 4; i++) {
        bool are = true;
        char text[64];
        for (int j = 0; j < 4; j++) {
            are =
                are && is_the_hosts(backend, formats[i], sizes[j], 0) && is_the_hosts(backend, formats[i], sizes[j], 4);
        }
        snprintf(text, sizeof(text), "digests in %s are the host's", format_name(formats[i]));
        report(are, text);
    }
}

#ifdef GSWBENCH_EMULATED
static double count(void)
{
    struct emulator_traffic counted = emulator_count();
    return (double)(counted.read_bytes + counted.written_bytes + counted.copied_bytes);
}

// Verification samples a thirtieth of the elements here, as it does for a model of 8 billion parameters.
static void count_traffic(struct backend *backend)
{
    struct tiny  tiny = tiny_of("hidden 512; head_dim 128; ffn 1024; compute bf16");
    struct comm  comm;
    struct step *step;
    char         text[160];
    tiny_plan(&tiny);
    const struct plan *plan  = &tiny.plan;
    double             state = (double)(plan->storage_bytes[STORAGE_WEIGHT] + plan->storage_bytes[STORAGE_GRADIENT] +
                            plan->storage_bytes[STORAGE_OPTIMIZER]);
    comm_open_alone(&comm);
    device_check(step_prepare(plan, backend));
    device_check(step_open(&step, plan, backend, &comm));
    data_initialise(step, plan, 1);
    data_fill(step, plan, DATA_UNIFORM, 1, 0);

    struct result                 result = {.reasons = NULL};
    const struct validation_setup setup  = {
         .plan = plan, .step = step, .comm = &comm, .result = &result, .sample_bytes = (int64_t)(state / 30)};
    struct validation         *validation = validation_open(&setup);
    struct result_verification expected   = validation_expect(&setup, true, 1);
    count();
    step_rehearse(step);
    double rehearsed = count();
    validation_begin(validation, 0, true);
    double begun = count() - rehearsed;
    step_run(step);
    count();
    bool   is_right = validation_repeat(validation, 0);
    double moved    = begun + count();
    snprintf(text, sizeof(text), "verification moves %.2f times the state, expects %.2f times, at most 3 times",
             moved / state, expected.device_bytes / state);
    report(is_right && moved <= 3 * state && fabs(moved - expected.device_bytes) <= 0.1 * expected.device_bytes, text);
    validation_close(validation);
    result_free(&result);
    step_close(step);
    comm_close(&comm);
    plan_free(&tiny.plan);
}
#endif

int main(void)
{
    struct backend backend;
    device_require();
    device_check(backend_open(&backend, "cuda", &device_setup));
    compare_digests(&backend);
#ifdef GSWBENCH_EMULATED
    count_traffic(&backend);
#endif
    backend_close(&backend);
    return device_failures > 0;
}
