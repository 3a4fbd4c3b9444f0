# SPDX-License-Identifier: MIT
# Packages of the installed files: cmake --preset package && cmake --build --preset package. A package runs on the
# Debian release that it was built on, and on newer ones.
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_CONTACT "gswbench authors")
set(CPACK_PACKAGE_FILE_NAME ${PROJECT_NAME}-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Runs the real training step of a published workload on the ranks that the\nlauncher starts, and reports the measured, \
the published and the expected step\ntime, and where the time goes.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_VERBATIM_VARIABLES ON)

# The dependencies of a program are known once it is built.
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_depends.cmake)
set(CPACK_GSWBENCH_PROGRAM ${PROJECT_BINARY_DIR}/bin/gswbench)
set(CPACK_GSWBENCH_MODULE ${PROJECT_BINARY_DIR}/lib/gswbench/mpi.so)
include(CPack)
