# Where things are installed. Two layouts:
# - a wheel (scikit-build-core sets SKBUILD): the program in the environment's
#   bin, everything else in the package's folder, site-packages/plateflow;
# - `cmake --install`: bin, lib, include, and the package in lib/pythonX.Y.
include(GNUInstallDirs)

set(PF_PYTHON_DIR
    lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR})
if(SKBUILD)
  set(PF_INSTALL_BIN ${SKBUILD_SCRIPTS_DIR})
  set(PF_INSTALL_LIB plateflow)
  set(PF_INSTALL_INCLUDE plateflow/include)
  set(PF_INSTALL_PACKAGE plateflow)
  # From bin to the package: venvs and pyenv, then Debian's own Python.
  set(PF_BIN_RPATH
      "$ORIGIN/../${PF_PYTHON_DIR}/site-packages/plateflow"
      "$ORIGIN/../${PF_PYTHON_DIR}/dist-packages/plateflow"
      "$ORIGIN/../lib/python3/dist-packages/plateflow")
else()
  set(PF_INSTALL_BIN ${CMAKE_INSTALL_BINDIR})
  set(PF_INSTALL_LIB ${CMAKE_INSTALL_LIBDIR})
  set(PF_INSTALL_INCLUDE ${CMAKE_INSTALL_INCLUDEDIR})
  set(PF_INSTALL_PACKAGE ${PF_PYTHON_DIR}/site-packages/plateflow)
  set(PF_BIN_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endif()
