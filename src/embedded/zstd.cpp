// zstd's decoder, in an unnamed namespace because an application may link its own zstd. CMake
// copies the sources and gives their declarations C++ linkage (third_party/dependencies.cmake).
#include "embedded/zstd.hpp"

#include <memory>

#ifdef VKGEMM_SYSTEM_ZSTD

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#else

// The headers that zstd includes must be outside the namespace.
#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _MSC_VER
#include <intrin.h>
#endif

#define DEBUGLEVEL 0
#define DYNAMIC_BMI2 0
#define HUF_FORCE_DECOMPRESS_X1
#define MEM_MODULE
#define XXH_INLINE_ALL
#define XXH_NAMESPACE ZSTD_
#define XXH_NO_XXH3
#define XXH_PRIVATE_API
#define ZSTD_DISABLE_ASM 1
#define ZSTD_FORCE_DECOMPRESS_SEQUENCES_SHORT
#define ZSTD_LEGACY_SUPPORT 0
#define ZSTD_NO_INTRINSICS
#define ZSTD_STRIP_ERROR_STRINGS
#define ZSTD_TRACE 0

namespace vkgemm::embedded {
namespace {
#include <common/debug.c>
#include <common/entropy_common.c>
#include <common/error_private.c>
#include <common/fse_decompress.c>
#include <common/zstd_common.c>
#include <decompress/huf_decompress.c>
#include <decompress/zstd_ddict.c>
#include <decompress/zstd_decompress.c>
#include <decompress/zstd_decompress_block.c>
}  // namespace
}  // namespace vkgemm::embedded

#endif

namespace vkgemm::embedded {

bool decompress(std::span<const std::byte> frame, std::span<std::byte> out, std::size_t wanted) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  if (!context || ZSTD_isError(ZSTD_decompressBegin(context.get())) != 0) return false;
  std::size_t done = 0;
  // Blocks after the wanted bytes are not decompressed.
  while (done < wanted) {
    const std::size_t next = ZSTD_nextSrcSizeToDecompress(context.get());
    if (next == 0 || next > frame.size()) return false;
    const std::size_t bytes = ZSTD_decompressContinue(context.get(), out.data() + done,
                                                      out.size() - done, frame.data(), next);
    if (ZSTD_isError(bytes) != 0) return false;
    frame = frame.subspan(next);
    done += bytes;
  }
  return true;
}

}  // namespace vkgemm::embedded
