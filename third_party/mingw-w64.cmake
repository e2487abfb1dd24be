# Builds for 64-bit Windows by Debian's g++-mingw-w64-x86-64-posix; what is built runs under wine, here too.
# Executables need no DLL that is not Windows' own.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -static)
find_program(VKGEMM_WINE NAMES wine64 wine HINTS /usr/lib/wine)
mark_as_advanced(VKGEMM_WINE)
if(VKGEMM_WINE)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${VKGEMM_WINE})
endif()
# Header-only libraries are the private toolchain's, programs this machine's, libraries the compiler's alone.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
