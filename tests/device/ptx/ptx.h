// SPDX-License-Identifier: MIT
// An interpreter of PTX (ISA 9.0), which nvcc emits for kernels. A warp executes an instruction for its 32 lanes at
// once. The warps of a block take turns between barriers, and blocks run one after another. Shadow memory records the
// last writer and reader of each byte, so races are found whatever the order of warps and blocks is.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <vector_types.h>

// Memory traffic of kernels since the last count, for docs/performance.md. read_bytes: 32-byte sectors that miss a
// cache as large as an L1. fed_bytes: loads of matrix instructions from shared memory; operations: their arithmetic.
// copied_bytes: cudaMemcpy. Counting is slow, so it starts only at the first call of emulator_count.
struct emulator_traffic {
    int64_t read_bytes, written_bytes, fed_bytes, operations, copied_bytes;
};

namespace ptx
{
enum { LANES = 32, UNIT = 128, MOST_OPERANDS = 14 };    // UNIT: bytes of a 32-bit register in all lanes
constexpr uint32_t ALL = 0xffffffffu, NONE = 0xffffffffu;

struct warp;

struct instruction {
    void (*run)(warp &, const instruction &);
    uint32_t guard;    // predicate register that enables the instruction, or NONE
    // In the order of the text: place of a register, number of a predicate, or NONE.
    uint32_t operands[MOST_OPERANDS];
    uint32_t target, join;    // destination of a branch, and where its lanes reconverge (NONE: the end)
    int32_t  offset;          // offset of an address, or an immediate
    bool     is_negated;      // the guard enables the instruction if it is false
    // In this order: a predicate operand is negated; a load extends the sign; an address has 32 bits.
    bool        is_negated_source, is_signed, is_32_bit;
    uint8_t     width, parts;    // bytes of the register of a load or store; registers in the braces of a mov
    uint32_t    line;
    const char *text;
};

// A named variable of PTX: a parameter, or an array in shared or local memory.
struct variable {
    std::string name;
    uint32_t    offset, bytes, alignment;
};

struct constant {
    uint32_t unit, bytes;
    uint64_t value;
};

struct kernel {
    std::string              name, text;
    std::vector<instruction> code;
    std::vector<variable>    parameters, shared;
    // special: registers such as %tid.x; their values are indices into special_names.
    std::vector<constant> constants, special;
    uint32_t              units, predicates, local_bytes, parameter_bytes, shared_bytes, max_threads;
    uint8_t              *reached;    // whether each instruction was reached
};

// Shadow memory has a tag for each byte, with segment and lane of its last access. A segment is the code of a warp
// between two barriers or bar.warp.sync, and segment numbers increase. Tag 0 means that the byte was never accessed,
// and the lane SEVERAL that several lanes accessed it.
typedef uint32_t tag;
enum { LANE_BITS = 6, SEVERAL = 32 };
constexpr tag BY_HOST = 1;

struct memory {
    uint64_t begin, end;
    char    *data;
    tag     *written, *read;
};

struct way {    // lanes that wait while others run the other side of a branch
    uint32_t pc, join, lanes;
};

struct late_copy {
    char    *to;
    tag     *written;
    int      lane;
    uint32_t group;
    char     data[16];
};

template <typename F> void for_lanes(uint32_t lanes, F call)
{
    for (; lanes != 0; lanes &= lanes - 1) {
        call(__builtin_ctz(lanes));
    }
}

struct warp {
    const kernel *code;
    char         *registers;
    uint32_t     *predicates;
    // Masks of the lanes that execute now, and of the lanes that have not exited.
    uint32_t               active, alive;
    uint32_t               pc, join;
    uint32_t               number, segment;
    uint32_t               vote;
    const instruction     *barrier;    // barrier at which the warp waits, or NULL
    bool                   has_ended;
    std::vector<way>       ways;
    std::vector<late_copy> copies;
    uint32_t               groups[LANES];    // number of cp.async groups that each lane has committed
    memory                *nearest[3];       // for each space, the allocation of the last access
    std::vector<char>      local;
    std::vector<tag>       local_written;

