#include "oracle/findings.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "problem/convert.hpp"
#include "problem/data_type.hpp"

namespace vkgemm::oracle {

Rounding rounding(DataType type, double zero_point) {
  const DataTypeRow& row = row_of(type);
  return {row.unit_roundoff, row.smallest, row.largest, type, zero_point};
}

double Rounding::cast(double x) const {
  if (is_integer(type)) x = (std::isnan(x) ? 0.0 : std::nearbyint(x)) + zero_point;
  std::uint8_t code = 0;
  store_element(&code, type, 0, x);
  return load_element(&code, type, 0);
}

namespace {

// A cast to 8 bits is monotonic: it is known what it makes of each number within the bound.
Comparison compare_bytes(double got, double expected, double bound, const Rounding& cast,
                         bool unpredictable) {
  Comparison result;
  const double exact = cast.cast(expected);
  if (std::isnan(expected)) {
    result.ok = std::isnan(exact) ? std::isnan(got) : got == exact;
    return result;
  }
  if (unpredictable) return result;
  if (std::isinf(expected)) bound = 0.0;
  const double low = cast.cast(expected - bound), high = cast.cast(expected + bound);
  result.bound = std::max(high - exact, exact - low);
  result.error = std::isnan(got) ? 0.0 : std::fabs(got - exact);
  result.ok = low <= got && got <= high;
  return result;
}

}  // namespace

Comparison compare(double got, double expected, double bound, const Rounding& cast,
                   bool unpredictable) {
  if (is_byte(cast.type)) return compare_bytes(got, expected, bound, cast, unpredictable);
  Comparison result;
  if (std::isnan(expected)) {
    result.ok = std::isnan(got);
    return result;
  }
  if (std::isinf(expected)) {
    result.ok = got == expected;
    return result;
  }
  if (unpredictable) return result;
  result.bound = bound * (1.0 + cast.unit) + cast.unit * std::fabs(expected) + cast.smallest;
  if (std::isnan(got)) {
    result.ok = false;
  } else if (std::isinf(got)) {
    result.ok =
        std::signbit(got) == std::signbit(expected) && std::fabs(expected) + bound >= cast.largest;
  } else {
    result.error = std::fabs(got - expected);
    result.ok = result.error <= result.bound;
  }
  return result;
}

void Findings::add(const char* operand, std::uint64_t batch, std::uint64_t i, std::uint64_t j,
                   double got, double expected, const Comparison& comparison) {
  ++report_.checked;
  if (std::isfinite(expected) && std::isfinite(got)) {
    squared_error_ += comparison.error * comparison.error;
    squared_size_ += expected * expected;
    report_.max_abs_error = std::max(report_.max_abs_error, comparison.error);
    if (comparison.bound > 0.0) {
      report_.max_rel_to_bound =
          std::max(report_.max_rel_to_bound, comparison.error / comparison.bound);
    }
  }
  if (comparison.ok) return;
  ++report_.failures;
  const Place place{batch, i, j};
  if (report_.failures > 1 && !(place < first_)) return;
  first_ = place;
  char text[192];
  std::snprintf(text, sizeof text, "%s[batch %llu, %llu, %llu] is %.9g, expected %.9g ± %.3g",
                operand, static_cast<unsigned long long>(batch), static_cast<unsigned long long>(i),
                static_cast<unsigned long long>(j), got, expected, comparison.bound);
  report_.first_failure = text;
}

void Findings::merge(const Findings& other) {
  if (other.report_.failures != 0 && (report_.failures == 0 || other.first_ < first_)) {
    first_ = other.first_;
    report_.first_failure = other.report_.first_failure;
  }
  report_.checked += other.report_.checked;
  report_.failures += other.report_.failures;
  report_.max_abs_error = std::max(report_.max_abs_error, other.report_.max_abs_error);
  report_.max_rel_to_bound = std::max(report_.max_rel_to_bound, other.report_.max_rel_to_bound);
  squared_error_ += other.squared_error_;
  squared_size_ += other.squared_size_;
}

VerifyReport Findings::finish() const {
  VerifyReport report = report_;
  if (squared_size_ > 0.0) report.relative_error = std::sqrt(squared_error_ / squared_size_);
  return report;
}

}  // namespace vkgemm::oracle
