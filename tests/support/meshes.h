// SPDX-License-Identifier: MIT
// Makes meshes from the axes that a test needs; all other axes have one rank.
#pragma once

#include "gswbench/mesh.h"

// A mesh of one rank, for constant initializers.
#define MESH_ONE(NAME, ...) 1,
#define MESH_OF_ONE_RANK                                                                                               \
    {                                                                                                                  \
        .world = 1, .size = {AXES(MESH_ONE)}, .asked = {AXES(MESH_ONE)}, .etp = 1, .vp = 1                             \
    }

// Returns a mesh of these sizes. An axis with size 0 gets one rank.
struct mesh mesh_of(const struct parallel_config *sizes);
#define MESH(...) mesh_of(&(struct parallel_config){__VA_ARGS__})
