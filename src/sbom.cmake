# What is linked in, as SPDX 2.3 in JSON: a file for the library and one for the tool, whose dependencies are more. All
# of them are compiled in, in the versions that their headers name.
string(TIMESTAMP created "%Y-%m-%dT%H:%M:%SZ" UTC) # $SOURCE_DATE_EPOCH, where that is set

# vkgemm_header_version(variable header "regular expression of the lines" ...): their numbers, with points between.
function(vkgemm_header_version variable header)
  set(version "")
  foreach(expression IN LISTS ARGN)
    file(STRINGS ${header} line REGEX "${expression}" LIMIT_COUNT 1)
    string(REGEX REPLACE "^.*${expression}[^0-9]*([0-9.]+).*$" "\\1" number "${line}")
    list(APPEND version ${number})
  endforeach()
  list(JOIN version "." version)
  if(NOT version MATCHES "^[0-9.]+$")
    message(FATAL_ERROR "vkgemm: ${header} does not say its version as it used to: src/sbom.cmake")
  endif()
  set(${variable} ${version} PARENT_SCOPE)
endfunction()

# vkgemm_spdx_package(variable id name version licence): an object of "packages".
function(vkgemm_spdx_package variable id name version licence)
  set(${variable} "    {\"SPDXID\": \"SPDXRef-${id}\", \"name\": \"${name}\", \"versionInfo\": \"${version}\", \
\"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false, \"licenseConcluded\": \"${licence}\", \
\"licenseDeclared\": \"${licence}\", \"copyrightText\": \"NOASSERTION\"}" PARENT_SCOPE)
endfunction()

# vkgemm_write_sbom(name component dependency ...), each of "id|name|version|licence"
function(vkgemm_write_sbom name component)
  vkgemm_spdx_package(packages ${name} ${name} ${PROJECT_VERSION} NOASSERTION)
  set(relationships "    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \
\"relatedSpdxElement\": \"SPDXRef-${name}\"}")
  foreach(dependency IN LISTS ARGN)
    string(REPLACE "|" ";" fields "${dependency}")
    list(GET fields 0 id)
    vkgemm_spdx_package(package ${fields})
    string(APPEND packages ",\n${package}")
    string(APPEND relationships ",\n    {\"spdxElementId\": \"SPDXRef-${name}\", \"relationshipType\": \"STATIC_LINK\", \
\"relatedSpdxElement\": \"SPDXRef-${id}\"}")
  endforeach()
  string(UUID uuid NAMESPACE 6ba7b812-9dad-11d1-80b4-00c04fd430c8 NAME "${packages}${created}" TYPE SHA1)
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}.spdx.json "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"${name}-${PROJECT_VERSION}\",
  \"documentNamespace\": \"urn:uuid:${uuid}\",
  \"creationInfo\": {\"created\": \"${created}\", \"creators\": [\"Tool: CMake-${CMAKE_VERSION}\"]},
  \"packages\": [\n${packages}\n  ],
  \"relationships\": [\n${relationships}\n  ]
}
")
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.spdx.json DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
          COMPONENT ${component})
endfunction()

vkgemm_header_version(version ${json_headers}/nlohmann/detail/abi_macros.hpp
  "define NLOHMANN_JSON_VERSION_MAJOR" "define NLOHMANN_JSON_VERSION_MINOR" "define NLOHMANN_JSON_VERSION_PATCH")
set(dependencies "nlohmann-json|JSON for Modern C++|${version}|MIT")
if(zstd_source)
  vkgemm_header_version(version ${zstd_source}/zstd.h
    "define ZSTD_VERSION_MAJOR" "define ZSTD_VERSION_MINOR" "define ZSTD_VERSION_RELEASE")
  list(APPEND dependencies "zstd|Zstandard|${version}|BSD-3-Clause OR GPL-2.0-only")
endif()
file(STRINGS ${spirv_headers}/spirv/unified1/spirv.hpp11 line REGEX "Version = 0x" LIMIT_COUNT 1)
string(REGEX REPLACE "^.*0x00(..)(..)00.*$" "\\1.\\2" version "${line}") # 01.06: the specification's
list(APPEND dependencies "spirv-headers|SPIRV-Headers|${version}|MIT")
vkgemm_header_version(version ${vulkan_headers}/vulkan/vulkan_core.h
  "HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION.0," "HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION.0, 1," "define VK_HEADER_VERSION")
list(APPEND dependencies "vulkan-headers|Vulkan-Headers|${version}|Apache-2.0 OR MIT")
set(component development)
if(BUILD_SHARED_LIBS)
  set(component runtime)
endif()
vkgemm_write_sbom(libvkgemm ${component} ${dependencies})
# A binary must come with the notice of what is compiled into it.
foreach(licence IN ITEMS ${zstd_source}/../LICENSE ${vkgemm_vendored}/LICENCE.zstd)
  if(zstd_source AND EXISTS ${licence})
    install(FILES ${licence} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libvkgemm RENAME LICENCE.zstd COMPONENT ${component})
    if(TARGET vkgemm_tool)
      install(FILES ${licence} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/vkgemm RENAME LICENCE.zstd COMPONENT tool)
    endif()
    break()
  endif()
endforeach()
if(TARGET vkgemm_tool)
  vkgemm_header_version(version ${volk_headers}/volk.h "define VOLK_HEADER_VERSION")
  list(APPEND dependencies "volk|volk|${version}|MIT")
  vkgemm_header_version(version ${vma_headers}/vk_mem_alloc.h "<b>Version")
  list(APPEND dependencies "vulkan-memory-allocator|Vulkan Memory Allocator|${version}|MIT")
  vkgemm_header_version(version ${cli11_headers}/CLI/Version.hpp "define CLI11_VERSION ")
  list(APPEND dependencies "cli11|CLI11|${version}|BSD-3-Clause")
  vkgemm_write_sbom(vkgemm tool ${dependencies})
endif()
