// SPDX-License-Identifier: MIT
// The cuda backend: opens the device, manages its memory, and has the table of functions that enqueue ops on streams.
#include <stdio.h>
#include <stdlib.h>

#include <cuda_profiler_api.h>

#include "gswbench/arena.h"
#include "gemm.h"

// Device memory that stays free. The CUDA runtime and libraries need it for kernels and workspaces that they load at
// first use.
static const int64_t reserve_bytes = INT64_C(768) << 20;

#define ROW(kind, name) [kind] = device_##name,
static op_run *const run[OP_COUNT] = {OP_COMPUTE_KINDS(ROW)};

// clang-format off
static device_scratch *const scratch[OP_COUNT] = {    // NULL: the op needs no scratch
    [OP_EMBEDDING_BACKWARD]  = device_embedding_backward_scratch,
    [OP_NORM_FORWARD]        = device_quantize_scratch,
    [OP_NORM_BACKWARD]       = device_norm_backward_scratch,
    [OP_ROPE_BACKWARD]       = device_rope_backward_scratch,
    [OP_CONVOLUTION_BACKWARD] = device_convolution_backward_scratch,
    [OP_SCAN_BACKWARD]       = device_scan_backward_scratch,
    [OP_GATED_NORM_BACKWARD] = device_gated_norm_backward_scratch,
    [OP_ACTIVATION_FORWARD]  = device_quantize_scratch,
    [OP_ACTIVATION_BACKWARD] = device_quantize_scratch,
    [OP_ROUTE_FORWARD]       = device_route_forward_scratch,
    [OP_SINK_BACKWARD]       = device_sink_backward_scratch,
    [OP_COLUMN_SUM]          = device_column_sum_scratch,
    [OP_QUANTIZE]            = device_quantize_scratch,
    [OP_SQUARE_SUM]          = device_square_sum_scratch,
};
// clang-format on

// Explains why no device is usable. The runtime returns the same error for a missing and for an outdated driver, so the
// driver version is checked.
static status explain_no_device(cudaError_t error)
{
    int driver = 0;
    if (error == cudaErrorSystemNotReady) {
        return fail("%s: GPUs with NVSwitch need a running nvidia-fabricmanager", cudaGetErrorString(error));
    }
    if (error != cudaErrorInsufficientDriver) {
        return fail("%s (see nvidia-smi and CUDA_VISIBLE_DEVICES)", cudaGetErrorString(error));
    }
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    if (driver == 0) {
        return fail("there is no NVIDIA driver");
    }
    const int needed[] = {CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10};
    return fail(
        "the NVIDIA driver is for CUDA %d.%d, this build needs %d.%d: install a newer driver, for a data center "
        "GPU the package cuda-compat-%d-%d, or build with an older toolkit",
        driver / 1000, driver % 1000 / 10, needed[0], needed[1], needed[0], needed[1]);
}

// Checks that there is a device. First sets CUDA_DEVICE_MAX_CONNECTIONS, which the driver reads when it is initialised,
// so that each stream has its own hardware queue. If streams shared a queue, a collective that waits for other ranks
// could block a stream that these ranks wait for.
static status cuda_detect(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    int         count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count == 0) {
        error = cudaErrorNoDevice;
    }
    return error == cudaSuccess ? OK : explain_no_device(error);
}

// Fails if there are fewer hardware queues than streams. Streams that share a queue wait for each other even without an
// event.
static status check_queues(void)
{
    const char *queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    return queues != NULL && atoi(queues) >= STREAM_COUNT
               ? OK
               : fail_as(EXIT_LAUNCH,
                         "CUDA_DEVICE_MAX_CONNECTIONS = %.20s: collectives of different streams would share a hardware "
                         "queue and can deadlock; unset it, or use %d or more",
                         queues != NULL ? queues : "", STREAM_COUNT);
}

int cuda_attribute(int device, enum cudaDeviceAttr attribute)
{
    int value;
    CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
    return value;
}

// Returns the device of a local rank; devices are assigned round-robin. If the launcher makes only one device visible
// to each rank, this is device 0.
static int find_device(int local_rank)
{
    int count;
    CUDA_CHECK(cudaGetDeviceCount(&count));
    return local_rank % count;
}

static void cuda_locate(const struct backend_setup *setup, char *text, size_t bytes)
{
    CUDA_CHECK(cudaDeviceGetPCIBusId(text, (int)bytes, find_device(setup->local_rank)));
}

static status choose_device(int local_rank, int *device)
{
    *device   = find_device(local_rank);
    int major = cuda_attribute(*device, cudaDevAttrComputeCapabilityMajor);
    if (major < 8) {
        return fail_as(
            EXIT_LAUNCH,
            "[run] backend = cuda: device %d has compute capability %d.%d, but 8.0 or newer is needed (A100, "
            "H100, H200 and their successors)",
            *device, major, cuda_attribute(*device, cudaDevAttrComputeCapabilityMinor));
    }
    cudaError_t error = cudaSetDevice(*device);
    if (error != cudaSuccess) {
        return fail_as(EXIT_LAUNCH, "[run] backend = cuda: device %d: %s (see nvidia-smi for who uses it, and how)",
                       *device, cudaGetErrorString(error));
    }
    return OK;
}

