# SPDX-License-Identifier: MIT
# Fails if clang-format would change a source file: cmake -D ROOT=. -D CLANG_FORMAT=... -P this
file(GLOB_RECURSE files ${ROOT}/include/*.h ${ROOT}/src/*.[ch] ${ROOT}/bench/*.[ch] ${ROOT}/tests/*.[ch]
                        ${ROOT}/kernels/*.cu ${ROOT}/kernels/*.cuh ${ROOT}/kernels/*.h ${ROOT}/tests/*.cpp)
execute_process(COMMAND ${CLANG_FORMAT} --dry-run -Werror --style=file ${files} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "Run ${CLANG_FORMAT} -i on the files above.")
endif()