    template <typename T> T *lanes(uint32_t unit)
    {
        return (T *)(void *)(registers + (size_t)unit * UNIT);
    }
    // Stores the results of the active lanes. The other lanes keep their values.
    template <typename T> void put(uint32_t unit, const T *from)
    {
        T *to = lanes<T>(unit);
        if (active == ALL) {
            memcpy(to, from, sizeof(T) * LANES);
            return;
        }
        for (int l = 0; l < LANES; l++) {
            to[l] = (active >> l & 1u) != 0 ? from[l] : to[l];
        }
    }
    void put_predicate(uint32_t number, uint32_t value)
    {
        predicates[number] = (predicates[number] & ~active) | (value & active);
    }
    tag tag_of(int lane) const
    {
        return segment << LANE_BITS | (tag)lane;
    }
};

// The launch that is running.
struct launch {
    const kernel *code;
    dim3          grid, block, index;
    const char   *parameters;
    // First segments: of the launch, of the block, since the last barrier.
    uint32_t              first, block_first, interval;
    uint32_t              alive;    // threads that have reached the last barrier
    std::vector<memory>   shared;
    std::vector<uint32_t> blocks;    // first segment of each block
    std::vector<uint32_t> owners;    // number of the warp of each segment, starting at block_first
};
extern launch the_launch;

// Special registers, which are set when a kernel is launched. The index of the block starts at BLOCK_INDEX.
enum { BLOCK_INDEX = 10 };
inline constexpr const char *special_names[] = {"%tid.x",   "%tid.y",    "%tid.z",    "%ntid.x",      "%ntid.y",
                                                "%ntid.z",  "%nctaid.x", "%nctaid.y", "%nctaid.z",    "%laneid",
                                                "%ctaid.x", "%ctaid.y",  "%ctaid.z",  "%lanemask_lt", "%lanemask_eq"};

// The upper bits of a generic address select the memory space. Dynamic shared memory starts at DYNAMIC_AT.
constexpr uint64_t SHARED_BASE = UINT64_C(1) << 60, LOCAL_BASE = UINT64_C(1) << 61;
enum { SHARED_START = 1024, LOCAL_START = 1024, DYNAMIC_AT = 64 << 10, MOST_SHARED = 227 << 10 };

// Ends the process with a message that says where the error is. lane -1 means the whole warp.
[[noreturn]] void fail(const warp &of, const instruction &at, int lane, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
[[noreturn]] void fail_kernel(const char *kernel, uint32_t line, const char *text, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

uint32_t begin_segment(uint32_t warp);
void     run_grid(const kernel &code, dim3 grid, dim3 block, const char *parameters);

// Returns the allocation that contains this address range, or NULL.
memory *find_memory(uint64_t address, uint64_t bytes);
// Sets the tag of every access to BY_HOST, so that segment numbers can start again.
void forget_segments(void);
void prepare_shared(const kernel &code, uint32_t dynamic_bytes);

// The functions that execute instructions are in a table by opcode. find_access finds the function of a load or store
// by its words, and returns NULL if it is unknown.
typedef void (*handler)(warp &, const instruction &);
typedef std::unordered_map<std::string, handler> table;
void                                             add_arithmetic(table &to);
void                                             add_exchange(table &to);
void                                             add_late(table &to);
handler                                          find_access(const std::vector<std::string_view> &words, uint32_t size);
kernel                                          *read_kernel(std::string_view module, const std::string &name);

void        visit_kernels(void (*visit)(const kernel &its));    // calls a function for every kernel of the program
uint8_t    *keep_reached(const std::string &kernel, size_t instructions);
std::string mutate(const std::string &kernel, std::string text);

extern bool             the_count_runs;
extern emulator_traffic the_traffic;
void                    begin_count(void);    // empties the cache at the start of a launch
void                    count_read(uint64_t address, int bytes);

// These instructions are declared here because other files compare functions with them.
void branch(warp &w, const instruction &its);
void leave(warp &w, const instruction &its);
void arrive(warp &w, const instruction &its);
void finish_barrier(warp &w, const instruction &its, uint32_t votes);
}    // namespace ptx
