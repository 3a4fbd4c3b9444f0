// SPDX-License-Identifier: MIT
// Makes a mesh from the sizes of the axes that a test needs.
#include "meshes.h"

struct mesh mesh_of(const struct parallel_config *sizes)
{
    struct mesh mesh = {.world = 1, .vp = 1};
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        int64_t size     = mesh_asked(sizes, (enum axis)axis);
        mesh.size[axis]  = size > 0 ? size : 1;
        mesh.asked[axis] = mesh.size[axis];
        mesh.world *= mesh.size[axis];
    }
    mesh.etp = mesh.size[AXIS_TP];
    return mesh;
}
