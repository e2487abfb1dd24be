#include "tool/packing.hpp"

#include <utility>

#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

// The other members say how a plain matrix lies.
Matrix in_rows(const Matrix& matrix, Packing packing) {
  Matrix out{.type = matrix.type, .packing = packing};
  if (matrix.batch_stride == std::uint64_t{0}) out.batch_stride = 0;  // one for all
  return out;
}

}  // namespace

void PackOptions::add(CLI::App& app) {
  app.add_flag("--packed-a", a,
               "A plain A is packed first, once, in the order that kernels load best: layout, "
               "leading dimension and strides are those of what is packed");
  app.add_flag("--packed-b", b, "A plain B is packed first, once, likewise");
}

Problem PackOptions::packed(const Problem& source) const {
  Problem out = source;
  if (a) out.a = in_rows(source.a, Packing::packed);
  if (b) out.b = in_rows(source.b, Packing::packed);
  return out;
}

Problem plain(const Problem& problem) {
  Problem out = problem;
  for (Matrix* matrix : {&out.a, &out.b}) {
    if (matrix->packing == Packing::packed) *matrix = in_rows(*matrix, Packing::plain);
  }
  return out;
}

std::string packed_operands(const Problem& problem) {
  return std::string(problem.a.packing == Packing::packed ? "a" : "") +
         (problem.b.packing == Packing::packed ? "b" : "");
}

std::string_view name_of(PackedOperand operand) { return operand == PackedOperand::a ? "a" : "b"; }

PackedBuffer prepare_packing(support::Runner& runner, const Problem& source,
                             PackedOperand operand) {
  PackedBuffer out;
  out.plan = unwrap(runner.context().plan_pack(source, operand));
  out.layout = out.plan->layout();
  out.buffer = unwrap(runner.allocate(out.layout.bytes));
  return out;
}

void pack(support::Runner& runner, DeviceSpan source, const PackedBuffer& to) {
  unwrap(runner.fill(to.buffer, 0));  // what lies behind the last matrix is not written
  unwrap(runner.submit(
      [&](VkCommandBuffer commands) { return to.plan->record(commands, source, to.span()); }));
}

PackedBuffer prepare_loading(support::Runner& runner, const Problem& problem,
                             const std::string& file, const support::PackedHeader& header,
                             std::uint64_t payload_bytes) {
  PackedBuffer out;
  out.layout = unwrap(runner.context().packed_layout(problem, header.operand));
  if (const std::string other = difference(header.fingerprint, out.layout.fingerprint);
      !other.empty()) {
    const bool by_verdicts = other.starts_with("order");
    throw Failure(usage_error, file + ": packed for " + header.device + ", " + header.driver +
                                   ": " + other + ": pack it again for this product and device" +
                                   (by_verdicts ? ", or try `vkgemm info --self-test` again" : ""));
  }
  if (payload_bytes != out.layout.bytes) {
    throw Failure(usage_error, file + ": payload is " + std::to_string(payload_bytes) +
                                   " bytes, wanted is " + std::to_string(out.layout.bytes));
  }
  out.buffer = unwrap(runner.allocate(out.layout.bytes));
  return out;
}

}  // namespace vkgemm::tool
