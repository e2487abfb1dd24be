# The CMake package: find_package(vkgemm) gives vkgemm::vkgemm, and vkgemm::c for C. And vkgemm.pc for others.
# Components: runtime (a shared library), development, tool, python.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/vkgemm)
install(TARGETS vkgemm vkgemm_c EXPORT vkgemm INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        RUNTIME COMPONENT runtime
        LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
        ARCHIVE COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/vkgemm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES ${generated}/vkgemm/export.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vkgemm COMPONENT development)
install(EXPORT vkgemm NAMESPACE vkgemm:: FILE vkgemm-targets.cmake DESTINATION ${package_folder} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/rust DESTINATION ${CMAKE_INSTALL_DATADIR}/vkgemm COMPONENT development
        PATTERN target EXCLUDE PATTERN Cargo.lock EXCLUDE)  # which Cargo writes
if(TARGET vkgemm_tool)
  install(TARGETS vkgemm_tool COMPONENT tool)
  if(EXISTS ${PROJECT_SOURCE_DIR}/bench/plot.py)  # the source archive has none
    install(PROGRAMS ${PROJECT_SOURCE_DIR}/bench/plot.py DESTINATION ${CMAKE_INSTALL_DATADIR}/vkgemm COMPONENT tool)
  endif()
endif()

configure_package_config_file(vkgemm-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/vkgemm-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/vkgemm-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vkgemm-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/vkgemm-config-version.cmake
              ${CMAKE_CURRENT_SOURCE_DIR}/vkgemm-epilogue.cmake
        DESTINATION ${package_folder} COMPONENT development)

# A static library says by itself which libraries of the C++ compiler it needs.
set(pc_cflags "")
set(pc_libs "")
if(NOT BUILD_SHARED_LIBS)
  set(pc_cflags " -DVKGEMM_STATIC_DEFINE")
  foreach(library IN LISTS CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
    if(NOT library IN_LIST CMAKE_C_IMPLICIT_LINK_LIBRARIES AND library MATCHES "^(stdc\\+\\+|c\\+\\+|c\\+\\+abi|m)$")
      string(APPEND pc_libs " -l${library}")
    endif()
  endforeach()
endif()
if(NOT BUILD_SHARED_LIBS AND CMAKE_THREAD_LIBS_INIT)
  string(APPEND pc_libs " ${CMAKE_THREAD_LIBS_INIT}")
endif()
if(NOT BUILD_SHARED_LIBS AND NOT zstd_source)
  string(APPEND pc_libs " -lzstd")
endif()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY
           ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig OUTPUT_VARIABLE pc_prefix)
configure_file(vkgemm.pc.in ${CMAKE_CURRENT_BINARY_DIR}/vkgemm.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vkgemm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)

include(sbom.cmake)
if(PROJECT_IS_TOP_LEVEL)
  include(packages.cmake)
endif()
