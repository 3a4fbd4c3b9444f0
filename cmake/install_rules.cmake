# SPDX-License-Identifier: MIT
# bin, configs and docs under a prefix. The program finds configs beside itself: ../share/gswbench/configs.
# As it was built: where a target is installed, CMake ends the build tree's RUNPATH with a colon, an empty entry, by which
# the loader takes libraries from the current folder.
if(TARGET gswbench)
    install(PROGRAMS $<TARGET_FILE:gswbench> DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET gswbench_mpi)
    install(PROGRAMS $<TARGET_FILE:gswbench_mpi> DESTINATION lib/gswbench)
endif()
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/gswbench)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The build tree has the same shape.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/gswbench)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/configs ${PROJECT_BINARY_DIR}/share/gswbench/configs SYMBOLIC)
