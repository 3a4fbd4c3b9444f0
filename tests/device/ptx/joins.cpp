// SPDX-License-Identifier: MIT
// Where the ways of a branch meet: the immediate post-dominator of the branch, by K. Cooper, T. Harvey and K. Kennedy,
// "A Simple, Fast Dominance Algorithm", on the graph of instructions with its edges reversed.
#include "ptx.h"

namespace ptx
{
namespace
{
typedef std::vector<uint32_t> list;

// The instructions that may be executed after each one. The end comes after the last one.
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

// Each instruction after those that come after it, as far as the end can be reached: the end is the last.
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
}    // namespace

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
}    // namespace ptx
