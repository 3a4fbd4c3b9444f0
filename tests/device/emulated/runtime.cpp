// SPDX-License-Identifier: MIT
// An emulated CUDA runtime: device properties, streams, events and graphs. It draws at random which stream runs next.
// So if the program orders two streams without an event, its results vary.
#include "emulator.h"

#include <cuda_profiler_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <random>
#include <set>
#include <vector>

struct CUevent_st {
    unsigned recorded, passed;    // number of times it was enqueued to be recorded, and was reached
    double   milliseconds;        // clock of the stream when it was reached
    bool     is_within;           // recorded during capture, only to order captured work
};

struct CUstream_st {
    struct item {
        std::function<void()> work;
        bool                  takes_time = true;
        // Returns whether the processes that the work waits for are ready. Empty if it waits for none.
        std::function<bool()> is_ready = {};
        CUevent_st           *awaited  = NULL;    // event that it waits for, or NULL
        unsigned              passed   = 0;
        double                enqueued = 0;    // clock of the host when it was enqueued
    };
    std::deque<item> items;
    double           milliseconds;    // emulated clock of the stream, independent of CPU time
};

struct CUgraph_st {
    std::vector<std::function<void()>> calls;
};
struct CUgraphExec_st : CUgraph_st {
};

namespace
{
std::recursive_mutex       the_lock;
std::vector<CUstream_st *> the_streams;
std::set<const void *>     the_kernels;    // kernels that were launched so far
std::mt19937               the_draw(1);
std::mt19937               the_noise((unsigned)getpid());
CUstream_st               *the_running;    // stream whose item is running
// Host clock in milliseconds: the latest clock of a stream that was synchronized.
double                   the_host;
long                     the_calls;      // number of items that were enqueued so far
thread_local CUgraph_st *the_capture;    // graph that records the calls of this thread instead of running them

typedef std::lock_guard<std::recursive_mutex> guard;

// FAKE_CUDA selects the call that fails: "count" of devices, or the same with an "old" driver, "begin" of a capture,
// "record" of an event during capture, or "instantiate" of a graph.
bool refuses(const char *what)
{
    return emulator::is_told("FAKE_CUDA", what);
}

// Returns the duration of an item, which is 1 ms. With FAKE_SLOW it is that many percent longer, with random noise of
// 10 percent, or of FAKE_VARY percent.
double draw_milliseconds()
{
    double part = emulator::number_told("FAKE_VARY", 10) / 100, slow = emulator::number_told("FAKE_SLOW", -1);
    return slow < 0 ? 1 : (1 + slow / 100) * std::uniform_real_distribution<>(1 - part, 1 + part)(the_noise);
}

bool is_ready(const CUstream_st *stream)
{
    const CUstream_st::item &next = stream->items.front();
    return (next.awaited == NULL || next.awaited->passed >= next.passed) && (!next.is_ready || next.is_ready());
}

// Draws a stream whose next item is ready, and runs this item.
bool advance()
{
    std::vector<CUstream_st *> ready;
    for (CUstream_st *stream : the_streams) {
        if (!stream->items.empty() && is_ready(stream)) {
            ready.push_back(stream);
        }
    }
    if (ready.empty()) {
        return false;
    }
    CUstream_st      *drawn = ready[the_draw() % ready.size()];
    CUstream_st::item item  = std::move(drawn->items.front());
    drawn->items.pop_front();
    drawn->milliseconds = std::max(drawn->milliseconds, item.enqueued);
    if (item.awaited != NULL) {
        drawn->milliseconds = std::max(drawn->milliseconds, item.awaited->milliseconds);
    }
    drawn->milliseconds += item.takes_time ? draw_milliseconds() : 0;
    the_running = drawn;
    item.work();
    return true;
}

// Called if no item is ready. If no stream waits for another process, the streams wait for each other, which is a
// deadlock.
void wait_for_others()
{
    bool waits = false;
    for (CUstream_st *stream : the_streams) {
        waits = waits || (!stream->items.empty() && stream->items.front().is_ready);
    }
    if (!waits) {
        fprintf(stderr, "emulator: streams wait for each other\n");
        abort();
    }
    const struct timespec pause = {0, 20000};
    nanosleep(&pause, NULL);
}

void push(cudaStream_t stream, CUstream_st::item item)
{
    guard held(the_lock);
    the_calls++;
    item.enqueued = the_host;
    stream->items.push_back(std::move(item));
}

// Runs the call, or records it during capture.
cudaError_t perform(std::function<void()> call)
{
    if (the_capture != NULL) {
        the_capture->calls.push_back(std::move(call));
    } else {
        call();
    }
    return cudaSuccess;
}
}    // namespace

namespace emulator
{
void enqueue(cudaStream_t stream, std::function<void()> work)
{
    perform([=]() { push(stream, {work}); });
}

void load(const void *kernel)
{
    guard held(the_lock);
    if (!the_kernels.insert(kernel).second) {
        return;
    }
    for (const CUstream_st *stream : the_streams) {
        for (const CUstream_st::item &item : stream->items) {
            if (item.is_ready) {
                fprintf(stderr, "emulator: a kernel is loaded while a transfer may wait for another process\n");
                abort();
            }
        }
    }
}

void enqueue_made(cudaStream_t stream, std::function<pending()> make)
{
    perform([=]() {
        pending made = make();
        push(stream, {made.run, true, made.is_ready});
    });
}

bool captures(void)
{
    return the_capture != NULL;
}

void spend(float milliseconds)
{
    the_running->milliseconds += milliseconds;
}

bool progress(void)
{
    guard held(the_lock);
    return advance();
}
}    // namespace emulator

