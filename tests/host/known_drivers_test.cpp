// Tests the list of known drivers: versions, matching, and the list that is built in.
#include "device/known_drivers.hpp"

#include <gtest/gtest.h>

#include "kernels/main_loop.hpp"
#include "self_test/self_test.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm {
namespace {

using test::contains;

constexpr std::uint32_t nvidia_version(std::uint32_t a, std::uint32_t b, std::uint32_t c = 0) {
  return a << 22 | b << 14 | c << 6;
}

// Numbers that others published beside what their drivers call themselves.
TEST(DriverVersions, AsTheirToolsPrintThem) {
  const auto decode = decode_driver_version;
  // An H200's driver is 580.159.04. In gfxstream's decodeDriverVersion 0x734a0000 is 461.40.
  EXPECT_EQ(decode(VK_DRIVER_ID_NVIDIA_PROPRIETARY, nvidia_version(580, 159, 4)),
            (DriverVersion{580, 159, 4, 0}));
  EXPECT_EQ(decode(VK_DRIVER_ID_NVIDIA_PROPRIETARY, 0x734a0000), (DriverVersion{461, 40, 0, 0}));
  // gfxstream: 1647866 is 27.20.100.9466. clpeak's issue 205 shows 0.406.782 in VK_MAKE_VERSION's
  // parts for 32.0.101.8974.
  EXPECT_EQ(decode(VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, 1647866),
            (DriverVersion{100, 9466, 0, 0}));
  EXPECT_EQ(decode(VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, 406 << 12 | 782),
            (DriverVersion{101, 8974, 0, 0}));
  // The same vendor's other driver, and everybody else.
  EXPECT_EQ(decode(VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, VK_MAKE_API_VERSION(0, 26, 2, 6)),
            (DriverVersion{26, 2, 6, 0}));
  EXPECT_EQ(decode(VK_DRIVER_ID_AMD_PROPRIETARY, VK_MAKE_API_VERSION(0, 2, 0, 388)),
            (DriverVersion{2, 0, 388, 0}));
  // A major version of more than 7 bits runs into what is the variant elsewhere.
  EXPECT_EQ(decode(VK_DRIVER_ID_MESA_RADV, 200u << 22 | 1 << 12), (DriverVersion{200, 1, 0, 0}));
}

DeviceCaps device(VkDriverId driver, std::uint32_t vendor, std::uint32_t id, std::uint32_t version,
                  std::string name = "some device") {
  DeviceCaps caps = test::navi31();
  caps.name = std::move(name);
  caps.driver_id = driver;
  caps.vendor_id = vendor;
  caps.device_id = id;
  caps.driver_version = version;
  return caps;
}

DeniedDriver entry(const std::string& members) {
  const auto list = parse_known_drivers(
      R"({"denied": [{"driver": "D", "driver_id": 4, "vendor_id": 4318, "path": "khr",
          "reason": "it is wrong", "source": "https://example.com", "date": "2026-01-02")" +
      (members.empty() ? "" : ", " + members) + R"(}], "trusted": []})");
  EXPECT_TRUE(list) << list.error().message;
  return list ? list->denied.at(0) : DeniedDriver{};
}

TEST(DenyList, MatchesRangesOfVersions) {
  const auto matches = [](const DeniedDriver& e, std::uint32_t a, std::uint32_t b,
                          std::uint32_t c = 0) {
    return e.drivers.matches(
        device(VK_DRIVER_ID_NVIDIA_PROPRIETARY, 0x10de, 0x2335, nvidia_version(a, b, c)));
  };
  const DeniedDriver range = entry(R"("first_version": "565.90", "last_version": "566.14")");
  EXPECT_FALSE(matches(range, 565, 89, 255));
  EXPECT_TRUE(matches(range, 565, 90));
  EXPECT_TRUE(matches(range, 565, 100));
  EXPECT_TRUE(matches(range, 566, 3));
  EXPECT_TRUE(matches(range, 566, 14, 7)) << "as many parts count as the last version has";
  EXPECT_FALSE(matches(range, 566, 15));
  const DeniedDriver from = entry(R"("first_version": "570")");
  EXPECT_FALSE(matches(from, 569, 255));
  EXPECT_TRUE(matches(from, 1000, 0));
  const DeniedDriver until = entry(R"("last_version": "570")");
  EXPECT_TRUE(matches(until, 1, 0));
  EXPECT_TRUE(matches(until, 570, 200, 5));
  EXPECT_FALSE(matches(until, 571, 0));
  EXPECT_TRUE(matches(entry(""), 3, 4));
}

