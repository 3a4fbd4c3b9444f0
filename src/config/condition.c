// SPDX-License-Identifier: MIT
// Parses and matches the conditions of [when ...] sections: rank count, precision, gpu, variant.
#include "internal.h"

#include <string.h>

#include "gswbench/number.h"

// Fails if the name is empty or already set.
static bool add_name(struct document *document, const char **name, const char *text)
{
    bool is_first = *name == NULL && text[0] != '\0';
    *name         = arena_format(&document->arena, "%s", text);
    return is_first;
}

// Parses "ranks=512", "precision=fp8", "gpu=b200" or "variant=compiled"; each at most once.
static bool add_term(struct document *document, struct condition *condition, const char *term)
{
    int64_t ranks;
    if (strncmp(term, "gpu=", 4) == 0) {
        return add_name(document, &condition->gpu, term + 4);
    }
    if (strncmp(term, "variant=", 8) == 0) {
        return add_name(document, &condition->variant, term + 8);
    }
    if (strncmp(term, "ranks=", 6) == 0) {
        if (condition->ranks != 0 || !number_parse_integer(term + 6, &ranks) || ranks < 1) {
            return false;
        }
        condition->ranks = ranks;
        return true;
    }
    if (strncmp(term, "precision=", 10) != 0 || condition->compute >= 0) {
        return false;
    }
    for (int64_t i = 0; precision_compute_names[i] != NULL; i++) {
        if (strcmp(precision_compute_names[i], term + 10) == 0) {
            condition->compute = i;
            return true;
        }
    }
    return false;
}

bool condition_parse(struct document *document, char *terms, struct condition *condition)
{
    static const char blanks[] = " \t\r\f\v";
    *condition                 = (struct condition){.ranks = 0, .compute = -1};
    char *rest;
    char *term = strtok_r(terms, blanks, &rest);
    bool  good = term != NULL;
    for (; good && term != NULL; term = strtok_r(NULL, blanks, &rest)) {
        good = add_term(document, condition, term);
    }
    return good;
}

bool condition_matches(const struct condition *condition, const struct selection *selection)
{
    return (condition->ranks == 0 || condition->ranks == selection->ranks) &&
           (condition->compute < 0 || condition->compute == selection->compute) &&
           (condition->gpu == NULL || strcmp(condition->gpu, selection->gpu) == 0) &&
           (condition->variant == NULL || strcmp(condition->variant, selection->variant) == 0);
}

bool document_names_gpu(const struct document *document, const char *gpu)
{
    for (int i = 0; i < document->condition_count; i++) {
        if (document->conditions[i].gpu != NULL && strcmp(document->conditions[i].gpu, gpu) == 0) {
            return true;
        }
    }
    return false;
}

void condition_check_variant(struct document *document, const char *variant)
{
    const char      *all = "";
    struct selection own = document_select(document, NULL);
    for (int i = 0; i < document->condition_count; i++) {
        const char *name = document->conditions[i].variant;
        if (name != NULL && strcmp(name, variant) == 0) {
            return;
        }
        if (name != NULL && strstr(all, arena_format(&document->arena, " %s,", name)) == NULL) {
            all = arena_format(&document->arena, "%s %s,", all, name);
        }
    }
    if (strcmp(variant, own.variant) != 0) {
        document_error(document, "[published] variant = %s: no [when variant=...] section has this name%s%.*s", variant,
                       all[0] != '\0' ? "; there are" : "", (int)(all[0] != '\0' ? strlen(all) - 1 : 0), all);
    }
}
