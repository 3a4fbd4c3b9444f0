# SPDX-License-Identifier: MIT
# The CUDA toolkit and NCCL, found with the hints CUDA_HOME and NCCL_HOME. Sets gswbench_cuda and gswbench_cuda_reason.
# The runtime is part of the program and looks for the driver when it is first used: the program starts without either.
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_CUDA_STANDARD 17)

# A compiler that is there may still be too old for the device or refuse the host's gcc; a trial tells, and it costs
# less than CMake's own check, which stops the configuration when it fails.
function(gswbench_try_nvcc)
    find_program(GSWBENCH_NVCC nvcc HINTS ${CUDA_HOME} $ENV{CUDA_HOME} PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(NOT GSWBENCH_NVCC)
        set(gswbench_cuda_reason "no nvcc found (set CUDA_HOME)" PARENT_SCOPE)
        return()
    endif()
    set(trial ${PROJECT_BINARY_DIR}/CMakeFiles/cuda_trial.cu)
    file(WRITE ${trial} "#if CUDART_VERSION < 12040\n#error CUDA 12.4 or newer is needed\n#endif\n__global__ void kernel() {}\nint main() { kernel<<<1, 1>>>(); }\n")
    execute_process(COMMAND ${GSWBENCH_NVCC} -gencode arch=compute_90a,code=sm_90a -o ${trial}.out ${trial}
                    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(result EQUAL 0)
        set(gswbench_cuda ON PARENT_SCOPE)
    else()
        string(REGEX REPLACE "\n.*" "" output "${output}")
        set(gswbench_cuda_reason "${GSWBENCH_NVCC} fails: ${output}" PARENT_SCOPE)
    endif()
endfunction()

# Code for Hopper, Ampere and Ada and, where the toolkit knows it, for Blackwell; PTX of the newest that later ones take.
# GSWBENCH_CUDA_ARCHITECTURES names others. CMake has to know them before CUDA is enabled: it would choose.
function(gswbench_choose_architectures)
    set(architectures ${GSWBENCH_CUDA_ARCHITECTURES})
    if(architectures STREQUAL auto)
        execute_process(COMMAND ${GSWBENCH_NVCC} --list-gpu-code OUTPUT_VARIABLE known)
        set(architectures 90a-real 80-real 89-real)
        if(known MATCHES "sm_100\n" AND known MATCHES "sm_120\n")
            list(APPEND architectures 100 120-real)
        else()
            list(APPEND architectures 90-virtual)
        endif()
    endif()
    set(CMAKE_CUDA_ARCHITECTURES "${architectures}" PARENT_SCOPE)
endfunction()

set(gswbench_cuda OFF)
if(GSWBENCH_EMULATED)
    # The headers are the toolkit's, the kernels and the runtime tests/device/emulated's.
    find_package(CUDAToolkit REQUIRED)
    find_package(NCCL 2.27 QUIET)
    find_package(CUDNN QUIET)
    enable_language(CXX)
    set(gswbench_cuda ON)
elseif(GSWBENCH_CUDA STREQUAL OFF)
    set(gswbench_cuda_reason "GSWBENCH_CUDA=OFF")
else()
    gswbench_try_nvcc()
    if(gswbench_cuda)
        if(NOT CMAKE_CUDA_COMPILER)
            set(CMAKE_CUDA_COMPILER ${GSWBENCH_NVCC})
        endif()
        gswbench_choose_architectures()
        enable_language(CUDA)
        find_package(CUDAToolkit REQUIRED)
        find_package(NCCL 2.27 QUIET)
        find_package(CUDNN QUIET)
        # Where libraries that are opened at run time lie, unless LD_LIBRARY_PATH names others.
        list(APPEND CMAKE_BUILD_RPATH ${CUDAToolkit_LIBRARY_DIR})
    elseif(GSWBENCH_CUDA STREQUAL ON)
        message(FATAL_ERROR "GSWBENCH_CUDA=ON, but ${gswbench_cuda_reason}")
    endif()
endif()