// FAKE_PROCESSORS sets the number of SMs, FAKE_SHARED_KIB the shared memory of a block, FAKE_CAPABILITY the major
// compute capability, and FAKE_DRIVER the driver's CUDA version.
int emulator::multiprocessors(void)
{
    return (int)number_told("FAKE_PROCESSORS", 3);
}
int emulator::most_shared(void)
{
    return (int)number_told("FAKE_SHARED_KIB", 227) << 10;
}

// Returns the number of the rank's GPU. Ranks with different FAKE_DEVICE have separate GPUs.
static int device_number(void)
{
    return (int)emulator::number_told("FAKE_DEVICE", 0);
}

// Appends a line about a profiler call to the file FAKE_PROFILER, in the format of tests/observe/fake_profiler.c.
static cudaError_t tell(const char *line)
{
    const char *path = getenv("FAKE_PROFILER");
    FILE       *file = path != NULL ? fopen(path, "a") : NULL;
    if (file != NULL) {
        fputs(line, file);
        fclose(file);
    }
    return cudaSuccess;
}

extern "C" {

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = (int)emulator::number_told("FAKE_DRIVER", CUDART_VERSION);
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return refuses("count") ? cudaErrorSystemNotReady : refuses("old") ? cudaErrorInsufficientDriver : cudaSuccess;
}
cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    *value = attribute == cudaDevAttrMultiProcessorCount            ? emulator::multiprocessors()
             : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? emulator::most_shared()
             : attribute == cudaDevAttrComputeCapabilityMajor       ? (int)emulator::number_told("FAKE_CAPABILITY", 10)
                                                                    : 0;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
    memset(properties, 0, sizeof(*properties));
    const char *name = getenv("FAKE_NAME");
    snprintf(properties->name, sizeof(properties->name), "%s", name != NULL ? name : "emulated GPU");
    properties->totalGlobalMem = (size_t)8 << 30;
    properties->uuid.bytes[15] = (char)device_number();
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int)
{
    snprintf(text, (size_t)bytes, "FFFF:%02X:00.0", device_number());    // no machine has this PCI domain
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *total     = (size_t)8 << 30;
    *available = *total - (size_t)emulator::taken_bytes;
    return cudaSuccess;
}

// Returns the number of cublasLtMatmulDesc_t that were created so far, and of those that still exist.
void emulator_descriptions(int *made, int *kept)
{
    *made = emulator::products_made;
    *kept = emulator::products_kept;
}

cudaError_t cudaProfilerStart(void)
{
    return tell("0\tdevice-start\n");
}
cudaError_t cudaProfilerStop(void)
{
    return tell("0\tdevice-stop\n");
}

EMULATED_NO_EFFECT(cudaError_t, cudaGetLastError, void)
const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "an error of the emulator";
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *lowest, int *highest)
{
    *lowest = *highest = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int)
{
    guard held(the_lock);
    *stream = new CUstream_st{};
    the_streams.push_back(*stream);
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    guard held(the_lock);
    while (!stream->items.empty()) {
        if (!advance()) {
            wait_for_others();
        }
    }
    the_host = std::max(the_host, stream->milliseconds);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    guard held(the_lock);
    cudaStreamSynchronize(stream);
    the_streams.erase(std::find(the_streams.begin(), the_streams.end(), stream));
    delete stream;
    return cudaSuccess;
}

// Returns the number of enqueued items. The fake CUPTI calls this to find whether the GPU is used during an interval.
long emulated_calls(void)
{
    guard held(the_lock);
    return the_calls;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new CUevent_st{};
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, 0);
}
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    if (the_capture != NULL && refuses("record")) {
        return cudaErrorStreamCaptureUnsupported;
    }
    if (the_capture == NULL && flags == cudaEventRecordExternal) {
        return cudaErrorIllegalState;
    }
    event->is_within = the_capture != NULL && flags != cudaEventRecordExternal;
    return perform([=]() {
        guard    held(the_lock);
        unsigned number = ++event->recorded;
        push(stream, {[=]() { event->passed = number, event->milliseconds = stream->milliseconds; }, false});
    });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    return perform([=]() {
        guard held(the_lock);
        push(stream, {[]() {}, false, {}, event, event->recorded});
    });
}
// Returns the difference of the emulated clocks at the two events.
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    if (begin->is_within || end->is_within || begin->passed == 0 || end->passed == 0) {
        return cudaErrorInvalidResourceHandle;
    }
    *milliseconds = (float)(end->milliseconds - begin->milliseconds);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode)
{
    if (refuses("begin")) {
        return cudaErrorStreamCaptureUnsupported;
    }
    the_capture = new CUgraph_st;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph)
{
    *graph      = the_capture;
    the_capture = NULL;
    if (refuses("record")) {
        delete *graph;
        *graph = NULL;
        return cudaErrorStreamCaptureInvalidated;
    }
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *instance, cudaGraph_t graph, unsigned long long flags)
{
    if ((flags & cudaGraphInstantiateFlagUseNodePriority) == 0) {
        fprintf(stderr, "the emulated device: a graph whose work does not keep the priorities of its streams\n");
        abort();
    }
    if (refuses("instantiate")) {
        return cudaErrorUnknown;
    }
    *instance          = new CUgraphExec_st;
    (*instance)->calls = graph->calls;
    return cudaSuccess;
}
EMULATED_NO_EFFECT(cudaError_t, cudaGraphUpload, cudaGraphExec_t, cudaStream_t)
cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t)
{
    guard held(the_lock);
    for (const std::function<void()> &call : instance->calls) {
        call();
    }
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance)
{
    delete instance;
    return cudaSuccess;
}
}
