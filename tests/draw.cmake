# SPDX-License-Identifier: MIT
# Selects the long tests that this commit runs. costs.txt has the seconds of every test that takes at least two seconds.
# The tests of a build form a ring of these seconds, in the order of the file. The hash of the commit rotates the ring,
# and the tests that lie completely within its first GSWBENCH_DRAWN percent run. So every commit takes about the same
# time, and a longer test is drawn less often. A test that is longer than this part of the ring runs only with a larger
# GSWBENCH_DRAWN, or with ctest -C costly, which runs all tests.
set(GSWBENCH_DRAWN 4 CACHE STRING "Share of the long tests' time that a commit runs, in percent")
execute_process(COMMAND git rev-parse --short=6 HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                OUTPUT_VARIABLE gswbench_draw OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT gswbench_draw MATCHES "^[0-9a-f]+$")
    set(gswbench_draw 0)
endif()
math(EXPR gswbench_draw "0x${gswbench_draw}")

set(build release)
if(GSWBENCH_EMULATED)
    set(build emulated)
elseif(GSWBENCH_SANITIZE MATCHES address)
    set(build asan)
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS costs.txt)
file(STRINGS costs.txt rows REGEX "^${build} ")
set(ring 0)
foreach(row IN LISTS rows)
    string(REGEX MATCH "^[a-z]+ ([a-z0-9_]+) ([0-9]+)$" row "${row}")
    set(gswbench_cost_of_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
    set(gswbench_place_of_${CMAKE_MATCH_1} ${ring})
    math(EXPR ring "${ring} + ${CMAKE_MATCH_2}")
endforeach()
math(EXPR gswbench_window "${ring} * ${GSWBENCH_DRAWN} / 100")
set(gswbench_ring ${ring})

# Sets ${result} to whether the commit runs a test.
function(gswbench_is_drawn name result)
    set(${result} ON PARENT_SCOPE)
    if(DEFINED gswbench_place_of_${name})
        math(EXPR end "(${gswbench_place_of_${name}} + ${gswbench_draw}) % ${gswbench_ring} + ${gswbench_cost_of_${name}}")
        if(end GREATER gswbench_window)
            set(${result} OFF PARENT_SCOPE)
        endif()
    endif()
endfunction()
