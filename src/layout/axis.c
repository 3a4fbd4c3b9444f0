// SPDX-License-Identifier: MIT
// Defines the table of parallel axes from AXES, and computes coordinates of ranks and groups of ranks along axes.

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

void mesh_coordinates(const struct mesh *mesh, int64_t rank, int64_t coordinates[AXIS_COUNT])
{
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        coordinates[axis] = rank % mesh->size[axis];
        rank /= mesh->size[axis];
    }
}

int64_t mesh_rank(const struct mesh *mesh, const int64_t coordinates[AXIS_COUNT])
{
    int64_t rank = 0;
    for (int axis = AXIS_COUNT - 1; axis >= 0; axis--) {
        rank = rank * mesh->size[axis] + coordinates[axis];
    }
    return rank;
}

int64_t mesh_stride(const struct mesh *mesh, enum axis axis)
{
    return mesh_group_size(mesh, (1u << axis) - 1);
}

void mesh_share_heads(struct mesh *mesh, int64_t kv_heads)
{
    int64_t tp        = mesh->size[AXIS_TP];
    mesh->head_copies = kv_heads > 0 && tp > kv_heads ? tp / kv_heads : 0;
}

static int64_t copies_of(const struct mesh *mesh, uint32_t axes)
{
    return (axes & MESH_HEAD_COPIES) != 0 && mesh->head_copies > 0 ? mesh->head_copies : 1;
}

int64_t mesh_group_size(const struct mesh *mesh, uint32_t axes)
{
    int64_t size = copies_of(mesh, axes);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        size *= axes >> axis & 1u ? mesh->size[axis] : 1;
    }
    return size;
}

// Counts through the coordinates on the axes of the mask, with the first axis fastest. So ranks are listed in ascending
// order.
void mesh_group_ranks(const struct mesh *mesh, int64_t rank, uint32_t axes, int64_t *ranks)
{
    int64_t size = mesh_group_size(mesh, axes), copies = copies_of(mesh, axes);
    int64_t coordinates[AXIS_COUNT];
    mesh_coordinates(mesh, rank, coordinates);
    int64_t first = coordinates[AXIS_TP] / copies * copies;
    for (int64_t member = 0; member < size; member++) {
        int64_t digits       = member / copies;
        coordinates[AXIS_TP] = copies > 1 ? first + member % copies : coordinates[AXIS_TP];
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            if (axes >> axis & 1u) {
                coordinates[axis] = digits % mesh->size[axis];
                digits /= mesh->size[axis];
            }
        }
        ranks[member] = mesh_rank(mesh, coordinates);
    }
}

int64_t mesh_group_index(const struct mesh *mesh, int64_t rank, uint32_t axes)
{
    int64_t coordinates[AXIS_COUNT];
    mesh_coordinates(mesh, rank, coordinates);
    int64_t index = 0;
    for (int axis = AXIS_COUNT - 1; axis >= 0; axis--) {
        if (axes >> axis & 1u) {
            index = index * mesh->size[axis] + coordinates[axis];
        }
    }
    int64_t copies = copies_of(mesh, axes);
    return index * copies + coordinates[AXIS_TP] % copies;
}