TEST(DenyList, MatchesDriverAndDevice) {
  const auto version = nvidia_version(570, 1);
  const DeniedDriver any = entry("");
  EXPECT_TRUE(any.drivers.matches(device(VK_DRIVER_ID_NVIDIA_PROPRIETARY, 0x10de, 1, version)));
  EXPECT_FALSE(any.drivers.matches(device(VK_DRIVER_ID_MESA_NVK, 0x10de, 1, version)));
  EXPECT_FALSE(any.drivers.matches(device(VK_DRIVER_ID_NVIDIA_PROPRIETARY, 0x1002, 1, version)));
  const DeniedDriver ids = entry(R"("device_ids": [5, 6])");
  EXPECT_TRUE(ids.drivers.matches(device(VK_DRIVER_ID_NVIDIA_PROPRIETARY, 0x10de, 6, version)));
  EXPECT_FALSE(ids.drivers.matches(device(VK_DRIVER_ID_NVIDIA_PROPRIETARY, 0x10de, 7, version)));
  const DeniedDriver name = entry(R"("device_name": "B70")");
  EXPECT_TRUE(
      name.drivers.matches(device(VK_DRIVER_ID_NVIDIA_PROPRIETARY, 0x10de, 7, version, "a B70 b")));
  EXPECT_FALSE(
      name.drivers.matches(device(VK_DRIVER_ID_NVIDIA_PROPRIETARY, 0x10de, 7, version, "B60")));
}

TEST(DenyList, SaysWhatAndWhoSaysSo) {
  const DeniedDriver e = entry(
      R"("first_version": "1.2", "last_version": "1.4", "input": "bf16", "m": 16, "n": 8, "k": 4)");
  EXPECT_EQ(e.denial.reason,
            "known bad driver (D, 1.2 to 1.4): it is wrong; https://example.com, 2026-01-02");
  EXPECT_EQ(e.denial.input, DataType::bf16);
  EXPECT_EQ(e.denial.m, 16u);
  EXPECT_EQ(e.denial.n, 8u);
  EXPECT_EQ(e.denial.k, 4u);
  EXPECT_FALSE(e.denial.shapes_unknown);
}

TEST(DenyList, RefusesWhatIsNone) {
  const auto message = [](std::string_view text) {
    const auto list = parse_known_drivers(text);
    return list ? std::string("accepted") : list.error().message;
  };
  EXPECT_NE(message(""), "accepted");
  EXPECT_NE(message("{}"), "accepted");
  EXPECT_TRUE(contains(message(R"({"denied": [{"driver": "D"}]})"), "denied[0]"));
  const auto with = [&](const std::string& member) {
    return message(R"({"denied": [{"driver": "D", "driver_id": 4, "vendor_id": 1, "path": "khr",
          "reason": "r", "source": "s", "date": "d", )" +
                   member + R"(}], "trusted": []})");
  };
  EXPECT_EQ(with(R"("m": 16)"), "accepted");
  EXPECT_TRUE(contains(with(R"("sauce": "s")"), "unknown key 'sauce'"));
  EXPECT_TRUE(contains(with(R"("first_version": "1.x")"), "version '1.x' is none"));
  EXPECT_TRUE(contains(with(R"("first_version": "1.2.3.4.5")"), "is none"));
  EXPECT_TRUE(contains(with(R"("input": "f8")"), "is unknown"));
  EXPECT_NE(with(R"("path": "gpu")"), "accepted");
}

