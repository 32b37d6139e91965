# What stands in for a CUDA driver in the tests: see tests/fakecuda/README.md.
# A program uses it where LD_LIBRARY_PATH names build/fakecuda.
set(FAKECUDA_DIR ${CMAKE_BINARY_DIR}/fakecuda)
set(FAKECUDA_ENV LD_LIBRARY_PATH=${FAKECUDA_DIR} FAKECUDA_DEVICES=3
    FAKECUDA_KERNELS=${FAKECUDA_DIR}/kernels.so)

add_library(fakecuda SHARED tests/fakecuda/driver.c tests/fakecuda/order.c
            tests/fakecuda/memory.c tests/fakecuda/stream.c
            tests/fakecuda/launch.c)
target_link_libraries(fakecuda PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(fakecuda PROPERTIES OUTPUT_NAME cuda VERSION 1
  SOVERSION 1 LIBRARY_OUTPUT_DIRECTORY ${FAKECUDA_DIR})
add_library(fakecuda-kernels MODULE tests/fakecuda/kernels.c)
set_target_properties(fakecuda-kernels PROPERTIES PREFIX ""
  OUTPUT_NAME kernels LIBRARY_OUTPUT_DIRECTORY ${FAKECUDA_DIR})

# The CUDA device's test runs on both kinds of allocator.
if(TARGET unit_cuda)
  set_tests_properties(unit_cuda PROPERTIES ENVIRONMENT "${FAKECUDA_ENV}")
  add_test(NAME unit_cuda_without_mempools COMMAND unit_cuda
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(unit_cuda_without_mempools PROPERTIES TIMEOUT 120
    ENVIRONMENT "${FAKECUDA_ENV};FAKECUDA_POOLS=0;FAKECUDA_SEED=2")
endif()
# Where there is no compiler library, that is said.
if(TARGET unit_cuda_compile)
  add_test(NAME unit_cuda_compile_without COMMAND unit_cuda_compile)
  set_tests_properties(unit_cuda_compile_without PROPERTIES
    ENVIRONMENT "PLATEFLOW_NVRTC=/nowhere/libnvrtc.so")
endif()
