// SPDX-License-Identifier: MIT
// Parser of PTX: state while a kernel is read, and its statements.
#pragma once

#include "ptx.h"

#include <map>
#include <string_view>
#include <unordered_map>

namespace ptx
{
typedef std::string_view text;

struct named {               // a register
    uint32_t unit, bytes;    // bytes 0: a predicate
};
struct scope {
    std::unordered_map<std::string, named>    registers;
    std::unordered_map<std::string, uint32_t> families;    // .reg .b32 %r<71>: bytes of each
};

struct statement {
    const char       *begin;
    uint32_t          line;
    text              guard, opcode;
    std::vector<text> operands;
};

// State while a kernel is read.
struct reader {
    kernel                                           *its;
    const char                                       *at, *end;
    uint32_t                                          line, shared_end;
    std::vector<scope>                                scopes;
    std::unordered_map<std::string, uint32_t>         labels;
    std::unordered_map<std::string, uint64_t>         symbols;          // addresses of arrays
    std::map<std::pair<uint64_t, uint32_t>, uint32_t> constants;        // units by value and bytes
    std::vector<std::pair<uint32_t, std::string>>     branches;         // instruction and target label
    std::vector<uint32_t>                             units, widths;    // operands of the statement
    uint32_t                                          width;            // bytes of the last register or constant
    instruction                                       made;             // from the statement
};

uint32_t          bytes_of_type(text type);    // 0: a predicate
named             make_register(reader *from, scope *its, const std::string &name, uint32_t bytes);
void              read_directive(reader *from, text words);
void              add_instruction(reader *from, const statement &read);
void              finish_kernel(reader *from);    // after the last instruction
[[noreturn]] void refuse(const reader *from, const char *begin, uint32_t line, const char *why);

text              trim(text of);
std::vector<text> split(text of, char separator);    // ignores separators in braces and brackets
}    // namespace ptx
