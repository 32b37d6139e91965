set(installed plateflow-bridge)
if(TARGET libplateflow)
  list(APPEND installed libplateflow)
endif()
if(SKBUILD) # a wheel would turn the link into a second copy of the core
  set(namelink NAMELINK_SKIP)
endif()
install(TARGETS ${installed}
        LIBRARY DESTINATION ${PF_INSTALL_LIB} ${namelink})
install(DIRECTORY include/plateflow DESTINATION ${PF_INSTALL_INCLUDE})
if(TARGET plateflow)
  install(TARGETS plateflow RUNTIME DESTINATION ${PF_INSTALL_BIN})
endif()
if(TARGET plateflow-python)
  install(TARGETS plateflow-python LIBRARY DESTINATION ${PF_INSTALL_PACKAGE})
  if(NOT SKBUILD) # a wheel takes the Python files by itself
    install(FILES ${PACKAGE_FILES} DESTINATION ${PF_INSTALL_PACKAGE})
    file(RELATIVE_PATH up /${PF_INSTALL_PACKAGE} /${PF_INSTALL_LIB})
    set_target_properties(plateflow-python PROPERTIES
                          INSTALL_RPATH "$ORIGIN/${up}")
  endif()
endif()
