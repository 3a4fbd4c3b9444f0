// SPDX-License-Identifier: MIT
// From statements to instructions: registers get places in the file of a warp, numbers become registers that a launch
// fills, opcodes become functions.
#include "read.h"

#include <stdlib.h>

#include <algorithm>

namespace ptx
{
namespace
{
uint32_t find_constant(reader *from, uint64_t value, uint32_t bytes)
{
    if (bytes == 0) {
        return value != 0;    // predicates 0 and 1
    }
    std::string key   = std::to_string(value) + "/" + std::to_string(bytes);
    auto        found = from->constants.find(key);
    if (found == from->constants.end()) {
        uint32_t unit = from->its->units;
        from->its->units += bytes == 8 ? 2 : 1;
        from->its->constants.push_back({unit, bytes, value});
        found = from->constants.insert({key, unit}).first;
    }
    from->width = bytes;
    return found->second;
}

named make_register(reader *from, scope *its, const std::string &name, uint32_t bytes)
{
    uint32_t unit;
    if (bytes == 0) {
        unit = from->its->predicates++;
    } else {
        unit = from->its->units;
        from->its->units += bytes == 8 ? 2 : 1;
    }
    return its->registers[name] = {unit, bytes};
}

named find_special(reader *from, const std::string &name)
{
    static const char *known[] = {"%tid.", "%ntid.", "%ctaid.", "%nctaid.", "%laneid", "%lanemask_lt", "%lanemask_eq"};
    for (const char *each : known) {
        if (name.compare(0, strlen(each), each) == 0) {
            named made = make_register(from, &from->scopes.front(), name, 4);
            from->its->special.push_back({name, made.unit, 4});
            return made;
        }
    }
    return {NONE, NONE};
}

// By its name, in the innermost scope that has it. bytes NONE: there is none.
named find_register(reader *from, text of)
{
    std::string name(of), stem(of.substr(0, of.find_last_not_of("0123456789") + 1));
    for (auto its = from->scopes.rbegin(); its != from->scopes.rend(); ++its) {
        auto found = its->registers.find(name);
        if (found != its->registers.end()) {
            return found->second;
        }
        auto whole = its->families.find(name), family = its->families.find(stem);
        if (whole != its->families.end()) {
            return make_register(from, &*its, name, whole->second.bytes);
        }
        if (family != its->families.end() && family->second.count != NONE) {
            return make_register(from, &*its, name, family->second.bytes);
        }
    }
    return find_special(from, name);
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

// [register + number], [array + number], [parameter + number].
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
        from->made.is_narrow = found.bytes == 4;
    }
    if (from->made.offset != 0 || offset != (int32_t)offset) {
        refuse(from, read.begin, read.line, "an offset too many");
    }
    from->made.offset = (int32_t)offset;
}

// Adds the units of an operand; bytes: of a number.
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

// The bytes of numbers that an instruction takes as operand index: of its type, but for shifts and wide sums.
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

void read_operands(reader *from, const statement &read, const std::vector<text> &words)
{
    from->units.clear();
    from->widths.clear();
    for (size_t i = 0; i < read.operands.size(); i++) {
        text   of  = read.operands[i];
        size_t bar = of.find('|');
        read_operand(from, trim(of.substr(0, bar)), number_bytes(read, words, i), read);
        if (bar != text::npos) {
            read_operand(from, trim(of.substr(bar + 1)), 4, read);
        } else if (words[0] == "shfl" && i == 0) {
            from->units.push_back(NONE);
        }
    }
}

uint32_t unit_at(const reader *from, size_t index)
{
    return index < from->units.size() ? from->units[index] : NONE;
}

// ld and st: which space, how many elements of how many bytes; the rest of the words is for caches.
void add_access(reader *from, const statement &read, const std::vector<text> &words)
{
    static const char *const spaces[] = {"global", "shared", "local"};
    instruction             *made     = &from->made;
    int                      where = 3, count = 1, size = (int)bytes_of_type(words.back());
    for (text word : words) {
        for (int i = 0; i < 3; i++) {
            where = word == spaces[i] ? i : where;
        }
        count = word == "v2" ? 2 : word == "v4" ? 4 : count;
    }
    bool is_store   = words[0] == "st";
    made->is_signed = words.back()[0] == 's';
    text parameter  = words.size() > 1 ? words[1] : text();
    read_operand(from, read.operands[is_store ? 0 : 1], 8, read);
    made->a = from->units[0];
    from->units.clear();
    read_operand(from, read.operands[is_store ? 1 : 0], std::max(4u, (uint32_t)size), read);
    made->run   = parameter == "param" && !is_store ? load_parameter : find_access(is_store, where, size, count);
    made->b     = (uint32_t)count;
    made->c     = (uint32_t)size;
    made->width = (uint8_t)from->width;
}

// Parts of a register, of equal width: mov.b64 {%r1, %r2}, %rd1, and back.
template <typename Whole, typename Part> void pack(warp &w, const instruction &its)
{
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        int   lane = __builtin_ctz(left);
        Part  parts[sizeof(Whole) / sizeof(Part)];
        Whole whole;
        for (size_t i = 0; i < sizeof(Whole) / sizeof(Part); i++) {
            parts[i] = w.lanes<Part>(w.code->operands[its.more + 1 + i])[lane];
        }
        memcpy(&whole, parts, sizeof(whole));
        w.lanes<Whole>(its.to)[lane] = whole;
    }
}
template <typename Whole, typename Part> void unpack(warp &w, const instruction &its)
{
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        for (size_t i = 0; i < sizeof(Whole) / sizeof(Part); i++) {
            uint32_t to = w.code->operands[its.more + i];
            if (to != NONE) {
                w.lanes<Part>(to)[lane] = (Part)(w.lanes<Whole>(its.b)[lane] >> 8 * sizeof(Part) * i);
            }
        }
    }
}

