# SPDX-License-Identifier: MIT
# What this build has and lacks, last in the configuration's output.
message(STATUS "gswbench ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}")
if(MPI_C_FOUND)
    message(STATUS "  MPI            ${MPI_C_VERSION}")
else()
    message(STATUS "  MPI            left out: not found (ranks run as threads only)")
endif()
if(NOT CRITERION_FOUND)
    message(STATUS "  tests          left out: Criterion not found (libcriterion-dev)")
endif()
