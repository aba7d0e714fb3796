# What the optional components need: headers only. The build and the installed package both use this
# file. A project that brings its own copy sets SOD2_<NAME>_INCLUDE_DIR, or defines sod2::<name>.

set(sod2_components model kernels onnx)
set(sod2_model_libraries sod2::hana)
set(sod2_kernels_libraries sod2::eigen sod2::highway) # Highway's code generation; its library isn't linked
set(sod2_onnx_libraries sod2::protozero)

set(sod2_hana_header boost/hana/version.hpp)
set(sod2_eigen_header Eigen/Core)
set(sod2_highway_header hwy/highway.h)
set(sod2_protozero_header protozero/pbf_reader.hpp)

# Sets sod2_<component>_FOUND, and names what is missing in sod2_<component>_NOT_FOUND_MESSAGE.
macro(sod2_find_component component)
  set(sod2_${component}_FOUND TRUE)
  foreach(sod2_library IN LISTS sod2_${component}_libraries)
    if(NOT TARGET ${sod2_library})
      string(REPLACE "sod2::" "" sod2_name ${sod2_library})
      string(TOUPPER ${sod2_name} sod2_upper)
      find_path(SOD2_${sod2_upper}_INCLUDE_DIR ${sod2_${sod2_name}_header} PATH_SUFFIXES eigen3)
      mark_as_advanced(SOD2_${sod2_upper}_INCLUDE_DIR)
      if(SOD2_${sod2_upper}_INCLUDE_DIR)
        add_library(${sod2_library} INTERFACE IMPORTED GLOBAL)
        target_include_directories(${sod2_library} INTERFACE ${SOD2_${sod2_upper}_INCLUDE_DIR})
      else()
        set(sod2_${component}_FOUND FALSE)
        set(sod2_${component}_NOT_FOUND_MESSAGE
          "sod2::${component} needs <${sod2_${sod2_name}_header}>: set SOD2_${sod2_upper}_INCLUDE_DIR")
      endif()
    endif()
  endforeach()
endmacro()
