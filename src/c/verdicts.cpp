// verdicts.cpp: lists of the self-test's verdicts.
#include "c/call.hpp"
#include "c/create_info.hpp"

using namespace vkgemm;
using namespace vkgemm::c;

VkgemmStatus vkgemm_verdicts_create(VkgemmVerdicts** verdicts) {
  return call(nullptr, {pointer(verdicts, "verdicts")}, [&] { *verdicts = new VkgemmVerdicts; });
}

VkgemmStatus vkgemm_verdicts_load(const VkgemmCaps* caps, const char* file,
                                  VkgemmVerdicts** verdicts, VkgemmError* error) {
  return call(error, {handle(caps, "caps"), pointer(file, "file"), pointer(verdicts, "verdicts")},
              [&]() -> MaybeFailure {
                Result<std::vector<Verdict>> loaded = load_verdicts(path_of(file), caps->caps);
                if (!loaded) return failure_of(loaded.error());
                *verdicts = new VkgemmVerdicts(*std::move(loaded));
                return {};
              });
}

VkgemmStatus vkgemm_verdicts_save(const VkgemmVerdicts* verdicts, const VkgemmCaps* caps,
                                  const char* file, VkgemmError* error) {
  return call(error, {handle(verdicts, "verdicts"), handle(caps, "caps"), pointer(file, "file")},
              [&]() -> MaybeFailure {
                return failure_of(save_verdicts(path_of(file), caps->caps, verdicts->verdicts));
              });
}

VKGEMM_DESTROY(vkgemm_verdicts_destroy, VkgemmVerdicts*, verdicts)

VkgemmStatus vkgemm_verdicts_add(VkgemmVerdicts* verdicts, const VkgemmVerdict* verdict,
                                 VkgemmError* error) {
  return call(error, {handle(verdicts, "verdicts"), pointer(verdict, "verdict")},
              [&]() -> MaybeFailure {
                Verdict read;
                if (auto failure = ToCpp::read(*verdict, "verdict", read)) return failure;
                verdicts->verdicts.push_back(std::move(read));
                return {};
              });
}

VKGEMM_GET(vkgemm_verdicts_count, const VkgemmVerdicts*, verdicts, uint32_t*, count,
           static_cast<std::uint32_t>(verdicts->verdicts.size()))

VKGEMM_GET_ELEMENT(vkgemm_verdicts_get, const VkgemmVerdicts*, verdicts, VkgemmVerdict*, verdict,
                   verdicts->verdicts)

VKGEMM_GET_TEXT(vkgemm_default_verdict_file, const VkgemmCaps*, caps,
                utf8(default_verdict_file(caps->caps)))