void add_parts(reader *from, const statement &read, uint32_t bytes)
{
    bool   packs = read.operands[1][0] == '{';
    size_t parts = from->units.size() - 1;
    from->made.b = from->units.back();
    if (bytes == 8) {
        from->made.run = parts == 2 ? (packs ? pack<uint64_t, uint32_t> : unpack<uint64_t, uint32_t>)
                                    : (packs ? pack<uint64_t, uint16_t> : unpack<uint64_t, uint16_t>);
    } else if (bytes == 4 && parts == 2) {
        from->made.run = packs ? pack<uint32_t, uint16_t> : unpack<uint32_t, uint16_t>;
    }
}

std::string sized(char sign, uint32_t bytes)
{
    return sign + std::to_string(8 * bytes);
}

void push(reader *from, const instruction &made)
{
    from->its->code.push_back(made);
}

// A conversion may take the low bytes of a register, and fill one that is wider than its type: then it is made of
// several.
void add_conversion(reader *from, const std::vector<text> &words)
{
    text        to = words[words.size() - 2], source = words.back();
    instruction part = from->made;
    if (from->widths[1] > bytes_of_type(source) && (source[0] == 'u' || source[0] == 's')) {
        part.run = find_arithmetic("cvt." + sized('u', bytes_of_type(source)) + "." + sized('u', from->widths[1]));
        part.to = from->made.a = make_register(from, &from->scopes.front(), "", 4).unit;
        push(from, part);
    }
    if (from->widths[0] > bytes_of_type(to) && (to[0] == 'u' || to[0] == 's')) {
        part    = from->made;
        part.to = make_register(from, &from->scopes.front(), "", 4).unit;
        push(from, part);
        from->made.run =
            find_arithmetic("cvt." + sized(to[0], from->widths[0]) + "." + sized(to[0], bytes_of_type(to)));
        from->made.a = part.to;
    }
}

// Where all operands stand in their order, those of most instructions in fields as well.
void add_plain(reader *from, const statement &read, const std::vector<text> &words)
{
    instruction *made = &from->made;
    std::string  opcode(read.opcode);
    bool         has_target = words[0] != "red" && opcode.compare(0, 8, "cp.async") != 0;
    read_operands(from, read, words);
    made->to = has_target ? unit_at(from, 0) : NONE;
    made->a  = unit_at(from, has_target);
    made->b  = unit_at(from, has_target + 1u);
    made->c  = unit_at(from, has_target + 2u);
    if ((made->run = find_arithmetic(opcode)) != NULL) {
        made->more = 4;
        made->b    = made->b == NONE ? made->a : made->b;
    } else if ((made->run = find_exchange(opcode)) != NULL) {
        made->a = words[0] == "ldmatrix" ? from->units.back() : made->a;
    } else {
        made->run = find_late(opcode);
        made->c   = opcode.find("cp.async") == 0 ? unit_at(from, 3) : made->c;
        if (opcode == "cp.async.wait_all" || opcode == "cp.async.wait_group") {
            made->offset = read.operands.empty() ? -1 : atoi(std::string(read.operands[0]).c_str());
        }
    }
    if (words[0] == "cvt" && made->run != NULL) {
        add_conversion(from, words);
    }
    if (words[0] == "mov" && (read.operands[0][0] == '{' || read.operands[1][0] == '{')) {
        made->more = 0;
        add_parts(from, read, bytes_of_type(words.back()));
    }
}
}    // namespace

void add_instruction(reader *from, const statement &read)
{
    std::vector<text> words = split(read.opcode, '.');
    instruction      *made  = &from->made;
    *made                   = {};
    made->to = made->a = made->b = made->c = made->guard = NONE;
    made->target = made->join = NONE;
    made->text                = read.begin;
    made->line                = read.line;
    from->units.clear();
    if (!read.guard.empty()) {
        bool is_negated  = read.guard[0] == '!';
        made->guard      = find_register(from, read.guard.substr(is_negated)).unit;
        made->is_negated = is_negated;
    }
    if (words[0] == "bra") {
        made->run               = branch;
        made->a                 = made->guard;
        made->guard             = NONE;
        made->is_negated_source = made->is_negated;
        from->branches.push_back({(uint32_t)from->its->code.size(), std::string(read.operands[0])});
    } else if (words[0] == "ld" || words[0] == "st") {
        add_access(from, read, words);
    } else {
        add_plain(from, read, words);
    }
    if (made->run == NULL) {
        refuse(from, read.begin, read.line, "an instruction that the interpreter does not know");
    }
    made->more += (uint32_t)from->its->operands.size();
    from->its->operands.insert(from->its->operands.end(), from->units.begin(), from->units.end());
    from->its->code.push_back(*made);
}

void finish_kernel(reader *from)
{
    for (const auto &each : from->branches) {
        auto found = from->labels.find(each.second);
        if (found == from->labels.end()) {
            refuse(from, from->its->code[each.first].text, from->its->code[each.first].line, "a label that is nowhere");
        }
        from->its->code[each.first].target = found->second;
    }
    find_joins(from->its);
}
}    // namespace ptx
