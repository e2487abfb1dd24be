// legality_verdicts.cpp: what the self-test and the deny-list say against a configuration.
#include <algorithm>

#include "../shaders/lib/gemm_params.h"
#include "kernel.hpp"
#include "legality_case.hpp"
#include "self_test.hpp"
#include "text.hpp"

namespace vkgemm {
namespace {

bool is_any_or(std::uint32_t wanted, std::uint32_t value) noexcept {
  return wanted == 0 || wanted == value;
}

// The kind that a configuration is of, as far as denials ask.
bool covers(const Denial& denial, const Config& c, DataType input) noexcept {
  if (denial.path != c.path || (denial.input && *denial.input != input)) return false;
  const auto divides = [](std::uint32_t wanted, std::uint32_t size) {
    return wanted == 0 || size % wanted == 0;
  };
  switch (c.path) {
    case Path::khr:
      return is_any_or(denial.m, c.fragment_m) && is_any_or(denial.n, c.fragment_n) &&
             is_any_or(denial.k, c.fragment_k);
    case Path::nv:
      return divides(denial.m, c.tile_m) && divides(denial.n, c.tile_n) &&
             divides(denial.k, c.tile_k);
    case Path::fma:
      return is_any_or(denial.k, c.fragment_k);
  }
  return false;
}

bool has_passed(const Config& config, DataType input, const DeviceCaps& caps) {
  return std::ranges::any_of(caps.verdicts, [&](const Verdict& verdict) {
    return verdict.outcome == Outcome::passed && covers(verdict.kind, config, input);
  });
}

}  // namespace

bool covers(const KernelKind& kind, const Config& c, DataType input) noexcept {
  if (kind.path != c.path || kind.input != input) return false;
  switch (kind.path) {
    case Path::khr:
      return kind.m == c.fragment_m && kind.n == c.fragment_n && kind.k == c.fragment_k &&
             kind.subgroup_size == c.subgroup_size;
    case Path::nv:
      return kind.invocations == c.invocations && kind.m != 0 && c.tile_m % kind.m == 0 &&
             kind.n != 0 && c.tile_n % kind.n == 0 && kind.k != 0 && c.tile_k % kind.k == 0;
    case Path::fma:
      return is_thin(c) == (kind.k == THIN_PIECE);
  }
  return false;
}

bool covers(const Denial& denial, const KernelKind& kind) noexcept {
  return denial.path == kind.path && (!denial.input || *denial.input == kind.input) &&
         is_any_or(denial.m, kind.m) && is_any_or(denial.n, kind.n) && is_any_or(denial.k, kind.k);
}

const Verdict* failed_verdict(const Config& config, DataType input, const DeviceCaps& caps) {
  const auto found = std::ranges::find_if(caps.verdicts, [&](const Verdict& verdict) {
    return verdict.failed() && covers(verdict.kind, config, input);
  });
  return found != caps.verdicts.end() ? &*found : nullptr;
}

const Denial* denial(const Config& config, DataType input, const DeviceCaps& caps) {
  const auto found = std::ranges::find_if(
      caps.denials, [&](const Denial& denial) { return covers(denial, config, input); });
  if (found == caps.denials.end() || has_passed(config, input, caps)) return nullptr;
  return &*found;
}

std::string driver_text(const DeviceCaps& caps) {
  if (caps.driver_info.empty()) return caps.driver_name;
  return concat(caps.driver_name, " ", caps.driver_info);
}

std::string why_failed(const Verdict& verdict, const DeviceCaps& caps) {
  std::string text =
      concat(to_string(verdict.kind), ": failed the self-test on driver ", driver_text(caps), ": ");
  if (verdict.outcome != Outcome::wrong_result || verdict.detail.empty()) {
    text += to_string(verdict.outcome);
    if (!verdict.detail.empty()) text += ": ";
  }
  return text += verdict.detail;
}

std::vector<std::string> refusals(DataType input, const DeviceCaps& caps) {
  std::vector<std::string> reasons;
  for (const Verdict& verdict : caps.verdicts) {
    if (verdict.failed() && verdict.kind.input == input) {
      reasons.push_back(why_failed(verdict, caps));
    }
  }
  for (const Denial& denial : caps.denials) {
    if (!denial.input || *denial.input == input) {
      reasons.push_back(concat("path ", to_string(denial.path), ": ", denial.reason,
                               " (but for what passed the self-test)"));
    }
  }
  return reasons;
}

bool check_verdicts(const Case& s) {
  if (s.caps.verdicts.empty() && s.caps.denials.empty()) return true;
  const DataType input = s.problem.a.type;
  if (const Verdict* const failed = failed_verdict(s.config, input, s.caps)) {
    return s.reason != nullptr ? s.refuse(why_failed(*failed, s.caps)) : false;
  }
  if (const Denial* const denied = denial(s.config, input, s.caps)) {
    return s.refuse("path ", to_string(s.config.path), ": ", denied->reason);
  }
  return true;
}

}  // namespace vkgemm
