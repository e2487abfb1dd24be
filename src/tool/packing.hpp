// packing.hpp: operands in packed form: packed on the device before they are multiplied, or loaded
// from a file that `vkgemm pack` has written.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "files/vkp.hpp"
#include "headless/runner.hpp"
#include "oracle/quantised.hpp"
#include "problem/operands.hpp"
#include "vkgemm/vkgemm.hpp"

namespace vkgemm::tool {

// The operands that are packed.
struct PackOptions {
  Packing a = Packing::plain;
  Packing b = Packing::plain;
  std::optional<Quantisation> codes;  // of B, which is packed then

  // Adds --packed-a, --packed-b and --quantised-b.
  void add(CLI::App& app);

  // The problem of packed operands. Those of `source` are what is packed: they lie plain.
  Problem packed(const Problem& source) const;
};

// The problem of plain operands, whose packing is to give those of `packed`.
Problem to_be_packed(Problem source, const Problem& packed);

// The problem with plain operands, one row behind the other.
Problem plain(const Problem& problem);

// "a", "b" or "ab", and of what codes b is: "b int4:group=128". Empty: no operand is packed.
std::string packed_operands(const Problem& problem);

std::string_view name_of(PackedOperand operand);

// An operand in packed form on the device.
struct PackedBuffer {
  PackedLayout layout;
  headless::Buffer buffer;

  DeviceSpan span() const { return buffer.span(); }
};

// The operands of a product on the device: plain, or packed.
struct DeviceOperands {
  PerOperand<headless::Buffer> plain;
  PerOperand<std::optional<PackedBuffer>> packed;
  headless::Buffer workspace;

  Operands operands() const;
};

// How far elements are from those that codes stand for.
struct QuantisationError {
  double largest = 0.0;   // difference
  double relative = 0.0;  // root of the sum of squares, over that of the elements
};
class QuantisationErrors {
 public:
  void add(double element, double difference) {
    largest_ = std::max(largest_, difference);
    squares_ += element * element;
    errors_ += difference * difference;
  }
  void add(const QuantisationErrors& others) {
    largest_ = std::max(largest_, others.largest_);
    squares_ += others.squares_;
    errors_ += others.errors_;
  }
  QuantisationError all() const {
    return {largest_, squares_ > 0.0 ? std::sqrt(errors_ / squares_) : 0.0};
  }

 private:
  double squares_ = 0.0, errors_ = 0.0, largest_ = 0.0;
};

// An operand that was packed here.
struct Packed {
  PackedBuffer form;
  std::optional<oracle::CodeMatrix> codes;  // if they are what was packed
  QuantisationError error;
};

// Packs an operand whose plain elements lie as `problem` says. `plain`: the elements on the device;
// if it is empty, they are brought there. If the problem has quantised_b, B becomes codes and
// `elements` become those that the codes stand for, rounded to their type. Fails if one is not
// finite, before or after. With `blocks`, they are the codes, and `elements` are not touched. Packs
// nothing if the device gains nothing.
Packed pack(headless::Runner& runner, const Problem& problem, PackedOperand operand,
            std::span<std::byte> elements, DeviceSpan plain = {},
            std::span<const std::byte> blocks = {});

// Adds an option for a text that parse_quantisation() knows.
CLI::Option* add_quantisation(CLI::App& app, const std::string& names,
                              std::optional<Quantisation>& value, const std::string& help);

// Memory for what the file holds. A Failure says why this is not the problem's operand, packed for
// this device.
PackedBuffer prepare_loading(headless::Runner& runner, const Problem& problem,
                             const std::string& file, const files::PackedHeader& header,
                             std::uint64_t payload_bytes);

}  // namespace vkgemm::tool
