# What only our own tests, examples and benchmarks use.
option(SOD2_NO_EXCEPTIONS "Build without exceptions and RTTI: all but onnx/ and the program" OFF)
option(SOD2_STATIC_CHECKS "Checks whose answer needs no run: headers, static and compile-fail tests" ON)

foreach(component IN LISTS sod2_components)
  if(NOT sod2_${component}_FOUND)
    message(FATAL_ERROR "${sod2_${component}_NOT_FOUND_MESSAGE}")
  endif()
endforeach()

if(SOD2_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release)
  endif()
  find_program(SOD2_CCACHE ccache)
  mark_as_advanced(SOD2_CCACHE)
  if(SOD2_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${SOD2_CCACHE})
  endif()
endif()
set(CMAKE_CXX_EXTENSIONS OFF)

# Language mode and warnings of everything that is compiled here.
add_library(sod2_dev INTERFACE)
set(sod2_mode_flags)
if(SOD2_NO_EXCEPTIONS)
  set(sod2_mode_flags -fno-exceptions -fno-rtti)
endif()
target_compile_options(sod2_dev INTERFACE ${sod2_mode_flags}
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
target_link_libraries(sod2_dev INTERFACE sod2::sod2)

# The part of `files` that can be built: without exceptions, what reads or writes ONNX is left out.
function(sod2_keep_buildable files)
  set(kept)
  foreach(file IN LISTS ${files})
    if(SOD2_NO_EXCEPTIONS)
      file(STRINGS ${file} onnx LIMIT_COUNT 1 REGEX "#include [<\"](sod2/onnx|nlohmann|CLI)[./]")
      if(onnx)
        continue()
      endif()
    endif()
    list(APPEND kept ${file})
  endforeach()
  set(${files} ${kept} PARENT_SCOPE)
endfunction()

# The standard operator and kernel tables: the one expensive unit, compiled once for all.
if(EXISTS ${PROJECT_SOURCE_DIR}/examples/sod2/instantiate.cpp)
  add_library(sod2_standard STATIC ${PROJECT_SOURCE_DIR}/examples/sod2/instantiate.cpp)
  target_link_libraries(sod2_standard PUBLIC sod2::kernels PRIVATE sod2_dev)
  target_compile_definitions(sod2_standard PUBLIC SOD2_INSTANTIATED)
  # What runs long is optimised in debug builds, too; the many units around it compile fast.
  target_compile_options(sod2_standard PRIVATE $<$<CONFIG:Debug>:-O1>)
endif()

# The library as headers alone.
add_library(sod2_header_only INTERFACE)
target_link_libraries(sod2_header_only INTERFACE sod2_dev sod2::model sod2::kernels sod2::onnx)

# Everything a test, example or benchmark above the planners may use.
add_library(sod2_all INTERFACE)
target_link_libraries(sod2_all INTERFACE sod2_header_only
  $<$<TARGET_EXISTS:sod2_standard>:sod2_standard>)
