// SPDX-License-Identifier: MIT
// Translates PTX statements to instructions of the interpreter. Registers get places in the register file of a warp,
// immediates become registers that a launch fills, and each opcode gets its function.
#include "read.h"

#include <stdlib.h>

#include <algorithm>

namespace ptx
{
namespace
{
uint32_t take_units(reader *from, uint32_t bytes)
{
    uint32_t first = from->its->units;
    from->its->units += bytes == 8 ? 2 : 1;
    return first;
}

uint32_t find_constant(reader *from, uint64_t value, uint32_t bytes)
{
    if (bytes == 0) {
        return value != 0;    // two predicate registers are constant: 0 is false and 1 is true
    }
    auto [found, is_new] = from->constants.insert({{value, bytes}, 0});
    if (is_new) {
        found->second = take_units(from, bytes);
        from->its->constants.push_back({found->second, bytes, value});
    }
    from->width = bytes;
    return found->second;
}

// Finds a register in the innermost scope that declares it. Returns bytes NONE if there is none.
named find_register(reader *from, text of)
{
    std::string name(of), stem(of.substr(0, of.find_last_not_of("0123456789") + 1));
    for (auto its = from->scopes.rbegin(); its != from->scopes.rend(); ++its) {
        auto found = its->registers.find(name);
        if (found != its->registers.end()) {
            return found->second;
        }
        auto family = its->families.find(stem);
        if (family != its->families.end()) {
            return make_register(from, &*its, name, family->second);
        }
    }
    for (const char *const &each : special_names) {
        if (name == each) {
            named made = make_register(from, &from->scopes.front(), name, 4);
            from->its->special.push_back({made.unit, 4, (uint64_t)(&each - special_names)});
            return made;
        }
    }
    return {NONE, NONE};
}

uint64_t read_number(text of, bool *is_number)
{
    std::string digits(of);
    char       *end   = NULL;
    uint64_t    value = 0;
    if (digits.size() > 2 && digits[0] == '0' &&
        (digits[1] == 'f' || digits[1] == 'd' || digits[1] == 'F' || digits[1] == 'D')) {
        value = strtoull(digits.c_str() + 2, &end, 16);
    } else {
        value = digits[0] == '-' ? (uint64_t)strtoll(digits.c_str(), &end, 10) : strtoull(digits.c_str(), &end, 0);
    }
    *is_number = end != digits.c_str() && *end == '\0';
    return value;
}

// Reads an address in one of the forms [register + number], [array + number], [parameter + number].
void read_address(reader *from, text of, const statement &read)
{
    size_t  sign   = of.find_first_of("+-");
    text    name   = trim(of.substr(0, sign));
    int64_t offset = sign == text::npos ? 0 : atoll(std::string(of.substr(sign + (of[sign] == '+'))).c_str());
    auto    symbol = from->symbols.find(std::string(name));
    if (symbol != from->symbols.end()) {
        from->units.push_back(find_constant(from, symbol->second, 8));
    } else {
        named found = find_register(from, name);
        if (found.bytes == NONE || found.bytes < 4) {
            refuse(from, read.begin, read.line, "an address that is not known");
        }
        from->units.push_back(found.unit);
        from->made.is_32_bit = found.bytes == 4;
    }
    if (from->made.offset != 0 || offset != (int32_t)offset) {
        refuse(from, read.begin, read.line, "an offset too many");
    }
    from->made.offset = (int32_t)offset;
}

// Adds the registers of an operand to the list of the statement. `bytes` is the size of an immediate.
void read_operand(reader *from, text of, uint32_t bytes, const statement &read)
{
    bool is_number, is_negated = of[0] == '!';
    if (of[0] == '{') {
        for (text each : split(of.substr(1, of.size() - 2), ',')) {
            read_operand(from, each, bytes, read);
        }
        return;
    }
    if (of[0] == '[') {
        read_address(from, of.substr(1, of.size() - 2), read);
        return;
    }
    from->made.is_negated_source = from->made.is_negated_source || is_negated;
    named found                  = find_register(from, is_negated ? of.substr(1) : of);
    if (found.bytes != NONE || of == "_") {
        from->units.push_back(found.unit);
        from->widths.push_back(found.bytes);
        from->width = found.bytes != 0 && found.bytes != NONE ? found.bytes : from->width;
        return;
    }
    auto     symbol = from->symbols.find(std::string(of));
    uint64_t value  = symbol != from->symbols.end() ? symbol->second : read_number(of, &is_number);
    if (symbol == from->symbols.end() && !is_number) {
        refuse(from, read.begin, read.line, "an operand that is not known");
    }
    from->units.push_back(find_constant(from, value, bytes));
    from->widths.push_back(bytes);
}

// Returns the size of an immediate as operand `index`. It is the size of the instruction's type, except for shifts and
// mad.wide.
uint32_t number_bytes(const statement &read, const std::vector<text> &words, size_t index)
{
    text     first = words[0];
    uint32_t bytes = words.back().find_first_of("0123456789") == 1 ? bytes_of_type(words.back()) : 4;
    if (((first == "shl" || first == "shr") && index == 2) || (first == "bfi" && index >= 3)) {
        return 4;
    }
    if (first == "mad" && words[1] == "wide" && index == 3) {
        return 2 * bytes;
    }
    if (words.back() == "pred" && words.size() == 2) {
        return 0;
    }
    return first == "ld" || first == "st"                         ? std::max(bytes, 4u)
           : read.opcode.find("sync") != text::npos || bytes == 0 ? 4
                                                                  : bytes;
}

// Reads the operands in the order of the text, except that the address of a load comes first. An omitted operand is
// NONE.
void read_operands(reader *from, const statement &read, const std::vector<text> &words)
{
    std::vector<text> operands = read.operands;
    if (words[0] == "ld") {
        std::swap(operands[0], operands[1]);
    } else if (words[0] == "red") {
        from->units.push_back(NONE);
    }
    for (size_t i = 0; i < operands.size(); i++) {
        size_t bar = operands[i].find('|');
        read_operand(from, trim(operands[i].substr(0, bar)), number_bytes(read, words, i), read);
        if (bar != text::npos) {
            read_operand(from, trim(operands[i].substr(bar + 1)), 4, read);
        } else if (words[0] == "shfl" && i == 0) {
            from->units.push_back(NONE);
        }
    }
    if (from->units.size() > MOST_OPERANDS) {
        refuse(from, read.begin, read.line, "too many operands");
    }
    std::copy(from->units.begin(), from->units.end(), from->made.operands);
}

// Emulates mov.b64 {%r1, %r2}, %rd1 and its inverse, for parts of equal width.
template <typename Part> void pack(warp &w, const instruction &its)
{
    for (int i = 0; i < its.parts; i++) {
        const Part *from = w.lanes<Part>(its.operands[1 + i]);
        Part       *to   = w.lanes<Part>(its.operands[0]) + i;
        for_lanes(w.active, [&](int lane) { to[lane * its.parts] = from[lane]; });
    }
}
template <typename Part> void unpack(warp &w, const instruction &its)
{
    for (int i = 0; i < its.parts; i++) {
        const Part *from = w.lanes<Part>(its.operands[its.parts]) + i;
        if (its.operands[i] != NONE) {
            for_lanes(w.active, [&](int lane) { w.lanes<Part>(its.operands[i])[lane] = from[lane * its.parts]; });
        }
    }
}

void add_parts(reader *from, const statement &read, uint32_t bytes)
{
    bool         packs = read.operands[1][0] == '{';
    instruction *made  = &from->made;
    made->parts        = (uint8_t)(from->units.size() - 1);
    uint32_t part      = bytes / made->parts;
    made->run          = part == 4   ? (packs ? pack<uint32_t> : unpack<uint32_t>)
                         : part == 2 ? (packs ? pack<uint16_t> : unpack<uint16_t>)
                                     : NULL;
}

handler find_handler(const std::string &opcode)
{
    static const table all = []() {
        table made;
        add_arithmetic(made);
        add_exchange(made);
        add_late(made);
        return made;
    }();
    auto found = all.find(opcode);
    return found == all.end() ? NULL : found->second;
}

// Adds a conversion. It may read the low bytes of a wider register, or write a register that is wider than its type. It
// then becomes several instructions.
void add_conversion(reader *from, const std::vector<text> &words)
{
    auto is_wider = [&](int operand, text type) {
        return from->widths[(size_t)operand] > bytes_of_type(type) && (type[0] == 'u' || type[0] == 's');
    };
    auto opcode = [&](char sign, uint32_t to_bytes, uint32_t from_bytes) {
        return std::string("cvt.") + sign + std::to_string(8 * to_bytes) + "." + sign + std::to_string(8 * from_bytes);
    };
    text         to = words[words.size() - 2], source = words.back();
    instruction *made = &from->made;
    if (is_wider(1, source)) {
        instruction part = *made;
        part.run         = find_handler(opcode('u', bytes_of_type(source), from->widths[1]));
        part.operands[0] = made->operands[1] = take_units(from, 4);
        from->its->code.push_back(part);
    }
    if (is_wider(0, to)) {
        instruction part = *made;
        part.operands[0] = made->operands[1] = take_units(from, 4);
        from->its->code.push_back(part);
        made->run = find_handler(opcode(to[0], from->widths[0], bytes_of_type(to)));
    }
}

void add_branch(reader *from, const statement &read)
{
    instruction *made       = &from->made;
    made->run               = branch;
    made->operands[0]       = made->guard;
    made->guard             = NONE;
    made->is_negated_source = made->is_negated;
    from->branches.push_back({(uint32_t)from->its->code.size(), std::string(read.operands[0])});
}

void add_other(reader *from, const statement &read, const std::vector<text> &words)
{
    instruction *made  = &from->made;
    text         first = words[0];
    read_operands(from, read, words);
    if (first == "ld" || first == "st") {
        made->run       = find_access(words, bytes_of_type(words.back()));
        made->is_signed = words.back()[0] == 's';
        made->width     = (uint8_t)from->width;
    } else if (first == "mov" && (read.operands[0][0] == '{' || read.operands[1][0] == '{')) {
        add_parts(from, read, bytes_of_type(words.back()));
    } else if ((made->run = find_handler(std::string(read.opcode))) != NULL && first == "cvt") {
        add_conversion(from, words);
    }
    if (read.opcode == "cp.async.wait_all" || read.opcode == "cp.async.wait_group") {
        made->offset = read.operands.empty() ? -1 : atoi(std::string(read.operands[0]).c_str());
    }
}
typedef std::vector<uint32_t> list;

// Returns the possible successors of each instruction. The end of the kernel counts as an instruction after the last
// one.
std::vector<list> successors(const std::vector<instruction> &code)
{
    uint32_t          end = (uint32_t)code.size();
    std::vector<list> next(end + 1);
    for (uint32_t i = 0; i < end; i++) {
        bool is_branch = code[i].run == branch, leaves = code[i].run == leave;
        if (is_branch || leaves) {
            next[i].push_back(is_branch ? code[i].target : end);
        }
        if ((is_branch && code[i].operands[0] != NONE) || (leaves && code[i].guard != NONE) ||
            (!is_branch && !leaves)) {
            next[i].push_back(i + 1);
        }
    }
    return next;
}

// Returns a post-order of the reversed graph: an instruction comes after its predecessors, and the end is last.
list order_backwards(const std::vector<list> &next)
{
    std::vector<list> before(next.size());
    for (uint32_t i = 0; i < next.size(); i++) {
        for (uint32_t to : next[i]) {
            before[to].push_back(i);
        }
    }
    list              order, stack = {(uint32_t)next.size() - 1};
    std::vector<char> seen(next.size(), 0);
    while (!stack.empty()) {
        uint32_t at  = stack.back();
        seen[at]     = 1;
        bool is_done = true;
        while (is_done && !before[at].empty()) {
            uint32_t from = before[at].back();
            before[at].pop_back();
            if (!seen[from]) {
                stack.push_back(from);
                is_done = false;
            }
        }
        if (is_done) {
            order.push_back(at);
            stack.pop_back();
        }
    }
    return order;
}

// Finds where the lanes join again after each branch, which is its immediate post-dominator. The method is from K.
// Cooper, T. Harvey and K. Kennedy, "A Simple, Fast Dominance Algorithm", applied to the reversed graph of
// instructions.
void find_joins(kernel *of)
{
    std::vector<list> next  = successors(of->code);
    list              order = order_backwards(next), number(next.size(), NONE), join(next.size(), NONE);
    for (uint32_t i = 0; i < order.size(); i++) {
        number[order[i]] = i;
    }
    uint32_t end = (uint32_t)next.size() - 1;
    join[end]    = end;
    for (bool changes = true; changes;) {
        changes = false;
        for (auto at = order.rbegin() + 1; at != order.rend(); ++at) {
            uint32_t found = NONE;
            for (uint32_t to : next[*at]) {
                if (join[to] == NONE) {
                    continue;
                }
                uint32_t other = found == NONE ? to : found;
                for (found = to; found != other;) {
                    uint32_t &lower = number[found] < number[other] ? found : other;
                    lower           = join[lower];
                }
            }
            changes   = changes || join[*at] != found;
            join[*at] = found;
        }
    }
    for (uint32_t i = 0; i < end; i++) {
        if (of->code[i].run == branch) {
            of->code[i].join = join[i] == end ? NONE : join[i];
        }
    }
}
}    // namespace

named make_register(reader *from, scope *its, const std::string &name, uint32_t bytes)
{
    return its->registers[name] = {bytes == 0 ? from->its->predicates++ : take_units(from, bytes), bytes};
}

void add_instruction(reader *from, const statement &read)
{
    std::vector<text> words = split(read.opcode, '.');
    instruction      *made  = &from->made;
    *made                   = {};
    made->guard = made->target = made->join = NONE;
    made->text                              = read.begin;
    made->line                              = read.line;
    std::fill(made->operands, made->operands + MOST_OPERANDS, NONE);
    from->units.clear();
    from->widths.clear();
    if (!read.guard.empty()) {
        made->is_negated = read.guard[0] == '!';
        made->guard      = find_register(from, read.guard.substr(made->is_negated)).unit;
    }
    if (words[0] == "bra") {
        add_branch(from, read);
    } else {
        add_other(from, read, words);
    }
    if (made->run == NULL) {
        refuse(from, read.begin, read.line, "an instruction that the interpreter does not know");
    }
    from->its->code.push_back(*made);
}

void finish_kernel(reader *from)
{
    for (const auto &[index, label] : from->branches) {
        instruction &its   = from->its->code[index];
        auto         found = from->labels.find(label);
        if (found == from->labels.end()) {
            refuse(from, its.text, its.line, "a label that is nowhere");
        }
        its.target = found->second;
    }
    find_joins(from->its);
}
}    // namespace ptx
