#include "runtime/fingerprint.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "kernels/tiling.hpp"

namespace vkgemm {
namespace {

// Counts the changes of packed orders.
constexpr std::uint32_t layout_version = 6;

using QuantisationBytes = std::array<std::uint8_t, 4>;

// The bytes of a fingerprint, in the order of the machine.
struct Identity {
  std::uint32_t layout_version = 0;
  std::uint32_t vendor_id = 0;
  std::uint32_t device_id = 0;
  std::uint32_t driver_version = 0;
  std::array<std::uint8_t, VK_UUID_SIZE> pipeline_cache_uuid{};
  std::uint8_t type = 0;
  std::uint8_t is_a = 0;  // of the product as it is solved: a column-major D swaps A and B
  std::uint8_t halves = 0;
  std::uint8_t swapped = 0;
  std::uint32_t fragment_mn = 0;  // 0: in rows
  std::uint32_t fragment_k = 0;
  std::uint32_t subgroup_size = 0;
  std::uint32_t width = 0;
  std::uint32_t k = 0;
  std::uint8_t interleaved = 0;
  std::uint8_t parts = 0;  // of an f32; 0: it isn't one
  std::array<std::uint8_t, 2> unused{};
  // A quantised B: type + 1, scale type, group_k / 16, zeros (2: floats).
  QuantisationBytes quantisation{};
};
static_assert(sizeof(Identity) == sizeof(Fingerprint::bytes));

QuantisationBytes encoded(const std::optional<Quantisation>& q) {
  if (!q) return {};
  return {static_cast<std::uint8_t>(static_cast<unsigned>(q->type) + 1),
          static_cast<std::uint8_t>(q->scale_type), static_cast<std::uint8_t>(q->group_k / 16),
          static_cast<std::uint8_t>(q->zeros + q->float_zeros)};
}

std::optional<Quantisation> decoded(const QuantisationBytes& bytes) {
  if (bytes[0] == 0) return std::nullopt;
  return Quantisation{.type = static_cast<CodeType>(bytes[0] - 1),
                      .group_k = bytes[2] * 16u,
                      .scale_type = static_cast<DataType>(bytes[1]),
                      .zeros = bytes[3] != 0,
                      .float_zeros = bytes[3] == 2};
}

std::string quantisation_text(const QuantisationBytes& bytes) {
  const auto quantisation = decoded(bytes);
  return quantisation ? to_string(*quantisation) : "none";
}

std::string hex(const std::array<std::uint8_t, VK_UUID_SIZE>& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte / 16];
    text += digits[byte % 16];
  }
  return text;
}

// Names the remedy if a plan does not take bytes with this fingerprint.
std::string_view remedy(const Fingerprint& given, const Fingerprint& wanted) {
  auto in_order = std::bit_cast<Identity>(wanted.bytes);
  const auto g = std::bit_cast<Identity>(given.bytes);
  const bool rows = g.fragment_mn == 0 && in_order.fragment_mn != 0;
  in_order.fragment_mn = g.fragment_mn;
  in_order.fragment_k = g.fragment_k;
  in_order.subgroup_size = g.subgroup_size;
  in_order.swapped = g.swapped;
  in_order.interleaved = g.interleaved;
  return rows && difference(given, {std::bit_cast<decltype(given.bytes)>(in_order)}).empty()
             ? "pack the matrix again, or plan with Packing::packed_rows"
             : "pack the matrix again for this product and device";
}

}  // namespace

Fingerprint fingerprint_of(const ResolvedMatrix& packed, std::uint64_t width, std::uint64_t k,
                           const DeviceCaps& caps) {
  const FragmentOrder order = packed.fragments.value_or(FragmentOrder{});
  return {std::bit_cast<decltype(Fingerprint::bytes)>(
      Identity{.layout_version = layout_version,
               .vendor_id = caps.vendor_id,
               .device_id = caps.device_id,
               .driver_version = caps.driver_version,
               .pipeline_cache_uuid = caps.pipeline_cache_uuid,
               .type = static_cast<std::uint8_t>(packed.type),
               .is_a = packed.layout == Layout::col_major,
               .halves = packed.halves_apart,
               .swapped = order.swapped,
               .fragment_mn = order.mn,
               .fragment_k = order.k,
               .subgroup_size = order.subgroup_size,
               .width = narrow(width),
               .k = narrow(k),
               .interleaved = order.interleaved,
               .parts = static_cast<std::uint8_t>(packed.parts() == 1 ? 0 : packed.parts()),
               .quantisation = encoded(packed.quantisation)})};
}

