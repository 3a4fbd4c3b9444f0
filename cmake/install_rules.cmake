# SPDX-License-Identifier: MIT
# Installs bin, configs, documents, manual pages and completion under a prefix. The program finds configs relative to
# itself, in ../share/gswbench/configs.
# Programs are installed as built. install(TARGETS) would end the build tree's RUNPATH with an empty entry, and the
# loader would then search the current folder for libraries.
if(TARGET gswbench)
    install(PROGRAMS $<TARGET_FILE:gswbench> DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET gswbench_mpi)
    install(PROGRAMS $<TARGET_FILE:gswbench_mpi> DESTINATION lib/gswbench)
endif()
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/gswbench)
install(PROGRAMS scripts/slurm/job.sbatch scripts/slurm/submit DESTINATION ${CMAKE_INSTALL_DATADIR}/gswbench/slurm)
install(DIRECTORY scripts/packages scripts/monitors USE_SOURCE_PERMISSIONS DESTINATION ${CMAKE_INSTALL_DATADIR}/gswbench)
# docs/README.md is the index of the repository; the next line installs the README of the program under that name.
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN README.md EXCLUDE)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)    # the path that Debian requires

# Files that the program generates from its tables: file, folder below share, and command line. Debian's zsh uses a
# separate folder.
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

# The build tree has the same structure, so that a program in it finds the configs, too.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/gswbench)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/configs ${PROJECT_BINARY_DIR}/share/gswbench/configs SYMBOLIC)
