# A project of its own uses the library: MODE=install through find_package from a fresh prefix,
# MODE=subdirectory through add_subdirectory.
#   -DSOURCE_DIR= -DBINARY_DIR= -DWORK_DIR= -DGENERATOR= -DCOMPILER=
cmake_minimum_required(VERSION 3.21)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
set(arguments -DSOD2_SOURCE_DIR=${SOURCE_DIR})
if(MODE STREQUAL "install")
  run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${WORK_DIR}/prefix)
  set(arguments -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
endif()
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/consume -B ${WORK_DIR}/build -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${COMPILER} ${arguments})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consume)
