#include "quantise_rows.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "oracle/groups.hpp"
#include "oracle/row_quantisation.hpp"
#include "problem/convert.hpp"
#include "problem/data_type.hpp"

namespace vkgemm::test {
namespace {

oracle::View view_of(const RowQuantisation& q, const Matrix& matrix) {
  return oracle::view({matrix, q.rows, q.columns, q.batch});
}

}  // namespace

std::string why_not_quantised(const headless::Runner& device) {
  if (device.caps().int8_arithmetic) return {};
  return concat(device.caps().name, " has no ", byte_features);
}

QuantisedRows::QuantisedRows(const RowQuantisation& quantisation, std::uint64_t shift)
    : q_(quantisation) {
  source_ = make_buffer(view_of(q_, q_.source).bytes, shift * size_in_bytes(q_.source.type));
  codes_ = make_buffer(view_of(q_, q_.codes).bytes, shift);
  const std::uint64_t groups =
      q_.group_k == 0 ? 1 : divided_up(q_.columns, std::uint64_t{q_.group_k});
  scales_ = make_buffer(q_.batch * q_.rows * groups * sizeof(float), 4 * shift);
}

void QuantisedRows::fill(std::uint64_t seed) {
  std::uint64_t index = 0;
  for (std::uint64_t b = 0; b < q_.batch; ++b) {
    for (std::uint64_t i = 0; i < q_.rows; ++i) {
      const double size = std::exp2(static_cast<double>((7 * i + b) % 16) - 8.0);
      for (std::uint64_t j = 0; j < q_.columns; ++j) {
        set(i, j, size * fill_value(Fill::random, seed, index++), b);
      }
    }
  }
}

void QuantisedRows::set(std::uint64_t row, std::uint64_t column, double value,
                        std::uint64_t batch) {
  store_element(source_.data(), q_.source.type, view_of(q_, q_.source).index(batch, row, column),
                value);
}

double QuantisedRows::source(std::uint64_t row, std::uint64_t column, std::uint64_t batch) const {
  return load_element(source_.data(), q_.source.type,
                      view_of(q_, q_.source).index(batch, row, column));
}

double QuantisedRows::code(std::uint64_t row, std::uint64_t column, std::uint64_t batch) const {
  return load_element(codes_.data(), q_.codes.type,
                      view_of(q_, q_.codes).index(batch, row, column));
}

float QuantisedRows::scale(std::uint64_t row, std::uint64_t batch) const {
  return static_cast<float>(load_element(scales_.data(), DataType::f32, batch * q_.rows + row));
}

testing::AssertionResult QuantisedRows::run(headless::Runner& device) {
  const auto plan = device.context().plan_quantise_rows(q_);
  if (!plan) return succeeds(plan);
  const Operands wanted = plan->operands();
  if (wanted.source.bytes != source_.size || wanted.codes.bytes != codes_.size ||
      wanted.scales.bytes != scales_.size) {
    return testing::AssertionFailure()
           << "the plan wants " << wanted.source.bytes << ", " << wanted.codes.bytes << ", "
           << wanted.scales.bytes << " bytes";
  }
  std::ranges::fill(codes_.bytes, nan_byte);
  std::ranges::fill(scales_.bytes, nan_byte);
  headless::Buffer buffers[3];
  DeviceSpan spans[3];
  HostBuffer* const all[] = {&source_, &codes_, &scales_};
  for (std::size_t i = 0; i < 3; ++i) {
    auto made = device.allocate(all[i]->bytes.size());
    if (!made) return succeeds(made);
    buffers[i] = std::move(*made);
    spans[i] = buffers[i].span(all[i]->begin, all[i]->size);
    const auto sent = device.upload(buffers[i], 0, all[i]->bytes.data(), all[i]->bytes.size());
    if (!sent) return succeeds(sent);
  }
  const auto done = device.submit([&](VkCommandBuffer commands) {
    return plan->record(commands, {.source = spans[0], .codes = spans[1], .scales = spans[2]});
  });
  if (!done) return succeeds(done);
  for (std::size_t i = 1; i < 3; ++i) {
    const auto got = device.download(buffers[i], 0, all[i]->bytes.data(), all[i]->bytes.size());
    if (!got) return succeeds(got);
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult QuantisedRows::repeats() {
  const HostBuffer codes = codes_, scales = scales_;
  if (auto again = run(); !again) return again;
  if (auto same = same_bytes("codes", codes_, codes, DataType::s8); !same) return same;
  return same_bytes("scales", scales_, scales, DataType::f32);
}

testing::AssertionResult QuantisedRows::is_exact() const {
  HostBuffer codes = codes_, scales = scales_;
  std::ranges::fill(codes.bytes, nan_byte);
  std::ranges::fill(scales.bytes, nan_byte);
  oracle::quantise_rows(q_, source_.data(), codes.data(), scales.data());
  if (auto same = same_bytes("scales", scales_, scales, DataType::f32); !same) return same;
  return same_bytes("codes", codes_, codes, DataType::s8);
}

testing::AssertionResult QuantisedRows::is_near() const {
  for (std::uint64_t b = 0; b < q_.batch; ++b) {
    for (std::uint64_t i = 0; i < q_.rows; ++i) {
      double largest = 0.0;
      for (std::uint64_t j = 0; j < q_.columns; ++j) {
        largest = std::max(largest, std::fabs(source(i, j, b)));
      }
      const auto s = static_cast<double>(scale(i, b));
      if (!(std::fabs(s - largest / 127.0) <= largest / 127.0 * 0x1p-24)) {
        return testing::AssertionFailure()
               << "row " << i << " of matrix " << b << ": scale " << s << " of " << largest;
      }
      for (std::uint64_t j = 0; j < q_.columns; ++j) {
        const double x = source(i, j, b), c = code(i, j, b);
        // Roundings of the scale, the factor and the product.
        const double bound = s * (0.5 + 3.0 * 127.0 * 0x1p-24);
        if (std::fabs(c) <= 127.0 && std::fabs(c * s - x) <= bound) continue;
        return testing::AssertionFailure() << "element " << i << ", " << j << " of matrix " << b
                                           << ": code " << c << " · " << s << " of " << x;
      }
    }
  }
  return testing::AssertionSuccess();
}

RowQuantisation with_padding(RowQuantisation q, std::uint64_t padding, bool aligned) {
  const auto pad = [&](Matrix& matrix, std::uint64_t by) {
    matrix.ld = q.columns + by;
    if (q.batch > 1) matrix.batch_stride = q.rows * *matrix.ld + by;
    if (!aligned) matrix.alignment = size_in_bytes(matrix.type);
  };
  pad(q.source, padding);
  pad(q.codes, 2 * padding);
  return q;
}

}  // namespace vkgemm::test
