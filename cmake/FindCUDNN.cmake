# SPDX-License-Identifier: MIT
# Finds cuDNN's headers, if their graph API is recent enough: hint CUDNN_HOME, then CUDA's folder, then the system. The
# library is loaded at run time. Sets CUDNN_INCLUDE_DIR and CUDNN_VERSION.
find_path(CUDNN_INCLUDE_DIR cudnn_graph.h HINTS ${CUDNN_HOME} $ENV{CUDNN_HOME} ${CUDAToolkit_INCLUDE_DIRS}
          PATH_SUFFIXES include)
if(CUDNN_INCLUDE_DIR)
    foreach(part MAJOR MINOR PATCHLEVEL)
        file(STRINGS ${CUDNN_INCLUDE_DIR}/cudnn_version.h line REGEX "#define CUDNN_${part} ")
        string(REGEX REPLACE ".* " "" number "${line}")
        list(APPEND CUDNN_VERSION ${number})
    endforeach()
    list(JOIN CUDNN_VERSION "." CUDNN_VERSION)
    # Versions with this attribute can build graphs for a device that is not present. Older versions are not used.
    file(STRINGS ${CUDNN_INCLUDE_DIR}/cudnn_graph.h CUDNN_DEVICE_DESCRIPTION REGEX CUDNN_ATTR_DEVICEPROP_HANDLE)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_INCLUDE_DIR CUDNN_DEVICE_DESCRIPTION
                                  VERSION_VAR CUDNN_VERSION)
