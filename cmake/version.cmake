# SPDX-License-Identifier: MIT
# Writes version.c with the git commit. Included, this file adds a target that runs it as a script in every build. The
# script rewrites version.c only if the text changes, so a new commit costs one small object and the links.
if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(gswbench_version_source ${PROJECT_BINARY_DIR}/version.c)
    add_custom_target(version
                      COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D OUTPUT=${gswbench_version_source}
                              -D VERSION=${PROJECT_VERSION} -P ${CMAKE_CURRENT_LIST_FILE}
                      BYPRODUCTS ${gswbench_version_source} VERBATIM)
    return()
endif()

execute_process(COMMAND git -C ${SOURCE} describe --always --abbrev=7 --exclude=* --dirty=+
                OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
set(TEXT ${VERSION})
if(commit)
    string(APPEND TEXT " (${commit})")
endif()
configure_file(${SOURCE}/cmake/version.c.in ${OUTPUT} @ONLY)
