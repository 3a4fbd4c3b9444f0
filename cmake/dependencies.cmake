# SPDX-License-Identifier: MIT
# Libraries, found with hints (MPI_HOME, CUDA_HOME, NCCL_HOME). What is optional and missing is left out.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(INIH REQUIRED IMPORTED_TARGET inih)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
pkg_check_modules(CRITERION IMPORTED_TARGET criterion)

if(NOT GSWBENCH_MPI STREQUAL "OFF")
    find_package(MPI COMPONENTS C)
    if(GSWBENCH_MPI STREQUAL "ON" AND NOT MPI_C_FOUND)
        message(FATAL_ERROR "GSWBENCH_MPI=ON, but no MPI was found: install libopenmpi-dev or set MPI_HOME")
    endif()
endif()
