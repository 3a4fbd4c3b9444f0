// SPDX-License-Identifier: MIT
// Where the ways of a branch meet: the immediate post-dominator of its block, by K. Cooper, T. Harvey and K. Kennedy,
// "A Simple, Fast Dominance Algorithm", on the graph with its edges reversed.
#include "ptx.h"

#include <algorithm>

namespace ptx
{
namespace
{
struct flow {
    std::vector<uint32_t>              first, block_of;        // instruction of a block, block of an instruction
    std::vector<std::vector<uint32_t>> next, before;           // blocks; the last one is the end
    std::vector<uint32_t>              order, number, join;    // from the end on; place in it; post-dominator
};

bool may_leave(const instruction &its)
{
    return its.run == leave;
}

void split_blocks(flow *its, const std::vector<instruction> &code)
{
    std::vector<char> begins(code.size() + 1, 0);
    begins[0] = 1;
    for (size_t i = 0; i < code.size(); i++) {
        if (code[i].run == branch || may_leave(code[i])) {
            begins[i + 1] = 1;
        }
        if (code[i].run == branch) {
            begins[code[i].target] = 1;
        }
    }
    for (size_t i = 0; i < code.size(); i++) {
        if (begins[i]) {
            its->first.push_back((uint32_t)i);
        }
        its->block_of.push_back((uint32_t)its->first.size() - 1);
    }
}

void connect(flow *its, const std::vector<instruction> &code)
{
    uint32_t blocks = (uint32_t)its->first.size();
    its->next.resize(blocks + 1);
    its->before.resize(blocks + 1);
    for (uint32_t i = 0; i < blocks; i++) {
        uint32_t           end       = i + 1 < blocks ? its->first[i + 1] : (uint32_t)code.size();
        const instruction &last      = code[end - 1];
        bool               is_branch = last.run == branch, leaves = may_leave(last);
        if (is_branch) {
            its->next[i].push_back(its->block_of[last.target]);
        }
        if (leaves) {
            its->next[i].push_back(blocks);
        }
        if ((is_branch && last.a != NONE) || (leaves && last.guard != NONE) || (!is_branch && !leaves)) {
            its->next[i].push_back(i + 1);
        }
        for (uint32_t to : its->next[i]) {
            its->before[to].push_back(i);
        }
    }
}

// Blocks after those that come after them, as far as the end is reached.
void order_blocks(flow *its)
{
    uint32_t                                   blocks = (uint32_t)its->next.size();
    std::vector<std::pair<uint32_t, uint32_t>> stack  = {{blocks - 1, 0}};
    std::vector<char>                          seen(blocks, 0);
    its->number.assign(blocks, NONE);
    seen[blocks - 1] = 1;
    while (!stack.empty()) {
        auto &[block, at] = stack.back();
        if (at < its->before[block].size()) {
            uint32_t to = its->before[block][at++];
            if (!seen[to]) {
                seen[to] = 1;
                stack.push_back({to, 0});
            }
        } else {
            its->number[block] = (uint32_t)its->order.size();
            its->order.push_back(block);
            stack.pop_back();
        }
    }
}

uint32_t meet(const flow &its, uint32_t a, uint32_t b)
{
    while (a != b) {
        while (its.number[a] < its.number[b]) {
            a = its.join[a];
        }
        while (its.number[b] < its.number[a]) {
            b = its.join[b];
        }
    }
    return a;
}

void find_post_dominators(flow *its)
{
    uint32_t end = (uint32_t)its->next.size() - 1;
    its->join.assign(its->next.size(), NONE);
    its->join[end] = end;
    for (bool changes = true; changes;) {
        changes = false;
        for (auto block = its->order.rbegin() + 1; block != its->order.rend(); ++block) {
            uint32_t found = NONE;
            for (uint32_t to : its->next[*block]) {
                if (its->join[to] != NONE) {
                    found = found == NONE ? to : meet(*its, found, to);
                }
            }
            changes           = changes || its->join[*block] != found;
            its->join[*block] = found;
        }
    }
}
}    // namespace

void find_joins(kernel *of)
{
    flow its;
    split_blocks(&its, of->code);
    connect(&its, of->code);
    order_blocks(&its);
    find_post_dominators(&its);
    for (size_t i = 0; i < of->code.size(); i++) {
        if (of->code[i].run == branch) {
            uint32_t join    = its.join[its.block_of[i]];
            of->code[i].join = join == NONE || join + 1 == its.next.size() ? NONE : its.first[join];
        }
    }
}
}    // namespace ptx
