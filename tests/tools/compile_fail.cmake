# A wrong program must be refused with its message; its positive twin must compile.
#   -DCOMPILER= -DFLAGS=<separated by spaces> -DINCLUDES=<separated by |> -DSOURCE= -DLOG=
# The source is compiled with and without SOD2_EXPECT_FAIL. Each `// expect: REGEX` in it (CMake's
# syntax) must match one line of the compiler's output; where g++ and clang order the parts
# differently, write both orders: (a.*b|b.*a).
cmake_minimum_required(VERSION 3.21)

set(ENV{LC_ALL} C) # plain quotes in messages
separate_arguments(FLAGS)
string(REPLACE "|" ";-I" includes "-I${INCLUDES}")
set(compile ${COMPILER} ${FLAGS} ${includes} -fsyntax-only ${SOURCE})

execute_process(COMMAND ${compile} RESULT_VARIABLE status ERROR_VARIABLE log)
if(status)
  message(FATAL_ERROR "the positive twin does not compile:\n${log}")
endif()

execute_process(COMMAND ${compile} -DSOD2_EXPECT_FAIL RESULT_VARIABLE status ERROR_FILE ${LOG})
file(READ ${LOG} log)
if(NOT status)
  message(FATAL_ERROR "the wrong program compiles")
endif()

file(STRINGS ${SOURCE} expectations REGEX "// expect: ")
if(NOT expectations)
  message(FATAL_ERROR "no `// expect: REGEX` in ${SOURCE}")
endif()
foreach(expectation IN LISTS expectations)
  string(REGEX REPLACE ".*// expect: " "" regex "${expectation}")
  file(STRINGS ${LOG} hits REGEX "${regex}")
  if(NOT hits)
    message(FATAL_ERROR "no line of the compiler's output matches\n  ${regex}\n${log}")
  endif()
endforeach()
