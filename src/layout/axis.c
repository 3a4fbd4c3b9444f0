// SPDX-License-Identifier: MIT
// Makes a table of the axes in mesh.h, and looks axes up in it.

#include <stdio.h>
#include <string.h>

#include "gswbench/mesh.h"

// clang-format off
#define ROW(NAME, key, option, maximum, help, ...) \
    [AXIS_##NAME] = {.name = #key, .field = offsetof(struct parallel_config, key), __VA_ARGS__},
const struct axis_row axis_rows[AXIS_COUNT] = {AXES(ROW)};

#define LISTED(NAME, ...) AXIS_##NAME,
const enum axis axis_listed[] = {AXES(LISTED)};
// clang-format on

enum axis axis_shown(int place)
{
    int axis = 0;
    while (axis_rows[axis].shown != place) {
        axis++;
    }
    return (enum axis)axis;
}

const char *axis_names(uint32_t axes, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", (axes & MESH_HEAD_COPIES) != 0 ? "copies" : "");
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (axes & (1u << axis)) {
            size_t length = strlen(text);
            snprintf(text + length, bytes - length, "%s%s", length > 0 ? " x " : "", axis_rows[axis].name);
        }
    }
    return text;
}

enum axis axis_claims(uint32_t axes)
{
    int first = AXIS_COUNT;
    axes |= (axes & MESH_HEAD_COPIES) != 0 ? 1u << AXIS_TP : 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        bool is_asked = (axes >> axis & 1u) != 0;
        if (is_asked && (first == AXIS_COUNT || axis_rows[axis].claim < axis_rows[first].claim)) {
            first = axis;
        }
    }
    return (enum axis)first;
}

uint32_t axis_sharing(uint32_t shares)
{
    uint32_t axes = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        axes |= (axis_rows[axis].shares & shares) != 0 ? 1u << axis : 0;
    }
    return axes;
}
