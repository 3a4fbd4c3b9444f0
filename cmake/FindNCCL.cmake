# SPDX-License-Identifier: MIT
# Finds NCCL's header: hint NCCL_HOME, then CUDA's folder, then the system. The library is loaded at run time. Sets
# NCCL_INCLUDE_DIR and NCCL_VERSION.
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${NCCL_HOME} $ENV{NCCL_HOME} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
if(NCCL_INCLUDE_DIR)
    foreach(part MAJOR MINOR PATCH)
        file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h line REGEX "^#define NCCL_${part} ")
        string(REGEX MATCH "[0-9]+" number "${line}")
        list(APPEND NCCL_VERSION ${number})
    endforeach()
    list(JOIN NCCL_VERSION "." NCCL_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
mark_as_advanced(NCCL_INCLUDE_DIR)
