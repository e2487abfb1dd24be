// loss.hpp: what the choice of a tuning table loses, a row for each problem: as
// `vkgemm tune --compare --json` prints it, summed up.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vkgemm/result.hpp"

namespace vkgemm::report {

struct LossRow {
  std::string list;          // the problems that are summed up together
  std::string label;         // for people
  std::string problem;       // arguments of `vkgemm run`
  std::string error;         // why there is nothing to compare
  std::string choice, best;  // configurations: the built-in table's, and the fastest that was timed
  double choice_us = 0.0, best_us = 0.0;  // medians
  bool tuned = false;                     // the choice is a tuned shape's
  double estimate_us = 0.0;               // of what estimates alone would choose then; 0: not timed
  std::uint64_t tried = 0, legal = 0;     // configurations

  bool counts() const noexcept {
    return choice_us > 0.0 && best_us > 0.0 && std::isfinite(loss()) && loss() > 0.0;
  }
  double loss() const noexcept { return choice_us / best_us; }
  // 0: not known.
  double loss_of_estimate() const noexcept { return tuned ? estimate_us / best_us : loss(); }
};

// Lines of other things that --json prints are passed over; a later row replaces one of the same
// list and problem. Errors begin with source:line and name the field.
Result<void> add_loss_rows(std::vector<LossRow>& rows, std::string_view text,
                           std::string_view source);

// The losses of one list, summed up.
struct LossSummary {
  std::string list;
  std::size_t compared = 0, not_compared = 0;
  double mean = 0.0;  // geometric
  double worst = 0.0;
  std::string worst_label;
  std::size_t tuned = 0;        // of those compared: chosen by tuned shapes
  std::size_t estimates = 0;    // of those compared: what estimates alone would lose is known
  double estimates_mean = 0.0;  // of these
  double estimates_worst = 0.0;
  std::uint64_t tried = 0, legal = 0;  // medians of problems
};
std::vector<LossSummary> summarize(const std::vector<LossRow>& rows);

// "loss: dense 60 problems, geometric mean 1.030, worst 1.180 (8192x8192x8192 f16); the best of 31
// tried of 1240 legal configurations (medians); 58 by tuned shapes; estimates alone would lose
// 1.040 (60), worst 1.310"
std::string to_string(const LossSummary& summary);

}  // namespace vkgemm::report
