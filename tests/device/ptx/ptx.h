// SPDX-License-Identifier: MIT
// Runs kernels in the form in which nvcc emits them: an interpreter of PTX (PTX ISA 9.0). A warp executes an
// instruction for its 32 lanes at once; warps run one after another from barrier to barrier, blocks one after another.
// Shadows of memory hold who wrote and read each byte last, so that a race shows in any order.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <vector_types.h>

// What kernels move, counted for docs/performance.md; counting costs time, and begins when it is first asked for.
// Sectors of 32 bytes that were read and that a small cache did not have, as a multiprocessor's own would; bytes that
// were written; bytes that fed matrix instructions from shared memory, and the operations of these; and bytes that were
// copied beside kernels.
struct emulator_traffic {
    int64_t read_bytes, written_bytes, fed_bytes, operations, copied_bytes;
};

namespace ptx
{
enum { LANES = 32, UNIT = 128, MOST_OPERANDS = 14 };    // UNIT: bytes of a register of 32 bits in all lanes
constexpr uint32_t ALL = 0xffffffffu, NONE = 0xffffffffu;

struct warp;

struct instruction {
    void (*run)(warp &, const instruction &);
    uint32_t guard;                      // predicate without which it does nothing, or NONE
    uint32_t operands[MOST_OPERANDS];    // in the order of the text: registers by unit, predicates by number, or NONE
    uint32_t target, join;               // of a branch, and where its ways meet again (NONE: at the end)
    int32_t  offset;                     // of an address; another number
    bool     is_negated;                 // by the guard: the predicate has to be false
    bool     is_negated_source, is_signed, is_32_bit;    // a predicate source; an access; a 32-bit address
    uint8_t  width, parts;    // bytes of the register that an access fills; registers of a mov with braces
    uint32_t line;
    const char *text;
};

// A place that has a name in PTX: a parameter, or an array in shared or local memory.
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
    std::vector<constant>    constants, special;    // special: values are indices of special_names
    uint32_t                 units, predicates, local_bytes, parameter_bytes, shared_bytes, max_threads;
    uint8_t                 *reached;    // by instruction
};

// A shadow holds a tag of each byte: the segment in which a warp accessed it, and the lane. A warp begins a segment at
// each barrier and each bar.warp.sync; numbers of segments rise. 0: nobody; SEVERAL: more than one lane.
typedef uint32_t tag;
enum { LANE_BITS = 6, SEVERAL = 32 };
constexpr tag BY_HOST = 1;

struct memory {
    uint64_t begin, end;
    char    *data;
    tag     *written, *read;
};

struct way {    // lanes that go on elsewhere, later
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
    const kernel          *code;
    char                  *registers;
    uint32_t              *predicates;
    uint32_t               active, alive;    // lanes that execute; that have not ended
    uint32_t               pc, join;
    uint32_t               number, segment;
    uint32_t               vote;
    const instruction     *barrier;    // that it waits at; NULL: none
    bool                   has_ended;
    std::vector<way>       ways;
    std::vector<late_copy> copies;
    uint32_t               groups[LANES];    // of late copies, begun by each lane
    memory                *nearest[3];       // allocation of the latest access, by space
    std::vector<char>      local;
    std::vector<tag>       local_written;

    template <typename T> T *lanes(uint32_t unit)
    {
        return (T *)(void *)(registers + (size_t)unit * UNIT);
    }
    // Results of lanes; those that are not active keep what they have.
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

// What runs now.
struct launch {
    const kernel         *code;
    dim3                  grid, block, index;
    const char           *parameters;
    uint32_t              first, block_first, interval;    // segments: of the launch, the block, since the last barrier
    uint32_t              alive;                           // threads at the latest barrier
    std::vector<memory>   shared;
    std::vector<uint32_t> blocks;    // their first segments
    std::vector<uint32_t> owners;    // warps of segments, from block_first on
};
extern launch the_launch;

// Registers that a launch fills; those of the block's index from BLOCK_INDEX on.
enum { BLOCK_INDEX = 10 };
inline constexpr const char *special_names[] = {"%tid.x",   "%tid.y",    "%tid.z",    "%ntid.x",      "%ntid.y",
                                                "%ntid.z",  "%nctaid.x", "%nctaid.y", "%nctaid.z",    "%laneid",
                                                "%ctaid.x", "%ctaid.y",  "%ctaid.z",  "%lanemask_lt", "%lanemask_eq"};

// Addresses: 0 is none; generic ones have their space in their upper bits. Dynamic shared memory begins at DYNAMIC_AT.
constexpr uint64_t SHARED_BASE = UINT64_C(1) << 60, LOCAL_BASE = UINT64_C(1) << 61;
enum { SHARED_START = 1024, LOCAL_START = 1024, DYNAMIC_AT = 64 << 10, MOST_SHARED = 227 << 10 };

// Ends the process with what is wrong where. lane -1: of the whole warp.
[[noreturn]] void fail(const warp &of, const instruction &at, int lane, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
[[noreturn]] void fail_kernel(const char *kernel, uint32_t line, const char *text, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

uint32_t begin_segment(uint32_t warp);
void     run_grid(const kernel &code, dim3 grid, dim3 block, const char *parameters);

// Memory of the device: found by address, or NULL.
memory *find_memory(uint64_t address, uint64_t bytes);
void    forget_segments(void);    // all tags become the host's
void    prepare_shared(const kernel &code, uint32_t dynamic_bytes);

// Text to code: functions by opcode, and of loads and stores by their words (NULL: there is none).
typedef void (*handler)(warp &, const instruction &);
typedef std::unordered_map<std::string, handler> table;
void                                             add_arithmetic(table &to);
void                                             add_exchange(table &to);
void                                             add_late(table &to);
handler                                          find_access(const std::vector<std::string_view> &words, uint32_t size);
kernel                                          *read_kernel(std::string_view module, const std::string &name);

void        visit_kernels(void (*visit)(const kernel &its));    // all that the program has
uint8_t    *keep_reached(const std::string &kernel, size_t instructions);
std::string mutate(const std::string &kernel, std::string text);

extern bool             the_count_runs;
extern emulator_traffic the_traffic;
void                    begin_count(void);    // of a launch, which finds the cache empty
void                    count_read(uint64_t address, int bytes);

// Instructions that others than their own file know.
void branch(warp &w, const instruction &its);
void leave(warp &w, const instruction &its);
void arrive(warp &w, const instruction &its);
void finish_barrier(warp &w, const instruction &its, uint32_t votes);
}    // namespace ptx
