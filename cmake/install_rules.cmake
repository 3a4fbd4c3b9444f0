# SPDX-License-Identifier: MIT
# bin, configs, documents, manual pages and completion under a prefix. The program finds configs beside itself:
# ../share/gswbench/configs.
# As it was built: where a target is installed, CMake ends the build tree's RUNPATH with a colon, an empty entry, by which
# the loader takes libraries from the current folder.
if(TARGET gswbench)
    install(PROGRAMS $<TARGET_FILE:gswbench> DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET gswbench_mpi)
    install(PROGRAMS $<TARGET_FILE:gswbench_mpi> DESTINATION lib/gswbench)
endif()
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/gswbench)
install(PROGRAMS scripts/slurm/job.sbatch scripts/slurm/submit DESTINATION ${CMAKE_INSTALL_DATADIR}/gswbench/slurm)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)    # where Debian looks for it

# What the program prints of its tables: file, folder below share, and how it is asked for. Debian's zsh looks into a
# folder of its own.
set(pages "")
function(gswbench_page name folder)
    set(page ${PROJECT_BINARY_DIR}/share/${folder}/${name})
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/${folder})
    add_custom_command(OUTPUT ${page} COMMAND gswbench options ${ARGN} > ${page} DEPENDS gswbench VERBATIM)
    set(pages ${pages} ${page} PARENT_SCOPE)
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
endfunction()
if(TARGET gswbench)
    gswbench_page(gswbench.1 man/man1 --man 1)
    gswbench_page(gswbench.5 man/man5 --man 5)
    gswbench_page(gswbench bash-completion/completions --completion bash)
    gswbench_page(_gswbench zsh/site-functions --completion zsh)
    gswbench_page(_gswbench zsh/vendor-completions --completion zsh)
    add_custom_target(pages ALL DEPENDS ${pages})
endif()

# The build tree has the same shape.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/gswbench)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/configs ${PROJECT_BINARY_DIR}/share/gswbench/configs SYMBOLIC)