TEST(BuiltInDenyList, NamesItsSources) {
  ASSERT_FALSE(known_drivers().denied.empty());
  for (const DeniedDriver& e : known_drivers().denied) {
    EXPECT_TRUE(contains(e.denial.reason, "https://") ||
                contains(e.denial.reason, "bench/NOTES.md"))
        << e.denial.reason;
    EXPECT_TRUE(contains(e.denial.reason, ", 20")) << e.denial.reason;
    EXPECT_TRUE(e.drivers.last_version)
        << "what was fixed, or not tried, is not known to be bad: " << e.denial.reason;
  }
}

TEST(BuiltInDenyList, KnowsItsDrivers) {
  const auto denied = [](const DeviceCaps& caps) { return denials_of(known_drivers(), caps); };
  const auto amd = denied(
      device(VK_DRIVER_ID_AMD_PROPRIETARY, 0x1002, 0x1114, VK_MAKE_API_VERSION(0, 2, 0, 388)));
  ASSERT_EQ(amd.size(), 1u);
  EXPECT_TRUE(amd[0].shapes_unknown);
  EXPECT_TRUE(denied(device(VK_DRIVER_ID_AMD_PROPRIETARY, 0x1002, 0x1114,
                            VK_MAKE_API_VERSION(0, 2, 0, 389)))
                  .empty());
  EXPECT_TRUE(
      denied(device(VK_DRIVER_ID_MESA_RADV, 0x1002, 0x1114, VK_MAKE_API_VERSION(0, 2, 0, 388)))
          .empty());
  const char* const b70 = "Intel(R) Arc(TM) Pro B70 Graphics";
  EXPECT_EQ(
      denied(device(VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, 0x8086, 0xe223, 101 << 14 | 8826, b70))
          .size(),
      1u);
  EXPECT_TRUE(
      denied(device(VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, 0x8086, 0xe223, 101 << 14 | 8860, b70))
          .empty());
  for (const DeviceCaps& caps : test::all_devices()) EXPECT_TRUE(denied(caps).empty());
}

TEST(BuiltInDenyList, KnowsLlvmpipeOfDebian12) {
  const auto denied = [](std::uint32_t major, std::uint32_t minor) {
    return denials_of(known_drivers(), device(VK_DRIVER_ID_MESA_LLVMPIPE, VK_VENDOR_ID_MESA, 0,
                                              VK_MAKE_API_VERSION(0, major, minor, 6)));
  };
  ASSERT_EQ(denied(22, 3).size(), 1u);
  EXPECT_EQ(denied(22, 3)[0].path, Path::fma);
  EXPECT_TRUE(denied(23, 0).empty());
}

// Xe3's ids: Linux' include/drm/intel/pciids.h (PTL, WCL, NVL-S); which families are Xe3, and one
// more id: intel/compute-runtime's devices_base.inl. Read 2026-11-23.
TEST(BuiltInDenyList, KnowsXe3OnMesaBefore26_2) {
  const auto denied = [](std::uint32_t id, std::uint32_t version,
                         VkDriverId driver = VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA) {
    return denials_of(known_drivers(), device(driver, 0x8086, id, version));
  };
  constexpr std::uint32_t before = VK_MAKE_API_VERSION(0, 26, 1, 7);
  constexpr std::uint32_t fixed = VK_MAKE_API_VERSION(0, 26, 2, 0);
  for (const std::uint32_t id :
       {0xb080u, 0xb081u, 0xb082u, 0xb083u, 0xb084u, 0xb085u, 0xb086u, 0xb087u,
        0xb08fu, 0xb090u, 0xb0a0u, 0xb0b0u, 0xfd80u, 0xfd81u, 0xd740u, 0xd741u,
        0xd742u, 0xd743u, 0xd744u, 0xd745u, 0xd74au, 0xd74bu}) {
    const auto found = denied(id, before);
    ASSERT_EQ(found.size(), 1u) << std::hex << id;
    EXPECT_EQ(found[0].path, Path::khr);
    EXPECT_FALSE(found[0].shapes_unknown);
    EXPECT_FALSE(found[0].input) << "all types";
    EXPECT_EQ(found[0].m, 0u) << "all shapes";
    EXPECT_EQ(denied(id, VK_MAKE_API_VERSION(0, 25, 3, 0)).size(), 1u);
    // A development version of 26.2.0 calls itself so.
    EXPECT_EQ(denied(id, VK_MAKE_API_VERSION(0, 26, 1, 99)).size(), 1u);
    EXPECT_TRUE(denied(id, fixed).empty());
    EXPECT_TRUE(denied(id, 101 << 14 | 8826, VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS).empty());
  }
  for (const std::uint32_t xe2 : {0x64a0u, 0xe20bu, 0xe223u}) {
    EXPECT_TRUE(denied(xe2, before).empty()) << std::hex << xe2;
  }
}

