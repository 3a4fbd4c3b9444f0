// SPDX-License-Identifier: MIT
// GEMM limits of the device and of this build's cuBLAS, with remedies.
#include "gemm.h"

status gemm_check_device(const struct cuda *cuda, const struct gemm_key *key)
{
    enum { FIRST_WITH_FP8 = 89, FIRST_WITH_BLOCKS = 100 };
    status checked = gemm_check(key);
    if (failed(&checked)) {
        return fail("[run] backend = cuda: %.900s", checked.text);
    }
    if (format_is_narrow(key->a) && cuda->capability < FIRST_WITH_FP8) {
        return fail("[precision] compute = fp8: device %d has compute capability %d.%d, but FP8 needs 8.9 or newer "
                    "(H100, H200 and their successors): use bf16",
                    cuda->number, cuda->capability / 10, cuda->capability % 10);
    }
    if (key->shape.scaling_a != SCALING_WHOLE && !GEMM_SCALES_PARTS) {
        return fail("[precision] fp8_recipe = %s: needs CUDA 12.9 or newer, and this build is with an older one",
                    key->shape.scaling_a == SCALING_BLOCKS ? "mxfp8" : "block");
    }
    if (key->shape.scaling_a == SCALING_BLOCKS && cuda->capability < FIRST_WITH_BLOCKS) {
        return fail("[precision] fp8_recipe = mxfp8: device %d has compute capability %d.%d, but MXFP8 needs 10.0 or "
                    "newer (B200 and its successors): use fp8_recipe = current or block",
                    cuda->number, cuda->capability / 10, cuda->capability % 10);
    }
    return OK;
}
