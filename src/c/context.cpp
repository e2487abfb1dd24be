// context.cpp: contexts, and the configurations that they know.
#include "c/call.hpp"
#include "c/create_info.hpp"

using namespace vkgemm;
using namespace vkgemm::c;

VkgemmStatus vkgemm_context_create(const VkgemmContextCreateInfo* info, VkgemmContext** context,
                                   VkgemmError* error) {
  return call(error, {pointer(info, "info"), pointer(context, "context")}, [&]() -> MaybeFailure {
    CreateInfo read;
    if (auto failure = read.read(*info)) return failure;
    Result<Context> created = Context::create(read.cpp);
    if (!created) return failure_of(created.error());
    *context = new VkgemmContext(*std::move(created));
    return {};
  });
}

VKGEMM_DESTROY(vkgemm_context_destroy, VkgemmContext*, context)

VKGEMM_GET(vkgemm_context_caps, const VkgemmContext*, context, const VkgemmCaps**, caps,
           &context->caps)

VkgemmStatus vkgemm_context_verdicts(const VkgemmContext* context, VkgemmVerdicts** verdicts) {
  return call(nullptr, {handle(context, "context"), pointer(verdicts, "verdicts")}, [&] {
    const auto from = context->context.verdicts();
    *verdicts = new VkgemmVerdicts({from.begin(), from.end()});
  });
}

VkgemmStatus vkgemm_context_add_function(const VkgemmContext* context, const char* name,
                                         const uint32_t* spirv, size_t words, double cost,
                                         uint32_t* function, VkgemmError* error) {
  return call(error,
              {handle(context, "context"), pointer(name, "name"), pointer(spirv, "spirv"),
               pointer(function, "function")},
              [&]() -> MaybeFailure {
                const auto added = context->context.add_function(
                    {.name = name, .spirv = {spirv, words}, .cost = cost});
                if (!added) return failure_of(added.error());
                *function = *added;
                return {};
              });
}

VKGEMM_GET(vkgemm_context_barrier_aborts, const VkgemmContext*, context, uint32_t*, count,
           context->context.barrier_aborts())

VkgemmStatus vkgemm_context_notify_device_lost(const VkgemmContext* context) {
  return call(nullptr, {handle(context, "context")},
              [&] { context->context.notify_device_lost(); });
}

VKGEMM_GET(vkgemm_context_device_lost, const VkgemmContext*, context, VkBool32*, lost,
           context->context.device_lost() ? VK_TRUE : VK_FALSE)

VkgemmStatus vkgemm_context_save_pipeline_cache(const VkgemmContext* context, VkgemmError* error) {
  return call(error, {handle(context, "context")},
              [&]() -> MaybeFailure { return failure_of(context->context.save_pipeline_cache()); });
}

VkgemmStatus vkgemm_candidates_create(const VkgemmContext* context, const VkgemmProblem* problem,
                                      VkgemmCandidates** candidates, VkgemmError* error) {
  return call(
      error,
      {handle(context, "context"), pointer(problem, "problem"), pointer(candidates, "candidates")},
      [&]() -> MaybeFailure {
        Problem read;
        if (auto failure = ToCpp::read(*problem, "problem", read)) return failure;
        Result<std::vector<Candidate>> found = context->context.candidates(read);
        if (!found) return failure_of(found.error());
        auto list = std::make_unique<VkgemmCandidates>();
        for (Candidate& candidate : *found) {
          list->candidates.push_back(
              {to_string(candidate.config), std::move(candidate.provenance)});
        }
        *candidates = list.release();
        return {};
      });
}

VKGEMM_DESTROY(vkgemm_candidates_destroy, VkgemmCandidates*, candidates)

VKGEMM_GET(vkgemm_candidates_count, const VkgemmCandidates*, candidates, uint32_t*, count,
           static_cast<std::uint32_t>(candidates->candidates.size()))

VkgemmStatus vkgemm_candidates_get(const VkgemmCandidates* candidates, uint32_t index,
                                   const char** config, const char** provenance) {
  return call(nullptr,
              {handle(candidates, "candidates"), pointer(config, "config"),
               pointer(provenance, "provenance")},
              [&]() -> MaybeFailure {
                const auto& list = candidates->candidates;
                if (auto failure = check_index(index, list.size())) return failure;
                *config = list[index].config.c_str();
                *provenance = list[index].provenance.c_str();
                return {};
              });
}
