# Two packages, `sbx` and `libsbx-dev`, as .deb and as a tarball: cpack --config BUILD/CPackConfig.cmake -G DEB
set(CPACK_PACKAGE_NAME ${SBX_PROGRAM_NAME})
set(CPACK_PACKAGE_VENDOR "The sbx authors")
set(SBX_MAINTAINER "The sbx authors <maintainers@sbx.invalid>" CACHE STRING "Maintainer that the packages name")
set(SBX_HOMEPAGE "" CACHE STRING "Address of the project that the packages name")
set(CPACK_PACKAGE_CONTACT "${SBX_MAINTAINER}")
set(CPACK_PACKAGE_HOMEPAGE_URL "${SBX_HOMEPAGE}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runs untrusted programs under a policy")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR OFF)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CHECKSUM SHA256)
# CPack asks the dpkg of the building machine, and names tarballs after the system only.
set(CPACK_SYSTEM_NAME Linux-${CMAKE_SYSTEM_PROCESSOR})
set(debian_name_of_x86_64 amd64)
set(debian_name_of_aarch64 arm64)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${debian_name_of_${CMAKE_SYSTEM_PROCESSOR}})
# Inputs of dpkg and lintian, which contain the package's name. Some overrides apply only to a static program.
set(SBX_STATIC_OVERRIDES "")
if(SBX_STATIC)
  file(READ ${PROJECT_SOURCE_DIR}/share/debian/static.lintian-overrides.in overrides)
  string(CONFIGURE "${overrides}" SBX_STATIC_OVERRIDES @ONLY)
endif()
foreach(text postinst prerm postrm changelog program.lintian-overrides development.lintian-overrides)
  configure_file(${PROJECT_SOURCE_DIR}/share/debian/${text}.in ${PROJECT_BINARY_DIR}/debian/${text} @ONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
set(CPACK_SBX_OBJCOPY ${CMAKE_OBJCOPY})
set(CPACK_SBX_DEBIAN ${PROJECT_BINARY_DIR}/debian)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/SbxPackageKind.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/SbxPackageFiles.cmake)

# The tarball is one tree to unpack anywhere: no file depends on its location.
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME ${SBX_PROGRAM_NAME})
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA
  ${PROJECT_BINARY_DIR}/debian/postinst ${PROJECT_BINARY_DIR}/debian/prerm ${PROJECT_BINARY_DIR}/debian/postrm)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "It gives a program what a policy grants and nothing else, stops it when a
budget is spent, and reports how the run ended, by which limit, and what was
refused under which line of the policy. It needs no daemon, no image, no
set-user-ID bit and no account.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME lib${SBX_PROGRAM_NAME}-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${SBX_PROGRAM_NAME} (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "This package has a library of one function, which starts the installed sbx
and returns its record, with its header, CMake package and pkg-config file.")
include(CPack)
