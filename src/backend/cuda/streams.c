// SPDX-License-Identifier: MIT
// Functions of struct backend_streams for CUDA: streams, events, and the graph of a captured step.
#include <stdlib.h>

#include "internal.h"

static void attach(struct backend *backend)
{
    const struct cuda *cuda = backend->state;
    CUDA_CHECK(cudaSetDevice(cuda->number));
}

static void *handle(struct backend *backend, int stream)
{
    return device_of(backend)->streams[stream];
}

static void *event_open(struct backend *backend, bool is_timed)
{
    (void)backend;
    cudaEvent_t event;
    CUDA_CHECK(cudaEventCreateWithFlags(&event, is_timed ? cudaEventDefault : cudaEventDisableTiming));
    return event;
}

static void event_close(void *event)
{
    CUDA_CHECK(cudaEventDestroy(event));
}

static void record(struct backend *backend, int stream, void *event)
{
    CUDA_CHECK(cudaEventRecord(event, handle(backend, stream)));
}

static void mark(struct backend *backend, int stream, void *event)
{
    unsigned flag = cuda_is_capturing() ? cudaEventRecordExternal : cudaEventRecordDefault;
    CUDA_CHECK(cudaEventRecordWithFlags(event, handle(backend, stream), flag));
}

static void wait(struct backend *backend, int stream, void *event)
{
    CUDA_CHECK(cudaStreamWaitEvent(handle(backend, stream), event, 0));
}

static void synchronize(struct backend *backend, int stream)
{
    CUDA_CHECK(cudaStreamSynchronize(handle(backend, stream)));
}

static double seconds_between(void *begin, void *end)
{
    float milliseconds;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    return 1e-3 * (double)milliseconds;
}

static void *allocate_host(struct backend *backend, int64_t bytes)
{
    (void)backend;
    void *data;
    CUDA_CHECK(cudaMallocHost(&data, (size_t)bytes));
    return data;
}

static void release_host(struct backend *backend, void *data)
{
    (void)backend;
    CUDA_CHECK(cudaFreeHost(data));
}

static void copy(struct backend *backend, int stream, void *to, const void *from, int64_t bytes)
{
    CUDA_CHECK(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, handle(backend, stream)));
}

// Fails if a captured step could deadlock. With NCCL_LAUNCH_ORDER_IMPLICIT and a driver for CUDA older than 12.9, NCCL
// serialises all communication of a graph, across streams. A receive that is posted early would then block an op that
// the sender waits for.
static status check_order(void)
{
    enum { DRIVER_MIN = 12090 };
    const char *asked = getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    int         driver;
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    return asked == NULL || atoi(asked) == 0 || driver >= DRIVER_MIN
               ? OK
               : fail_as(EXIT_LAUNCH,
                         "NCCL_LAUNCH_ORDER_IMPLICIT = %.20s with a driver for CUDA %d.%d, older than 12.9, would make "
                         "streams wait for each other in a graph: unset it",
                         asked, driver / 1000, driver % 1000 / 10);
}

static status capture_begin(struct backend *backend, int stream)
{
    TRY(check_order());
    const struct cuda *cuda  = backend->state;
    cudaError_t        error = cudaStreamBeginCapture(cuda->device.streams[stream], cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess) {
        cudaGetLastError();    // clears the error, so that later checks do not see it
        return fail_as(EXIT_LOST, "cudaStreamBeginCapture: %s", cudaGetErrorString(error));
    }
    cuda_capture_begin();
    return OK;
}

// Ends the capture and instantiates the graph. If a captured call failed, the capture is already invalid.
static status capture_end(struct backend *backend, int stream)
{
    struct cuda *cuda  = backend->state;
    cudaGraph_t  graph = NULL;
    CUDA_CHECK(cudaStreamEndCapture(cuda->device.streams[stream], &graph));
    status captured = cuda_capture_end();
    if (!failed(&captured)) {
        cuda_capture_begin();
        // Without this flag, all nodes of the graph run at the priority of the stream that launches it.
        CUDA_CHECK(cudaGraphInstantiate(&cuda->graph, graph, cudaGraphInstantiateFlagUseNodePriority));
        captured = cuda_capture_end();
    }
    if (graph != NULL) {
        cudaGraphDestroy(graph);
    }
    cudaGetLastError();
    TRY(captured);
    CUDA_CHECK(cudaGraphUpload(cuda->graph, cuda->device.streams[stream]));
    CUDA_CHECK(cudaStreamSynchronize(cuda->device.streams[stream]));
    return OK;
}

static void capture_launch(struct backend *backend, int stream)
{
    const struct cuda *cuda = backend->state;
    CUDA_CHECK(cudaGraphLaunch(cuda->graph, cuda->device.streams[stream]));
}

static void capture_release(struct backend *backend)
{
    struct cuda *cuda = backend->state;
    CUDA_CHECK(cudaGraphExecDestroy(cuda->graph));
    cuda->graph = NULL;
}

const struct backend_streams cuda_streams = {
    .attach          = attach,
    .handle          = handle,
    .event_open      = event_open,
    .event_close     = event_close,
    .record          = record,
    .mark            = mark,
    .wait            = wait,
    .synchronize     = synchronize,
    .seconds_between = seconds_between,
    .allocate_host   = allocate_host,
    .release_host    = release_host,
    .copy            = copy,
    .capture_begin   = capture_begin,
    .capture_end     = capture_end,
    .capture_launch  = capture_launch,
    .capture_release = capture_release,
};
