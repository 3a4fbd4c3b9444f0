// SPDX-License-Identifier: MIT
// The CUDA runtime that goes with the emulator: one device, whose memory is the process's own. Streams are queues,
// taken from in an order drawn at random, so that a result that hangs on an order that no event asks for shows.
#include "emulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <deque>
#include <mutex>
#include <random>
#include <vector>

struct CUevent_st {
    unsigned recorded, passed;    // records enqueued, and reached
    float    milliseconds;        // when it was reached last
};

struct CUstream_st {
    struct item {
        std::function<void()> work;
        CUevent_st           *awaited;    // NULL: none
        unsigned              passed;
        std::function<bool()> is_ready;    // of other processes; empty: does not wait for them
    };
    std::deque<item> items;
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
std::mt19937               the_draw(1);
float                      the_milliseconds;    // that work has taken beside its time
thread_local CUgraph_st   *the_capture;         // calls of this thread are kept here, not done

typedef std::lock_guard<std::recursive_mutex> guard;

// FAKE_CUDA: what this runtime does not do: "begin" a capture, "record" an event in one, "instantiate" a graph.
bool refuses(const char *what)
{
    const char *told = getenv("FAKE_CUDA");
    return told != NULL && strcmp(told, what) == 0;
}

bool is_ready(const CUstream_st *stream)
{
    const CUstream_st::item &next = stream->items.front();
    return (next.awaited == NULL || next.awaited->passed >= next.passed) && (!next.is_ready || next.is_ready());
}

// One item of a stream that has one ready.
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
    item.work();
    return true;
}

// When none is ready: what is waited for was enqueued before, so that a stream waits for another process.
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
    stream->items.push_back(std::move(item));
}

// Keeps the call while its thread captures, else makes it.
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
    perform([=]() { push(stream, {work, NULL, 0, {}}); });
}

void enqueue_made(cudaStream_t stream, std::function<pending()> make)
{
    perform([=]() {
        pending made = make();
        push(stream, {made.run, NULL, 0, made.is_ready});
    });
}

void spend(float milliseconds)
{
    the_milliseconds += milliseconds;
}

bool progress(void)
{
    guard held(the_lock);
    return advance();
}
}    // namespace emulator

extern "C" {

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "an error of the emulator";
}

// Poisoned, so that what is not written shows.
cudaError_t cudaMalloc(void **data, size_t bytes)
{
    *data = aligned_alloc(256, (bytes + 256) / 256 * 256);
    memset(*data, 0xff, bytes);
    return cudaSuccess;
}
cudaError_t cudaFree(void *data)
{
    free(data);
    return cudaSuccess;
}
cudaError_t cudaMallocHost(void **data, size_t bytes)
{
    return cudaMalloc(data, bytes);
}
cudaError_t cudaFreeHost(void *data)
{
    return cudaFree(data);
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
    emulator::enqueue(stream, [=]() { memcpy(to, from, bytes); });
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    emulator::enqueue(stream, [=]() { memset(to, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *lowest, int *highest)
{
    *lowest = *highest = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int)
{
    guard held(the_lock);
    *stream = new CUstream_st;
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

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new CUevent_st{0, 0, 0};
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
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (the_capture != NULL && refuses("record")) {
        return cudaErrorStreamCaptureUnsupported;
    }
    return perform([=]() {
        guard    held(the_lock);
        unsigned number = ++event->recorded;
        push(stream, {[=]() {
                          event->passed       = number;
                          event->milliseconds = the_milliseconds;
                      },
                      NULL,
                      0,
                      {}});
    });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    return perform([=]() {
        guard held(the_lock);
        push(stream, {[]() {}, event, event->recorded, {}});
    });
}
// A millisecond, and what was said to take longer.
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    *milliseconds = 1 + end->milliseconds - begin->milliseconds;
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
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    return cudaSuccess;
}
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