static void open_streams(struct cuda *cuda)
{
    int lowest, highest;
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        cudaStream_t cuda_stream;
        CUDA_CHECK(cudaStreamCreateWithPriority(&cuda_stream, cudaStreamNonBlocking,
                                                stream == STREAM_COMPUTE ? lowest : highest));
        cuda->device.streams[stream] = cuda_stream;
    }
}

static status cuda_open(struct backend *backend, const struct backend_setup *setup)
{
    int         device = 0;
    struct blas blas;
    TRY(check_queues());
    TRY(choose_device(setup->local_rank, &device));
    TRY(blas_open(&blas));
    struct cuda *cuda = memory_allocate(sizeof(*cuda));
    backend->state    = cuda;
    cuda->number      = device;
    cuda->capability  = 10 * cuda_attribute(device, cudaDevAttrComputeCapabilityMajor) +
                       cuda_attribute(device, cudaDevAttrComputeCapabilityMinor);
    cuda->device.processors =
        setup->processors > 0 ? setup->processors : cuda_attribute(device, cudaDevAttrMultiProcessorCount);
    cuda->device.shared_bytes = cuda_attribute(device, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    cuda->device.check        = cuda_check;
    open_streams(cuda);
    cuda_attention_open(cuda, setup);
    gemms_open(cuda, setup, &blas);
    return OK;
}

static void cuda_close(struct backend *backend)
{
    struct cuda *cuda = backend->state;
    gemms_close(cuda);
    cuda_attention_close(cuda);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {    // after cuDNN, whose handle refers to one
        CUDA_CHECK(cudaStreamDestroy(cuda->device.streams[stream]));
    }
    CUDA_CHECK(cudaFree(cuda->device.scratch));
    CUDA_CHECK(cudaFree(cuda->digests));
    free(cuda);
}

static void cuda_clear(struct backend *backend, void *data, int64_t bytes)
{
    const struct cuda *cuda = backend->state;
    CUDA_CHECK(cudaMemsetAsync(data, 0, (size_t)bytes, cuda->device.streams[STREAM_COMPUTE]));
    CUDA_CHECK(cudaStreamSynchronize(cuda->device.streams[STREAM_COMPUTE]));
}

static void *cuda_allocate(struct backend *backend, int64_t bytes)
{
    void *data;
    CUDA_CHECK(cudaMalloc(&data, (size_t)bytes));
    cuda_clear(backend, data, bytes);
    return data;
}

static void cuda_release(struct backend *backend, void *data)
{
    (void)backend;
    CUDA_CHECK(cudaFree(data));
}

static int cuda_processors(struct backend *backend)
{
    const struct cuda *cuda = backend->state;
    return cuda_attribute(cuda->number, cudaDevAttrMultiProcessorCount);
}

static int64_t cuda_available_bytes(struct backend *backend)
{
    (void)backend;
    size_t available, total;
    CUDA_CHECK(cudaMemGetInfo(&available, &total));
    return number_max((int64_t)available - reserve_bytes, 0);
}

// Copies and waits. The driver stages pageable host memory. A plain cudaMemcpy may return before the copy is complete,
// so the stream is synchronized.
static void copy_and_wait(struct backend *backend, void *to, const void *from, int64_t bytes)
{
    const struct cuda *cuda = backend->state;
    CUDA_CHECK(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, cuda->device.streams[STREAM_COMPUTE]));
    CUDA_CHECK(cudaStreamSynchronize(cuda->device.streams[STREAM_COMPUTE]));
}

static cuda_prepare *const prepare[OP_COUNT] = {
    [OP_GEMM]               = cuda_gemm_prepare,
    [OP_ATTENTION_FORWARD]  = cuda_attention_prepare,
    [OP_ATTENTION_BACKWARD] = cuda_attention_prepare,
};

static status prepare_op(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                         const struct prepared **prepared)
{
    return prepare[op->kind] != NULL ? prepare[op->kind](backend, op, buffers, prepared) : OK;
}

static int64_t cuda_scratch_bytes(struct backend *backend, const struct op *op)
{
    struct kernel_target target = device_target(backend, op);
    if (op->kind == OP_ATTENTION_FORWARD || op->kind == OP_ATTENTION_BACKWARD) {
        return cuda_attention_scratch(backend->state, op);
    }
    return scratch[op->kind] != NULL ? scratch[op->kind](op, &target) : 0;
}

static void cuda_reserve_scratch(struct backend *backend, int64_t bytes)
{
    struct cuda *cuda = backend->state;
    CUDA_CHECK(cudaFree(cuda->device.scratch));
    CUDA_CHECK(cudaMalloc(&cuda->device.scratch, (size_t)bytes));
}

