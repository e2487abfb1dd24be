// A configuration as text: refused, or one that prints as what parses to the same, and whose
// legality can be asked for.
#include "../host/test_devices.hpp"
#include "fuzz.hpp"
#include "kernels/legality.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vkgemm;
  if (size > 4096) return 0;
  const auto config = parse_config(fuzz::as_text(data, size));
  if (!config) {
    fuzz::require(!config.error().message.empty(), "an error says something");
    return 0;
  }
  ++fuzz::accepted;
  const std::string printed = to_string(*config);
  const auto again = parse_config(printed);
  fuzz::require(again && *again == *config, printed + " parses to what was printed");

  static const std::vector<DeviceCaps> devices = test::all_devices();
  static const ResolvedProblem problem = test::resolved(test::gemm(512, 512, 512));
  for (const DeviceCaps& caps : devices) {
    const auto reason = why_illegal(*config, problem, caps);
    fuzz::require(is_legal(*config, problem, caps) == !reason,
                  printed + " is illegal for a reason: " + reason.value_or("none"));
  }
  return 0;
}
