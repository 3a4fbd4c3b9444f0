// SPDX-License-Identifier: MIT
// Meshes by the axes that matter to a test, whatever others there are.
#ifndef GSWBENCH_TESTS_MESHES_H
#define GSWBENCH_TESTS_MESHES_H

#include "gswbench/mesh.h"

// A constant: one rank, whatever axes there are.
#define MESH_ONE(NAME, ...) 1,
#define MESH_OF_ONE_RANK                                                                                               \
    {                                                                                                                  \
        .world = 1, .size = {AXES(MESH_ONE)}, .asked = {AXES(MESH_ONE)}, .etp = 1, .vp = 1                             \
    }

// Of those sizes; every axis that is 0 has one rank.
struct mesh mesh_of(const struct parallel_config *sizes);
#define MESH(...) mesh_of(&(struct parallel_config){__VA_ARGS__})

#endif
