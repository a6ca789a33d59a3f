# Cross build for 64-bit Arm with Debian's own compiler. The libraries come from a directory of unpacked packages, SBX_SYSROOT:
# scripts/build-arm64 makes it and builds.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(SBX_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/arm64-root" CACHE PATH "Unpacked arm64 packages: scripts/arm64-root")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SBX_SYSROOT) # compiler checks read this file too
file(REAL_PATH "${SBX_SYSROOT}" root)
set(CMAKE_SYSROOT ${root})
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()

# The build runs a program of its own, which packs the policies.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${root})
