# SPDX-License-Identifier: MIT
# Build options, and the compiler flags that they select.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()

option(GSWBENCH_WERROR "Warnings are errors" OFF)
option(GSWBENCH_TESTS "Build the tests" ON)
option(GSWBENCH_NATIVE "Compile the host backend for this machine's processor" ON)
option(BUILD_SHARED_LIBS "Link the programs to one shared library, not to a copy in each" OFF)
set(GSWBENCH_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=: address,undefined or thread")
option(GSWBENCH_FUZZ "Build the libFuzzer targets (clang only)" OFF)
option(GSWBENCH_COVERAGE "Measure test coverage" OFF)
set(GSWBENCH_MPI AUTO CACHE STRING "MPI: AUTO, ON or OFF")
set(GSWBENCH_CUDA AUTO CACHE STRING "CUDA: AUTO, ON or OFF")
set(GSWBENCH_CUDA_ARCHITECTURES auto CACHE STRING "CUDA architectures as CMake names them (90a-real;80), or auto")
set(GSWBENCH_NVTX AUTO CACHE STRING "Ranges that profilers show: AUTO, ON or OFF")
option(GSWBENCH_CHECKED "For tests: compile kernels to PTX only, with checks of the indices that they load" OFF)
option(GSWBENCH_EMULATED "For tests: the cuda backend on an emulated device, without driver or GPU; needs nvcc" OFF)
set(GSWBENCH_OBJECTS_OF "" CACHE PATH "With GSWBENCH_EMULATED: a build with GSWBENCH_CHECKED whose objects are linked")

function(gswbench_compile_options)
    foreach(option IN LISTS ARGN)
        add_compile_options($<$<COMPILE_LANGUAGE:C>:${option}>)
    endforeach()
endfunction()

add_compile_definitions($<$<COMPILE_LANGUAGE:C>:_POSIX_C_SOURCE=200809L>)
gswbench_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wmissing-prototypes -Wstrict-prototypes
                         -Wswitch-enum)
if(GSWBENCH_WERROR)
    gswbench_compile_options(-Werror)
endif()
# Without contraction into FMA, all compilers give our arithmetic the same bits. (BLAS, and BF16 GEMMs with CPU
# instructions, still differ between machines.)
gswbench_compile_options(-ffp-contract=off)

# Hardening against memory errors: position-independent programs, read-only relocations, fortified functions and stack
# protection. Fortified functions require optimization, and sanitizers replace them.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
string(APPEND CMAKE_EXE_LINKER_FLAGS " -pie")
gswbench_compile_options(-fstack-protector-strong)
if(NOT GSWBENCH_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL Debug)
    gswbench_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()
add_link_options(-Wl,-z,relro,-z,now)

if(GSWBENCH_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
        message(FATAL_ERROR "GSWBENCH_FUZZ needs clang: cmake --preset fuzz, or -DCMAKE_C_COMPILER=clang")
    endif()
    gswbench_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(GSWBENCH_SANITIZE)
    gswbench_compile_options(-fsanitize=${GSWBENCH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    if(CMAKE_C_COMPILER_ID STREQUAL GNU)    # gcc: unreliable with sanitizers; other builds have these warnings
        gswbench_compile_options(-Wno-maybe-uninitialized -Wno-format-truncation)
    endif()
    add_link_options(-fsanitize=${GSWBENCH_SANITIZE})
    add_compile_definitions(GSWBENCH_SANITIZED)    # for code that runs before the sanitizers start
endif()
if(GSWBENCH_COVERAGE)
    gswbench_compile_options(--coverage)
    add_link_options(--coverage)
endif()
