# SPDX-License-Identifier: MIT
# NCCL: hint NCCL_HOME, else beside CUDA, else the system. Gives NCCL::nccl and NCCL_VERSION.
set(hints ${NCCL_HOME} $ENV{NCCL_HOME} ${CUDA_HOME} $ENV{CUDA_HOME} ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}/..)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${hints} PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${hints} PATH_SUFFIXES lib lib64)

if(NCCL_INCLUDE_DIR)
    foreach(part MAJOR MINOR PATCH)
        file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h line REGEX "^#define NCCL_${part} ")
        string(REGEX MATCH "[0-9]+" number "${line}")
        list(APPEND numbers ${number})
    endforeach()
    list(JOIN numbers "." NCCL_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

if(NCCL_FOUND AND NOT TARGET NCCL::nccl)
    add_library(NCCL::nccl UNKNOWN IMPORTED)
    set_target_properties(NCCL::nccl PROPERTIES IMPORTED_LOCATION ${NCCL_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
endif()
