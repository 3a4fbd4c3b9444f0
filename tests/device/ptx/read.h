// SPDX-License-Identifier: MIT
// The parser of PTX: its state while it reads a kernel, and the statements that it reads.
#pragma once

#include "ptx.h"

#include <map>
#include <string_view>
#include <unordered_map>

namespace ptx
{
typedef std::string_view text;

struct named {               // a register
    uint32_t unit, bytes;    // bytes is 0 for a predicate
};
struct scope {
    std::unordered_map<std::string, named>    registers;
    std::unordered_map<std::string, uint32_t> families;    // .reg .b32 %r<71> declares a family; bytes of each register
};

struct statement {
    const char       *begin;
    uint32_t          line;
    text              guard, opcode;
    std::vector<text> operands;
};

// State of the parser while it reads a kernel.
struct reader {
    kernel                                           *its;
    const char                                       *at, *end;
    uint32_t                                          line, shared_end;
    std::vector<scope>                                scopes;
    std::unordered_map<std::string, uint32_t>         labels;
    std::unordered_map<std::string, uint64_t>         symbols;      // addresses of arrays
    std::map<std::pair<uint64_t, uint32_t>, uint32_t> constants;    // places of constants by value and bytes
    // Number of an instruction, and the label where it branches to.
    std::vector<std::pair<uint32_t, std::string>> branches;
    // Places and widths of the operands of the current statement.
    std::vector<uint32_t> units, widths;
    // Bytes of the last register or constant that was read.
    uint32_t width;
    // The instruction that is made from the statement.
    instruction made;
};

uint32_t          bytes_of_type(text type);    // 0 for a predicate
named             make_register(reader *from, scope *its, const std::string &name, uint32_t bytes);
void              read_directive(reader *from, text words);
void              add_instruction(reader *from, const statement &read);
void              finish_kernel(reader *from);    // called after the last instruction
[[noreturn]] void refuse(const reader *from, const char *begin, uint32_t line, const char *why);

text              trim(text of);
std::vector<text> split(text of, char separator);    // ignores separators in braces and brackets
}    // namespace ptx