std::optional<Quantisation> quantisation_of(const Fingerprint& fingerprint) {
  return decoded(std::bit_cast<Identity>(fingerprint.bytes).quantisation);
}

std::string order_text(const Fingerprint& fingerprint) {
  const auto i = std::bit_cast<Identity>(fingerprint.bytes);
  if (i.fragment_mn == 0) {
    return i.quantisation[0] == 0 ? "rows"
                                  : concat("rows, codes ", quantisation_text(i.quantisation));
  }
  return concat("fragments of ", i.fragment_mn, "x", i.fragment_k, " for subgroups of ",
                i.subgroup_size, i.swapped != 0 ? ", swapped" : "",
                i.interleaved != 0 ? ", interleaved" : "",
                i.quantisation[0] != 0 ? concat(", codes ", quantisation_text(i.quantisation))
                                       : std::string());
}

Packing packing_of(const Fingerprint& fingerprint) {
  const auto i = std::bit_cast<Identity>(fingerprint.bytes);
  return i.fragment_mn == 0 ? Packing::packed_rows : Packing::packed;
}

Fingerprints fingerprints_of(const ResolvedProblem& p, const DeviceCaps& caps) {
  Fingerprints out{.has_b_right = p.is_gated(GatedB::separate)};
  const bool is_used = !p.is_empty() && p.k != 0;
  if (is_used && p.a.is_packed()) {
    (p.transposed ? out.b : out.a) = fingerprint_of(p.a, p.m, p.k, caps);
  }
  if (is_used && p.b.is_packed()) {
    (p.transposed ? out.a : out.b) = fingerprint_of(p.b, p.n, p.k, caps);
  }
  return out;
}

std::string difference(const Fingerprint& given, const Fingerprint& wanted) {
  if (given == wanted) return {};
  if (given == Fingerprint{}) return "is not given";
  const auto g = std::bit_cast<Identity>(given.bytes), w = std::bit_cast<Identity>(wanted.bytes);
  std::string text;
  const auto same = [&](std::string_view field, const auto& is, const auto& should) {
    if (is != should) text = concat(field, " is ", is, ", wanted is ", should);
    return is == should;
  };
  const auto type = [](const Identity& i) { return to_string(static_cast<DataType>(i.type)); };
  const auto parts = [](const Identity& i) { return unsigned{i.parts}; };
  const auto place = [](const Identity& i) { return std::string_view(i.is_a != 0 ? "a" : "b"); };
  const auto packed = [](const Identity& i) {
    return std::string_view(i.halves != 0 ? "both halves of a gated product" : "one matrix");
  };
  if (!same("layout_version", g.layout_version, w.layout_version) ||
      !same("vendor_id", g.vendor_id, w.vendor_id) ||
      !same("device_id", g.device_id, w.device_id) ||
      !same("driver_version", g.driver_version, w.driver_version) ||
      !same("pipeline_cache_uuid", hex(g.pipeline_cache_uuid), hex(w.pipeline_cache_uuid)) ||
      !same("type", type(g), type(w)) || !same("number of parts of an f32", parts(g), parts(w))) {
    return text;
  }
  if (!same("place in the product", place(g), place(w))) {
    return text + " (a column-major D turns a and b round)";
  }
  if (!same("what was packed", packed(g), packed(w)) ||
      !same("quantisation", quantisation_text(g.quantisation), quantisation_text(w.quantisation)) ||
      !same("width along m or n", g.width, w.width) || !same("k", g.k, w.k)) {
    return text;
  }
  same("order", order_text(given), order_text(wanted));
  return text;
}

Result<void> check_fingerprints(const Fingerprints& wanted, const Operands& operands) {
  const auto check = [](std::string_view name, const std::optional<Fingerprint>& wanted_one,
                        const Fingerprint& given) -> Result<void> {
    if (!wanted_one || given == *wanted_one) return {};
    return Error{Status::wrong_fingerprint,
                 concat(name, "_fingerprint: ", difference(given, *wanted_one), ": ",
                        remedy(given, *wanted_one))};
  };
  if (auto checked = check("a", wanted.a, operands.a_fingerprint); !checked) return checked;
  if (auto checked = check("b", wanted.b, operands.b_fingerprint); !checked) return checked;
  if (!wanted.has_b_right) return {};
  return check("b_right", wanted.b, operands.b_right_fingerprint);
}

}  // namespace vkgemm
