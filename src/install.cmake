# The CMake package: find_package(vkgemm) gives vkgemm::vkgemm.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/vkgemm)
install(TARGETS vkgemm EXPORT vkgemm INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/vkgemm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${generated}/vkgemm/export.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vkgemm)
install(EXPORT vkgemm NAMESPACE vkgemm:: FILE vkgemm-targets.cmake DESTINATION ${package_folder})
if(TARGET vkgemm_tool)
  install(TARGETS vkgemm_tool)
endif()

configure_package_config_file(vkgemm-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/vkgemm-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/vkgemm-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vkgemm-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/vkgemm-config-version.cmake
        DESTINATION ${package_folder})