// A verdict may come from a file.
TEST(Verdicts, DetailsAreCut) {
  DeviceCaps caps = test::navi31();
  caps.verdicts = {Verdict{.outcome = Outcome::wrong_result, .detail = std::string(1 << 20, 'x')}};
  const std::vector<std::string> refused = refusals(caps.verdicts[0].kind.input, caps);
  ASSERT_FALSE(refused.empty());
  EXPECT_LT(refused.front().size(), 600u);
}

// An H200 with the driver that the list trusts there.
DeviceCaps h200_of_trusted_driver() {
  DeviceCaps caps = test::h200();
  caps.driver_id = VK_DRIVER_ID_NVIDIA_PROPRIETARY;
  caps.vendor_id = 0x10de;
  caps.device_id = 0x2335;
  caps.driver_version = nvidia_version(580, 159, 4);
  return caps;
}

TEST(TrustedDrivers, PassWithoutATest) {
  const TrustedDriver& trusted = known_drivers().trusted.at(0);
  const std::vector<Verdict> verdicts = trusted_verdicts(known_drivers(), h200_of_trusted_driver());
  EXPECT_EQ(verdicts.size(), trusted.kinds.size()) << "a kind that the device doesn't have";
  ASSERT_FALSE(verdicts.empty());
  for (const Verdict& verdict : verdicts) {
    EXPECT_EQ(verdict.outcome, Outcome::passed);
    EXPECT_TRUE(contains(verdict.detail, "known good driver (NVIDIA proprietary, 580.159.4)"));
    EXPECT_TRUE(contains(verdict.detail, "bench/NOTES.md, 20")) << "its source";
  }
}

TEST(TrustedDrivers, AreOnlyThoseThatWereSeen) {
  const auto count = [](const auto& change) {
    DeviceCaps caps = h200_of_trusted_driver();
    change(caps);
    return trusted_verdicts(known_drivers(), caps).size();
  };
  EXPECT_EQ(count([](DeviceCaps& c) { c.driver_version = nvidia_version(580, 159, 5); }), 0u);
  EXPECT_EQ(count([](DeviceCaps& c) { c.driver_version = nvidia_version(581, 0); }), 0u);
  EXPECT_EQ(count([](DeviceCaps& c) { c.device_id = 0x2342; }), 0u) << "GH200";
  EXPECT_EQ(count([](DeviceCaps& c) { c.architecture = "nvidia_sm100"; }), 0u);
  EXPECT_EQ(count([](DeviceCaps& c) { c.driver_id = VK_DRIVER_ID_MESA_NVK; }), 0u);
}

// Main loops that need a verdict are legal by the list alone.
TEST(TrustedDrivers, MakeLoopsLegal) {
  DeviceCaps caps = h200_of_trusted_driver();
  const ResolvedProblem problem = test::resolved(test::gemm(4096, 4096, 4096));
  const DeviceTables tables(caps);
  const auto best = [&] { return tables.best(problem, caps).value().config; };
  EXPECT_FALSE(descriptor(best()).needs_verdict);
  caps.verdicts = trusted_verdicts(known_drivers(), caps);
  EXPECT_TRUE(descriptor(best()).needs_verdict);
}

}  // namespace
}  // namespace vkgemm
