# Headers and a package that find_package(sod2) finds. One export file a component, so that
# sod2::sod2 can be used where Eigen, Highway, Hana or protozero are not installed.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/sod2)
install(DIRECTORY include/sod2 DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/sod2)

install(TARGETS sod2_headers EXPORT sod2-targets)
install(EXPORT sod2-targets NAMESPACE sod2:: DESTINATION ${package_dir})
foreach(component IN LISTS sod2_components)
  install(TARGETS sod2_${component} EXPORT sod2-${component}-targets)
  install(EXPORT sod2-${component}-targets NAMESPACE sod2:: DESTINATION ${package_dir})
endforeach()

configure_package_config_file(cmake/sod2Config.cmake.in sod2Config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(sod2ConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES cmake/sod2Dependencies.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/sod2Config.cmake ${CMAKE_CURRENT_BINARY_DIR}/sod2ConfigVersion.cmake
  DESTINATION ${package_dir})