static void cuda_profile(struct backend *backend, bool is_on)
{
    (void)backend;
    if (is_on) {
        CUDA_CHECK(cudaProfilerStart());
    } else {
        CUDA_CHECK(cudaProfilerStop());
    }
}

static struct cudaDeviceProp properties_of(const struct backend *backend)
{
    const struct cuda    *cuda = backend->state;
    struct cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, cuda->number));
    return properties;
}

// Writes the device's UUID in the format of nvidia-smi. The ordinal would not do, because ranks may number devices
// differently.
static void cuda_device_id(struct backend *backend, char *text, size_t bytes)
{
    const struct cudaDeviceProp properties = properties_of(backend);
    size_t                      used       = (size_t)snprintf(text, bytes, "GPU");
    for (size_t i = 0; i < sizeof(properties.uuid.bytes) && used < bytes; i++) {
        bool begins_group = i == 0 || (i >= 4 && i <= 10 && i % 2 == 0);    // groups of 4, 2, 2, 2 and 6 bytes
        used += (size_t)snprintf(text + used, bytes - used, "%s%02x", begins_group ? "-" : "",
                                 (unsigned char)properties.uuid.bytes[i]);
    }
}

static void cuda_device_name(struct backend *backend, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", properties_of(backend).name);
}

// Lists the driver and cuBLASLt. The CUDA runtime is linked statically and needs no row; backend_attention reports
// cuDNN.
static int cuda_libraries(struct backend *backend, struct backend_library list[BACKEND_LIBRARIES])
{
    const struct cuda *cuda = backend->state;
    int                driver;
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    snprintf(list[0].name, sizeof(list[0].name), "a driver for CUDA");
    snprintf(list[0].version, sizeof(list[0].version), "%d.%d", driver / 1000, driver % 1000 / 10);
    snprintf(list[1].name, sizeof(list[1].name), "the library");
    blas_version(&cuda->gemms->blas, list[1].version);
    return 2;
}

static void cuda_describe(struct backend *backend, char *text, size_t bytes)
{
    const struct cuda          *cuda       = backend->state;
    const struct cudaDeviceProp properties = properties_of(backend);
    int                         driver;
    char                        memory[32], blas[BLAS_VERSION_BYTES], taken[32] = "";
    blas_version(&cuda->gemms->blas, blas);
    if (cuda->gemms->taken > 0) {
        snprintf(taken, sizeof(taken), ", %d from other ranks", cuda->gemms->taken);
    }
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    snprintf(text, bytes,
             "%s, %d multiprocessors up to %d MHz, %s, CUDA %d.%d on a driver for %d.%d, %s: %d GEMMs timed, %d "
             "remembered%s%s%s",
             properties.name, cuda->device.processors, cuda_attribute(cuda->number, cudaDevAttrClockRate) / 1000,
             number_bytes(memory, sizeof(memory), (double)properties.totalGlobalMem), CUDART_VERSION / 1000,
             CUDART_VERSION % 1000 / 10, driver / 1000, driver % 1000 / 10, blas, cuda->gemms->timed,
             cuda->gemms->remembered, taken, cuda->gemms->cache.note[0] != '\0' ? "; " : "", cuda->gemms->cache.note);
}

static void name_choice(struct backend *backend, const struct op *op, const struct buffer *buffers,
                        char problem[GEMM_PROBLEM_BYTES])
{
    const struct cuda *cuda = backend->state;
    problem[0]              = '\0';
    if (cuda->gemms->is_deterministic) {
        return;
    }
    if (op->kind == OP_GEMM) {
        gemm_name(backend, op, buffers, problem);
    } else if (op->kind == OP_ATTENTION_FORWARD || op->kind == OP_ATTENTION_BACKWARD) {
        cuda_attention_name(cuda, op, problem);
    }
}

// Returns the cache of GEMM algorithms and attention engines.
static struct gemm_cache *cache_of(struct backend *backend)
{
    const struct cuda *cuda = backend->state;
    return &cuda->gemms->cache;
}

static const struct backend_choices choices = {.name = name_choice, .cache = cache_of};

const struct backend_ops backend_cuda = {
    .name            = "cuda",
    .computes        = true,
    .is_device       = true,
    .detect          = cuda_detect,
    .locate          = cuda_locate,
    .open            = cuda_open,
    .close           = cuda_close,
    .run             = run,
    .streams         = &cuda_streams,
    .allocate        = cuda_allocate,
    .release         = cuda_release,
    .clear           = cuda_clear,
    .available_bytes = cuda_available_bytes,
    .upload          = copy_and_wait,
    .download        = copy_and_wait,
    .digest          = cuda_digest,
    .scratch_bytes   = cuda_scratch_bytes,
    .reserve_scratch = cuda_reserve_scratch,
    .prepare         = prepare_op,
    .choices         = &choices,
    .profile         = cuda_profile,
    .activity        = &cuda_activity,
    .processors      = cuda_processors,
    .device_id       = cuda_device_id,
    .device_name     = cuda_device_name,
    .attention       = cuda_attention,
    .libraries       = cuda_libraries,
    .describe        = cuda_describe,
};
