// SPDX-License-Identifier: MIT
// Searches the ops of a plan.
#include "plan_ops.h"

#include <string.h>

#include "gswbench/fatal.h"

int32_t find_op(const struct plan *plan, const char *role, int layer, int microbatch)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op_tag *tag = &plan->ops[i].tag;
        if (strcmp(tag->role, role) == 0 && (layer == ANY || tag->layer == layer) &&
            (microbatch == ANY || tag->microbatch == microbatch)) {
            return i;
        }
    }
    FATAL(EXIT_INTERNAL, "rank %lld has no op %s in layer %d, microbatch %d", (long long)plan->rank, role, layer,
          microbatch);
}

int count_ops(const struct plan *plan, enum op_kind kind, int phase)
{
    int count = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        count += plan->ops[i].kind == kind && (phase == ANY || plan->ops[i].tag.phase == phase);
    }
    return count;
}

char *list_roles(const struct plan *plan, int phase, int layer)
{
    static char text[1024];
    text[0] = '\0';
    for (int32_t i = 0; i < plan->op_count; i++) {
        if (plan->ops[i].tag.phase == phase && plan->ops[i].tag.layer == layer) {
            strcat(text, text[0] != '\0' ? "," : "");
            strcat(text, plan->ops[i].tag.role);
        }
    }
    return text;
}
