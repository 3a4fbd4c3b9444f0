# SPDX-License-Identifier: MIT
# Runs when a package is built. Libraries of the program become dependencies. Additional ones of the MPI module are only
# recommended, since without MPI the program runs ranks as threads. Libraries that belong to no package, such as a CUDA
# toolkit's, are omitted.
if(NOT CPACK_GENERATOR STREQUAL DEB)
    return()
endif()
find_program(shlibdeps dpkg-shlibdeps)
if(NOT shlibdeps)
    message(FATAL_ERROR "dpkg-shlibdeps, which finds the dependencies of a package, is missing: install dpkg-dev")
endif()

function(find_packages file variable)
    set(folder ${CPACK_TOPLEVEL_DIRECTORY}/shlibdeps)
    file(WRITE ${folder}/debian/control "Source: gswbench\n\nPackage: gswbench\nArchitecture: any\n")    # dpkg-shlibdeps requires this file
    execute_process(COMMAND ${shlibdeps} -O --ignore-missing-info --warnings=0 -e${file} WORKING_DIRECTORY ${folder}
                    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "shlibs:Depends=" "" found "${found}")
    string(REPLACE ", " ";" found "${found}")
    set(${variable} ${found} PARENT_SCOPE)
endfunction()

find_packages(${CPACK_GSWBENCH_PROGRAM} depends)
list(JOIN depends ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
if(EXISTS ${CPACK_GSWBENCH_MODULE})
    find_packages(${CPACK_GSWBENCH_MODULE} recommends)
    list(FILTER recommends EXCLUDE REGEX "^libc6 ")
    list(REMOVE_ITEM recommends ${depends})
    list(TRANSFORM recommends REPLACE "^libopenmpi.*" openmpi-bin)    # depends on the library, whose package name varies
    list(JOIN recommends ", " CPACK_DEBIAN_PACKAGE_RECOMMENDS)
endif()
