// SPDX-License-Identifier: MIT
// Reads a kernel from PTX text: its parameters, its declarations, and its statements one by one.
#include "read.h"

#include <stdlib.h>

#include <algorithm>

namespace ptx
{
namespace
{
enum { GAP = 256 };    // bytes between arrays of shared memory

void skip_space(reader *from)
{
    for (; from->at < from->end; from->at++) {
        if (from->at[0] == '/' && from->at[1] == '/') {
            from->at = strchr(from->at, '\n');
        }
        if (!isspace((unsigned char)*from->at)) {
            return;
        }
        from->line += *from->at == '\n';
    }
}

bool is_word(char of)
{
    return isalnum((unsigned char)of) || of == '_' || of == '$' || of == '%';
}

// Reads a declaration such as .shared .align 8 .b8 NAME[256] or .param .u64 NAME. `bytes` is 0 for dynamic shared
// memory.
variable read_variable(text words)
{
    variable found  = {"", 0, 0, 0};
    uint32_t length = 1;
    size_t   open   = words.find('[');
    if (open != text::npos) {
        length = (uint32_t)atoi(std::string(words.substr(open + 1)).c_str());
        words  = words.substr(0, open);
    }
    std::vector<text> parts = split(words, ' ');
    for (size_t i = 0; i < parts.size(); i++) {
        if (parts[i] == ".align") {
            found.alignment = (uint32_t)atoi(std::string(parts[i + 1]).c_str());
        } else if (parts[i][0] == '.' && parts[i].size() <= 4) {
            found.bytes = bytes_of_type(parts[i].substr(1)) * length;
        }
    }
    found.name      = parts.back();
    found.alignment = found.alignment != 0 ? found.alignment : found.bytes;
    return found;
}

void read_parameters(reader *from, text list)
{
    uint32_t end = 0;
    for (text each : split(list, ',')) {
        variable found            = read_variable(each);
        found.offset              = (end + found.alignment - 1) / found.alignment * found.alignment;
        end                       = found.offset + found.bytes;
        from->symbols[found.name] = found.offset;
        from->its->parameters.push_back(found);
    }
    from->its->parameter_bytes = end;
}

// Places an array in shared memory. Arrays have gaps between them, and dynamic shared memory comes last.
void read_shared(reader *from, variable found)
{
    found.offset = found.bytes == 0 ? (uint32_t)DYNAMIC_AT : from->shared_end;
    from->shared_end += (found.bytes == 0 ? 0 : found.bytes + 2 * GAP - 1) / GAP * GAP;
    from->its->shared_bytes += (found.bytes + 15) / 16 * 16;
    from->symbols[found.name] = SHARED_START + found.offset;
    from->its->shared.push_back(found);
}

void read_registers(reader *from, text words)
{
    size_t   space = words.find_first_of(" \t");
    uint32_t bytes = bytes_of_type(words.substr(1, space - 1));
    for (text each : split(words.substr(space), ',')) {
        size_t      open = each.find('<');
        std::string name(each.substr(0, open));
        if (open != text::npos) {
            from->scopes.back().families[name] = bytes;
        } else {
            make_register(from, &from->scopes.back(), name, bytes);
        }
    }
}

// Reads a statement. Returns false at the end of the kernel.
bool read_statement(reader *from, statement *read)
{
    skip_space(from);
    read->begin = from->at;
    read->line  = from->line;
    if (*from->at == '{' || *from->at == '}') {
        if (*from->at++ == '{') {
            from->scopes.push_back({});
        } else {
            from->scopes.pop_back();
        }
        read->opcode = "";
        return !from->scopes.empty();
    }
    const char *end = from->at;
    while (is_word(*end)) {
        end++;
    }
    if (*end == ':' && end[1] != ':') {
        from->labels[std::string(from->at, end)] = (uint32_t)from->its->code.size();
        from->at                                 = end + 1;
        read->opcode                             = "";
        return true;
    }
    for (end = from->at; end < from->end && *end != ';'; end++) {
        from->line += *end == '\n';
    }
    text whole  = trim(text(from->at, (size_t)(end - from->at)));
    from->at    = end + 1;
    read->guard = read->opcode = "";
    if (whole.empty()) {
        return true;
    }
    if (whole[0] == '@') {
        size_t space = whole.find_first_of(" \t");
        read->guard  = whole.substr(1, space - 1);
        whole        = trim(whole.substr(space));
        read->begin  = whole.data();
    }
    size_t space   = whole.find_first_of(" \t");
    read->opcode   = whole.substr(0, space);
    read->operands = space == text::npos ? std::vector<text>() : split(whole.substr(space), ',');
    if (whole[0] == '.') {
        read->opcode = "";
        read_directive(from, whole);
    }
    return true;
}

void read_limits(reader *from, text directives)
{
    size_t at              = directives.find(".maxntid");
    from->its->max_threads = 1024;
    if (at != text::npos) {
        from->its->max_threads = 1;
        for (text each : split(directives.substr(at + 8, directives.find('\n', at) - at - 8), ',')) {
            from->its->max_threads *= (uint32_t)atoi(std::string(each).c_str());
        }
    }
}
}    // namespace

text trim(text of)
{
    size_t first = of.find_first_not_of(" \t\n"), last = of.find_last_not_of(" \t\n");
    return first == text::npos ? text() : of.substr(first, last - first + 1);
}

std::vector<text> split(text of, char separator)
{
    std::vector<text> parts;
    int               depth = 0;
    size_t            begin = 0;
    for (size_t i = 0; i <= of.size(); i++) {
        bool is_end = i == of.size() ||
                      (depth == 0 && (of[i] == separator || (separator == ' ' && isspace((unsigned char)of[i]))));
        if (is_end) {
            text part = trim(of.substr(begin, i - begin));
            if (!part.empty()) {
                parts.push_back(part);
            }
            begin = i + 1;
        } else {
            depth += (of[i] == '{' || of[i] == '[') - (of[i] == '}' || of[i] == ']');
        }
    }
    return parts;
}

uint32_t bytes_of_type(text type)
{
    return type == "pred" ? 0 : (uint32_t)atoi(std::string(type.substr(1)).c_str()) / 8;
}

void read_directive(reader *from, text words)
{
    text name = words.substr(0, words.find_first_of(" \t"));
    if (name == ".reg") {
        read_registers(from, trim(words.substr(4)));
    } else if (name == ".shared") {
        read_shared(from, read_variable(words.substr(name.size())));
    } else if (name == ".local") {
        variable found            = read_variable(words.substr(name.size()));
        from->its->local_bytes    = found.bytes;
        from->symbols[found.name] = LOCAL_START;
    } else if (name != ".pragma") {
        refuse(from, words.data(), from->line, "a directive that is not known");
    }
}

void refuse(const reader *from, const char *begin, uint32_t line, const char *why)
{
    fail_kernel(from->its->name.c_str(), line, begin, "%s", why);
}

// Reads the parameters, limits and shared arrays of the kernel, and stops at the start of its code.
static void read_body(reader *from, text module)
{
    text   own(from->its->text);
    size_t open = own.find('('), close = own.find("\n)"), body = own.find("\n{");
    read_parameters(from, own.substr(open + 1, close - open - 1));
    read_limits(from, own.substr(close + 1, body - close));
    for (size_t at = module.find(".shared "); at != text::npos; at = module.find(".shared ", at + 1)) {
        variable found = read_variable(module.substr(at + 7, module.find(';', at) - at - 7));
        bool     is_by_all =
            // Arrays that all kernels can use are declared before them.
            module[at - 1] == '\n' || module.substr(at - 8, 8) == ".extern ";
        if (is_by_all && own.find(found.name) != text::npos) {
            read_shared(from, found);
        }
    }
    from->at  = own.data() + body + 1;
    from->end = own.data() + own.size();
    from->line += (uint32_t)std::count(own.begin(), own.begin() + (long)body + 1, '\n');
}

kernel *read_kernel(text module, const std::string &name)
{
    size_t at = module.find(".entry " + name + "("), end = module.find(".entry ", at + 1);
    if (at == text::npos) {
        fail_kernel(name.c_str(), 0, "", "its module has no such entry");
    }
    kernel   *made   = new kernel{};
    reader    from   = {};
    statement read   = {};
    made->name       = name;
    made->text       = mutate(name, std::string(module.substr(at, end - at)));
    from.its         = made;
    made->predicates = 2;    // for the constants false and true
    from.line        = 1 + (uint32_t)std::count(module.begin(), module.begin() + (long)at, '\n');
    read_body(&from, module);
    while (read_statement(&from, &read)) {
        if (!read.opcode.empty()) {
            add_instruction(&from, read);
        }
    }
    finish_kernel(&from);
    made->reached = keep_reached(name, made->code.size());
    return made;
}
}    // namespace ptx
