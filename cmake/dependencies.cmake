# SPDX-License-Identifier: MIT
# Finds libraries. One error names all required ones that are missing; the build leaves out missing optional ones.
find_package(Threads REQUIRED)
find_package(PkgConfig)

set(missing "")
macro(gswbench_require variable module package)
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(${variable} IMPORTED_TARGET ${module})
    endif()
    if(NOT ${variable}_FOUND)
        list(APPEND missing ${package})
    endif()
endmacro()
if(NOT PKG_CONFIG_FOUND)
    list(APPEND missing pkg-config)
endif()
gswbench_require(JANSSON jansson libjansson-dev)
gswbench_require(XXHASH libxxhash libxxhash-dev)
gswbench_require(OPENBLAS openblas libopenblas-dev)
if(missing)
    list(JOIN missing " " packages)
    message(FATAL_ERROR "Required libraries are missing. On Debian or Ubuntu: apt-get install ${packages}\n"
                        "Elsewhere: install them and name their folder of .pc files in PKG_CONFIG_PATH.")
endif()

if(GSWBENCH_TESTS)
    pkg_check_modules(CRITERION IMPORTED_TARGET criterion)
    # NVML needs no header. If it is present, a test compares our declarations with it.
    find_path(NVML_INCLUDE_DIR nvml.h HINTS ${NVML_HOME} $ENV{NVML_HOME} ${CUDA_HOME} $ENV{CUDA_HOME}
              PATHS /usr/local/cuda PATH_SUFFIXES include)
    # Another test compares our CUPTI declarations with cupti.h, which the CUPTI library of the emulated device also includes.
    find_path(CUPTI_INCLUDE_DIR cupti.h HINTS ${CUDA_HOME} $ENV{CUDA_HOME} PATHS /usr/local/cuda
              PATH_SUFFIXES include extras/CUPTI/include)
    find_path(CUDA_DRIVER_INCLUDE_DIR cuda.h HINTS ${CUDA_HOME} $ENV{CUDA_HOME} PATHS /usr/local/cuda PATH_SUFFIXES include)
    mark_as_advanced(NVML_INCLUDE_DIR CUPTI_INCLUDE_DIR CUDA_DRIVER_INCLUDE_DIR)
endif()

# NVTX has only headers, so it needs no other part of the CUDA toolkit. Old toolkits lack the header for payloads with
# several values.
if(NOT GSWBENCH_NVTX STREQUAL OFF)
    find_path(NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h HINTS ${CUDA_HOME} $ENV{CUDA_HOME} PATHS /usr/local/cuda
              PATH_SUFFIXES include)
    mark_as_advanced(NVTX_INCLUDE_DIR)
    if(GSWBENCH_NVTX STREQUAL ON AND NOT NVTX_INCLUDE_DIR)
        message(FATAL_ERROR "GSWBENCH_NVTX=ON, but no nvtx3/nvToolsExt.h is found: set CUDA_HOME")
    endif()
endif()
set(gswbench_nvtx OFF)
set(gswbench_nvtx_payload OFF)
if(NOT GSWBENCH_NVTX STREQUAL OFF AND NVTX_INCLUDE_DIR)
    set(gswbench_nvtx ON)
    if(EXISTS ${NVTX_INCLUDE_DIR}/nvtx3/nvToolsExtPayload.h)
        set(gswbench_nvtx_payload ON)
    endif()
endif()

# FindMPI uses the hint MPI_HOME, a variable or environment variable.
if(NOT GSWBENCH_MPI STREQUAL OFF)
    find_package(MPI QUIET COMPONENTS C)
    if(GSWBENCH_MPI STREQUAL ON AND NOT MPI_C_FOUND)
        message(FATAL_ERROR "GSWBENCH_MPI=ON, but no MPI is found: install libopenmpi-dev and openmpi-bin, or set MPI_HOME")
    endif()
endif()
