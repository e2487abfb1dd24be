#include "tool/gated.hpp"

#include "tool/options.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {

CLI::Option* add_gated(CLI::App& app, std::optional<Gated>& value) {
  return add_named(
      app, "--gated", value,
      "D = gate(l, r) of two products with one A: sigmoid(l)*tanh(r), l*gelu(r) (geglu_erf, "
      "geglu_tanh), silu(l)*r (swiglu), l*relu(r) (reglu), l*sigmoid(r) (glu). N is the number of "
      "columns of D, and B has 2N, those of l first; or l and r are two matrices (:separate), or "
      "neighbouring columns (:interleaved). Not with beta, an activation, --row-op",
      names_of<Gate>() + "[:" + names_of<GatedB>() + "]",
      [](const std::string& text) -> std::optional<Gated> {
        const std::size_t colon = text.find(':');
        const auto gate = parse_gate(text.substr(0, colon));
        const auto b =
            colon == std::string::npos ? GatedB::halves : parse_gated_b(text.substr(colon + 1));
        if (!gate || !b) return std::nullopt;
        return Gated{.gate = *gate, .b = *b};
      });
}

std::string describe(const Gated& gated) {
  return "gated " + std::string(to_string(gated.gate)) + ", b " + std::string(to_string(gated.b));
}

std::uint64_t load_b_right(const std::optional<Gated>& gated, const std::string& file, bool bf16,
                           const LoadedMatrix& b, std::vector<std::byte>& right) {
  const bool separate = gated && gated->b == GatedB::separate;
  if (separate == file.empty()) {
    throw Failure(usage_error,
                  "--b-right and --gated …:separate belong together: only one is given");
  }
  if (!separate) {
    if (gated && b.cols % 2 != 0) {
      throw Failure(usage_error, "--gated: B has two halves, but " + b.describe() + " has " +
                                     std::to_string(b.cols) + " columns");
    }
    return gated ? 2 : 1;
  }
  LoadedMatrix matrix = load_operand(file, bf16, PackedOperand::b);
  if (matrix.rows != b.rows || matrix.cols != b.cols || matrix.batch != b.batch ||
      matrix.type != b.type || matrix.layout != b.layout ||
      matrix.packed.has_value() != b.packed.has_value()) {
    throw Failure(usage_error,
                  "both halves of B must have one shape, type, order and packing, but there are " +
                      b.describe() + " and " + matrix.describe());
  }
  if (matrix.packed && matrix.packed->fingerprint != b.packed->fingerprint) {
    throw Failure(usage_error, file + " is not packed as " + b.file + " is: " +
                                   difference(matrix.packed->fingerprint, b.packed->fingerprint));
  }
  right = std::move(matrix.data);
  return 1;
}

}  // namespace vkgemm::tool
