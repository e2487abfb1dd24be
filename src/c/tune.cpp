// tune.cpp: the search for the fastest configuration of a problem.
#include "c/call.hpp"
#include "c/create_info.hpp"

using namespace vkgemm;
using namespace vkgemm::c;

namespace {

MaybeFailure read_info(const VkgemmTuneInfo& given, TuneInfo& cpp) {
  auto c = defaults<VkgemmTuneInfo>();
  if (auto failure = read_structure(given, "info", c)) return failure;
  if (auto failure = ToCpp::read(c, "info", cpp)) return failure;
  cpp.file = path_of(c.file);
  if (auto failure = check_array(c.offsets, "info.offsets", c.offset_count, "info.offset_count")) {
    return failure;
  }
  cpp.offsets = {c.offsets, c.offset_count};
  if (c.progress != nullptr) {
    cpp.progress = [call = c.progress, user_data = c.progress_user_data](const TuneProgress& at) {
      const auto progress = ToC::structure<VkgemmTuneProgress>(at);
      return call(&progress, user_data) != VK_FALSE;
    };
  }
  return {};
}

}  // namespace

VkgemmStatus vkgemm_tune(const VkgemmContext* context, const VkgemmProblem* problem,
                         const VkgemmTuneInfo* info, VkgemmTuneResult* result, VkgemmError* error) {
  return call(error, {handle(context, "context"), pointer(problem, "problem")},
              [&]() -> MaybeFailure {
                Problem read;
                TuneInfo options;
                if (auto failure = ToCpp::read(*problem, "problem", read)) return failure;
                if (info != nullptr) {
                  if (auto failure = read_info(*info, options)) return failure;
                }
                if (result != nullptr) {
                  const std::uint32_t size = result->struct_size;
                  if (auto failure = check_size<VkgemmTuneResult>(size, "result")) return failure;
                }
                const Result<TuneResult> tuned = context->context.tune(read, options);
                if (!tuned) return failure_of(tuned.error());
                if (result == nullptr) return {};
                VkgemmTuneResult c{};
                c.timed = tuned->timed;
                c.candidates = tuned->candidates;
                c.is_complete = tuned->is_complete ? VK_TRUE : VK_FALSE;
                c.config = context->keep(to_string(tuned->config));
                c.chosen = context->keep(to_string(tuned->chosen));
                c.microseconds = tuned->microseconds;
                c.chosen_us = tuned->chosen_us;
                return write_structure(c, result, "result");
              });
}

VKGEMM_GET_TEXT(vkgemm_default_tuning_file, const VkgemmCaps*, caps,
                utf8(default_tuning_file(caps->caps)))
