// SPDX-License-Identifier: MIT
// Replaces the functions of the CUDA runtime that nvcc's host code calls. They register the kernels when the program
// starts, and enqueue their launches. The fat binary contains uncompressed PTX.
#include "ptx.h"

#include "../emulated/emulator.h"

#include <stdio.h>
#include <stdlib.h>

#include <map>

namespace ptx
{
namespace
{
enum { KIND_PTX = 1, BLOCKS_PER_MULTIPROCESSOR = 2, EVERY_DEVICE_HAS = 48 << 10 };

// A fat binary consists of a wrapper, a file header, and entries that each have a header.
struct wrapper {
    uint32_t    magic, version;
    const char *data;
    void       *file;
};
struct file_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};
struct entry_header {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed_bytes;
};

struct entry {    // a registered kernel
    std::string name;
    const char *binary;
    kernel     *code;    // NULL until the first launch
    int         allowed_shared;
};

std::map<const void *, entry> &entries()
{
    static std::map<const void *, entry> all;
    return all;
}

std::string_view find_module(const char *data)
{
    file_header file;
    memcpy(&file, data, sizeof(file));
    const char *end = data + file.header_bytes + file.bytes;
    for (const char *at = data + file.header_bytes; at < end;) {
        entry_header header;
        memcpy(&header, at, sizeof(header));
        if (header.kind == KIND_PTX && header.compressed_bytes == 0) {
            const char *text = at + header.header_bytes;
            return {text, strnlen(text, header.bytes)};
        }
        at += header.header_bytes + header.bytes;
    }
    fprintf(stderr,
            "ptx: a fat binary without plain PTX: nvcc -gencode arch=compute_90a,code=compute_90a --no-compress\n");
    abort();
}

kernel *code_of(entry *its)
{
    if (its->code == NULL) {
        its->code = read_kernel(find_module(its->binary), its->name);
    }
    return its->code;
}

entry *find_entry(const void *function)
{
    auto found = entries().find(function);
    if (found == entries().end()) {
        fprintf(stderr, "ptx: a function is launched that is no kernel\n");
        abort();
    }
    return &found->second;
}

void check_limits(const entry &its, dim3 grid, dim3 block, size_t shared_bytes)
{
    const kernel &code    = *its.code;
    uint64_t      threads = (uint64_t)block.x * block.y * block.z, blocks = (uint64_t)grid.x * grid.y * grid.z;
    const char   *name = its.name.c_str();
    if (threads == 0 || threads > code.max_threads || block.z > 64) {
        fail_kernel(name, 0, "", "%llu threads, at most %u", (unsigned long long)threads, code.max_threads);
    }
    if (blocks == 0 || grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535) {
        fail_kernel(name, 0, "", "a grid of %u, %u, %u blocks", grid.x, grid.y, grid.z);
    }
    if (shared_bytes > EVERY_DEVICE_HAS - code.shared_bytes && (int)shared_bytes > its.allowed_shared) {
        fail_kernel(name, 0, "", "%zu bytes of dynamic shared memory, of which it may have %d", shared_bytes,
                    its.allowed_shared);
    }
    if ((int)(shared_bytes + code.shared_bytes) > emulator::most_shared()) {
        fail_kernel(name, 0, "", "%zu bytes of shared memory, more than a block can have",
                    shared_bytes + code.shared_bytes);
    }
}

cudaError_t enqueue(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                    cudaStream_t stream)
{
    entry        *its  = find_entry(function);
    const kernel *code = code_of(its);
    check_limits(*its, grid, block, shared_bytes);
    std::vector<char> parameters(code->parameter_bytes);
    for (size_t i = 0; i < code->parameters.size(); i++) {
        memcpy(&parameters[code->parameters[i].offset], arguments[i], code->parameters[i].bytes);
    }
    emulator::load(function);
    emulator::enqueue(stream, [=]() {
        the_launch.code = code;
        prepare_shared(*code, (uint32_t)shared_bytes);
        begin_count();
        run_grid(*code, grid, block, parameters.data());
    });
    return cudaSuccess;
}
}    // namespace

void visit_kernels(void (*visit)(const kernel &its))
{
    for (auto &each : entries()) {
        visit(*code_of(&each.second));
    }
}

}    // namespace ptx

extern "C" {

void **__cudaRegisterFatBinary(void *data)
{
    return (void **)data;
}
void __cudaRegisterFatBinaryEnd(void **)
{
}
void __cudaUnregisterFatBinary(void **)
{
}
void __cudaRegisterFunction(void **handle, const char *function, char *, const char *name, int, uint3 *, uint3 *,
                            dim3 *, dim3 *, int *)
{
    ptx::entries()[function] = {name, ((const ptx::wrapper *)(void *)handle)->data, NULL, 0};
}
char __cudaInitModule(void **)
{
    return 0;
}

// The host code of a kernel calls these for a launch with <<< >>>.
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, struct CUstream_st *)
{
    return 1;
}
cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *)
{
    return cudaErrorInvalidConfiguration;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    *kernel = (cudaKernel_t)(void *)function;
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                               cudaStream_t stream)
{
    return ptx::enqueue(kernel, grid, block, arguments, shared_bytes, stream);
}
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t stream)
{
    return ptx::enqueue(function, grid, block, arguments, shared_bytes, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments)
{
    return ptx::enqueue(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
                        config->stream);
}

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute, int value)
{
    ptx::find_entry(function)->allowed_shared = value;
    return value <= emulator::most_shared() ? cudaSuccess : cudaErrorInvalidValue;
}
// Returns two, so that tests cover several blocks per SM.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *, int, size_t, unsigned)
{
    *blocks = ptx::BLOCKS_PER_MULTIPROCESSOR;
    return cudaSuccess;
}
}
