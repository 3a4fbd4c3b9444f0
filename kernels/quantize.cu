// SPDX-License-Identifier: MIT
// Matrices in memory to FP8. Where the scale follows from the values, a pass before finds their largest magnitude.
#include "quantize.cuh"
#include "rescale.h"

namespace
{
template <enum scaling chosen> struct scaling_constant {
    static constexpr enum scaling value = chosen;
};

template <typename Body> int with_scaling(enum scaling scaling, Body body)
{
    switch (scaling) {
    case SCALING_WHOLE:
        return body(scaling_constant<SCALING_WHOLE>());
    case SCALING_RUNS:
        return body(scaling_constant<SCALING_RUNS>());
    case SCALING_SQUARES:
        return body(scaling_constant<SCALING_SQUARES>());
    case SCALING_BLOCKS:
        return body(scaling_constant<SCALING_BLOCKS>());
    case SCALING_ROWS:    // its GEMMs are refused
        break;
    }
    return cudaErrorInvalidValue;
}

int find_magnitude(const struct quantize_args *args, const struct kernel_target *target)
{
    struct magnitude_args magnitude = {args->in, args->scratch, args->rows * args->columns, args->type};
    int                   error     = clear_magnitude(args->scratch, target);
    return error != 0 ? error : kernel_magnitude(&magnitude, target);
}
}    // namespace

int kernel_quantize(const struct quantize_args *args, const struct kernel_target *target)
{
    bool needs_pass = args->scaling == SCALING_WHOLE && args->scale == NULL && !args->has_magnitude;
    int  error      = needs_pass ? find_magnitude(args, target) : 0;
    return error != 0 ? error : with_type(args->type, [&](auto type) {
        return with_scaling(args->scaling, [&](auto scaling) {
            using T = decltype(type);
            return enqueue_quantize<scaling.value, T>(stored_source<T>{(const T *)args->in}, args,
                                                      launch_is_wide(args->columns, addresses(args->in)), target);
        });
    });
}
