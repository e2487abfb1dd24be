#include "runtime/functions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <string>
#include <string_view>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "embedded/embedded.hpp"
#include "lib/constants.h"

namespace vkgemm {
namespace {

// A module whose epilogue calls the function. Each build has one.
std::string_view any_module() {
  const auto modules = embedded::modules();
  const auto is_product = [](const embedded::Module& module) {
    return module.name.starts_with("gemm_");
  };
  return std::ranges::find_if(modules, is_product)->name;
}

std::string with_name(const EpilogueFunction& function, std::string_view why) {
  return concat("function ", function.name, ": ", why);
}

}  // namespace

Result<std::uint32_t> Functions::add(const EpilogueFunction& function) {
  if (function.name.empty()) return invalid_argument("function.name is empty");
  if (!(function.cost >= 0.0) || !std::isfinite(function.cost)) {
    return invalid_argument(with_name(
        function, concat("cost is ", function.cost, ": a number of at least 0 is needed")));
  }
  LinkedFunction own{
      std::string(function.name), {function.spirv.begin(), function.spirv.end()}, function.cost};
  // A function that does not link is refused here, not when a plan needs it.
  const std::array<std::uint32_t, SPEC_COUNT> constants{};
  const auto linked = kernel_words(any_module(), constants, true, &own);
  if (!linked) {
    return Error{linked.error().status, with_name(function, linked.error().message)};
  }
  const std::unique_lock lock(guarding_);
  all_.push_back(std::move(own));
  return static_cast<std::uint32_t>(all_.size());
}

const LinkedFunction* Functions::find(std::uint32_t number) const {
  const std::shared_lock lock(guarding_);
  return number != 0 && number <= all_.size() ? &all_[number - 1] : nullptr;
}

std::uint32_t Functions::count() const {
  const std::shared_lock lock(guarding_);
  return static_cast<std::uint32_t>(all_.size());
}

}  // namespace vkgemm
