// verdicts.cpp: refusals by the self-test and by the list of known drivers.
#include "kernels/verdicts.hpp"

#include <algorithm>
#include <variant>

#include "base/text.hpp"
#include "device/caps.hpp"
#include "kernels/check.hpp"
#include "kernels/main_loop.hpp"

namespace vkgemm {
namespace {

// True if a denial speaks for a configuration.
bool covers(const Denial& denial, const Config& c, DataType input) noexcept {
  return denial.path == c.path() && (!denial.input || *denial.input == input) &&
         descriptor(c).denied(denial, c);
}

}  // namespace

bool covers(const KernelKind& kind, const Config& c, const Inputs& inputs) noexcept {
  const LoopDescriptor& loop = descriptor(c);
  const MainLoop tried_as = loop.tried_as != nullptr ? loop.tried_as(inputs.type) : loop.kin;
  return kind.loop == tried_as && kind.input == inputs.type &&
         (inputs.codes || operands_of(kind) != KindOperands::codes) && loop.covers(kind, c);
}

bool covers(const Denial& denial, const KernelKind& kind) noexcept {
  const auto is_size = [&](std::uint32_t denied, std::string_view name) {
    const std::uint32_t* const size = find_number(kind, name);
    return is_any_or(denied, size != nullptr ? *size : 0);
  };
  return denial.path == path_of(kind.loop) && (!denial.input || *denial.input == kind.input) &&
         is_size(denial.m, "m") && is_size(denial.n, "n") && is_size(denial.k, "k");
}

bool has_passed(const Config& config, const Inputs& inputs, const DeviceCaps& caps) {
  const auto passed = [&](bool codes) {
    return std::ranges::any_of(caps.verdicts, [&](const Verdict& verdict) {
      return verdict.outcome == Outcome::passed &&
             (operands_of(verdict.kind) == KindOperands::codes) == codes &&
             covers(verdict.kind, config, inputs);
    });
  };
  return passed(false) && (!inputs.codes || !descriptor(config).needs_verdict || passed(true));
}

const Verdict* failed_verdict(const Config& config, const Inputs& inputs, const DeviceCaps& caps) {
  const auto found = std::ranges::find_if(caps.verdicts, [&](const Verdict& verdict) {
    return verdict.failed() && covers(verdict.kind, config, inputs);
  });
  return found != caps.verdicts.end() ? &*found : nullptr;
}

const Denial* denial(const Config& config, const Inputs& inputs, const DeviceCaps& caps) {
  const auto found = std::ranges::find_if(
      caps.denials, [&](const Denial& denial) { return covers(denial, config, inputs.type); });
  if (found == caps.denials.end() || has_passed(config, inputs, caps)) return nullptr;
  return &*found;
}

std::string why_failed(const Verdict& verdict, const DeviceCaps& caps) {
  std::string text =
      concat(to_string(verdict.kind), ": failed the self-test on driver ", driver_text(caps), ": ");
  if (verdict.outcome != Outcome::wrong_result || verdict.detail.empty()) {
    text += to_string(verdict.outcome);
    if (!verdict.detail.empty()) text += ": ";
  }
  return text += excerpt(verdict.detail);  // a file's, maybe
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
  const bool needed = descriptor(s.config).needs_verdict;
  if (!needed && s.caps.verdicts.empty() && s.caps.denials.empty()) return true;
  const Inputs inputs = inputs_of(*s.problem);
  if (const Verdict* const failed = failed_verdict(s.config, inputs, s.caps)) {
    return s.refuse([&] { return why_failed(*failed, s.caps); });
  }
  if (const Denial* const denied = denial(s.config, inputs, s.caps)) {
    return s.refuse("path ", to_string(s.config.path()), ": ", denied->reason);
  }
  const auto unusable = std::ranges::find_if(s.caps.verdicts, [&](const Verdict& verdict) {
    return verdict.outcome == Outcome::unusable && covers(verdict.kind, s.config, inputs);
  });
  if (unusable != s.caps.verdicts.end()) {
    return s.refuse([&] {
      return concat(to_string(unusable->kind),
                    ": not usable on this driver: ", excerpt(unusable->detail));
    });
  }
  if (needed && !has_passed(s.config, inputs, s.caps)) {
    return s.refuse("main loop ", to_string(s.config.main_loop()), " with ", to_string(inputs.type),
                    " inputs", inputs.codes ? " and codes" : "",
                    " needs a self-test that passed: `vkgemm info --self-test` once, or "
                    "`info.self_test = {.queue = queue, .queue_family = family};` before "
                    "Context::create()");
  }
  return true;
}

}  // namespace vkgemm
