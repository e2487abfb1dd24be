// vkgemm info: the devices, and what of them counts for a matrix product.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>

#include "base/json.hpp"
#include "base/paths.hpp"
#include "device/caps.hpp"
#include "self_test/self_test.hpp"
#include "tool/planning.hpp"
#include "tool/self_test.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

std::string shape(std::uint32_t m, std::uint32_t n, std::uint32_t k) {
  return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
}

std::string types(DataType input, DataType accumulator) {
  return std::string(to_string(input)) + "->" + std::string(to_string(accumulator));
}

Json path_json(const PathSupport& support) {
  return {{"available", support.available}, {"reason", support.reason}};
}

Json device_json(const headless::DeviceListing& device) {
  Json json = {{"index", device.index}, {"name", device.name}};
  if (!device.caps) {
    json["usable"] = false;
    json["reason"] = device.reason;
    return json;
  }
  const DeviceCaps& caps = *device.caps;
  const Limits& limits = caps.limits;
  json["usable"] = true;
  json["type"] = type_of(caps);
  json["driver"] = driver_text(caps);
  json["vendor_id"] = caps.vendor_id;
  json["device_id"] = caps.device_id;
  json["architecture"] = caps.architecture;
  json["architecture_by_properties"] = caps.architecture_by_properties;
  json["paths"] = {
      {"nv", path_json(caps.nv)}, {"khr", path_json(caps.khr)}, {"fma", path_json(caps.fma)}};
  json["bf16_matrices"] = caps.bf16_matrices;
  json["device_barrier"] = path_json(caps.device_barrier);
  json["workgroups_make_progress"] = caps.workgroups_make_progress;
  json["limits"] = {{"max_shared_memory_bytes", limits.max_shared_memory_bytes},
                    {"max_invocations", limits.max_invocations},
                    {"max_push_constant_bytes", limits.max_push_constant_bytes},
                    {"max_workgroup_count", limits.max_workgroup_count},
                    {"min_subgroup_size", limits.min_subgroup_size},
                    {"max_subgroup_size", limits.max_subgroup_size},
                    {"max_subgroups_per_workgroup", limits.max_subgroups_per_workgroup},
                    {"subgroup_size_control", limits.subgroup_size_control},
                    {"subgroup_shuffles", limits.subgroup_shuffles},
                    {"subgroup_votes", limits.subgroup_votes},
                    {"compute_units", limits.compute_units},
                    {"nv_max_invocations", limits.nv_max_invocations},
                    {"nv_max_dimension", limits.nv_max_dimension},
                    {"nv_reserved_shared_memory_bytes", limits.nv_reserved_shared_memory_bytes}};
  json["denied"] = Json::array();
  for (const Denial& denial : caps.denials) json["denied"].push_back(denial.reason);
  json["fragment_shapes"] = Json::array();
  for (const FragmentShape& s : caps.fragment_shapes) {
    json["fragment_shapes"].push_back({{"input", to_string(s.input)},
                                       {"accumulator", to_string(s.accumulator)},
                                       {"m", s.m},
                                       {"n", s.n},
                                       {"k", s.k}});
  }
  json["flexible_shapes"] = Json::array();
  for (const FlexibleShape& s : caps.flexible_shapes) {
    json["flexible_shapes"].push_back(
        {{"input", to_string(s.input)},
         {"accumulator", to_string(s.accumulator)},
         {"scope", s.scope == MatrixScope::workgroup ? "workgroup" : "subgroup"},
         {"granularity_m", s.granularity_m},
         {"granularity_n", s.granularity_n},
         {"granularity_k", s.granularity_k},
         {"invocations", s.invocations}});
  }
  return json;
}

void print_path(const char* name, const PathSupport& support) {
  std::printf("  path %-8s %s\n", name,
              support.available ? "available" : ("off: " + support.reason).c_str());
}

void print_device(const headless::DeviceListing& device) {
  std::printf("%u: %s\n", device.index, device.name.c_str());
  if (!device.caps) {
    std::printf("  unusable: %s\n", device.reason.c_str());
    return;
  }
  const DeviceCaps& caps = *device.caps;
  const Limits& limits = caps.limits;
  std::printf("  type          %s, vendor 0x%04x, device 0x%04x\n", type_of(caps).c_str(),
              caps.vendor_id, caps.device_id);
  std::printf("  driver        %s\n", driver_text(caps).c_str());
  std::printf("  architecture  %s", caps.architecture == "generic"
                                        ? "not recognised (generic tuning table)"
                                        : caps.architecture.c_str());
  if (caps.architecture_by_properties) {
    std::printf(" (by its properties, id 0x%04x is not listed)", caps.device_id);
  }
  std::printf("\n");
  print_path("nv", caps.nv);
  print_path("khr", caps.khr);
  print_path("fma", caps.fma);
  for (const Denial& denial : caps.denials) {
    std::printf("  denied        path %s: %s\n", std::string(to_string(denial.path)).c_str(),
                denial.reason.c_str());
  }
  std::printf("  split-K barrier  %s\n",
              !caps.device_barrier.available  ? caps.device_barrier.reason.c_str()
              : caps.workgroups_make_progress ? "on request"
                                              : "on request, but this driver is not known to keep "
                                                "waiting workgroups going");
  std::printf("  bf16          %s\n",
              caps.bf16_matrices ? "cooperative matrices" : "widened to f32 on path fma");
  std::printf("  fragments    ");
  for (const FragmentShape& s : caps.fragment_shapes) {
    std::printf(" %s %s", types(s.input, s.accumulator).c_str(), shape(s.m, s.n, s.k).c_str());
  }
  std::printf("%s\n", caps.fragment_shapes.empty() ? " none" : "");
  std::printf("  flexible     ");
  for (const FlexibleShape& s : caps.flexible_shapes) {
    std::printf(" %s %s", types(s.input, s.accumulator).c_str(),
                shape(s.granularity_m, s.granularity_n, s.granularity_k).c_str());
    if (s.scope == MatrixScope::workgroup) std::printf("@%u", s.invocations);
  }
  std::printf("%s\n", caps.flexible_shapes.empty() ? " none" : "");
  std::printf(
      "  limits        %u bytes of shared memory, %u invocations, subgroups of %u to %u%s\n",
      limits.max_shared_memory_bytes, limits.max_invocations, limits.min_subgroup_size,
      limits.max_subgroup_size, limits.subgroup_size_control ? " (size can be required)" : "");
  if (limits.compute_units != 0) std::printf("  compute units %u\n", limits.compute_units);
  if (limits.nv_max_invocations != 0) {
    std::printf(
        "  nv limits     %u invocations, dimension %u, %u bytes of shared memory reserved\n",
        limits.nv_max_invocations, limits.nv_max_dimension, limits.nv_reserved_shared_memory_bytes);
  }
}

Json self_test_json(const DeviceSelfTest& test) {
  auto verdicts = Json::array();
  for (const DeviceSelfTest::Entry& entry : test.entries) {
    Json verdict = {{"kind", to_string(entry.verdict.kind)}};
    verdict.update(to_json(entry.verdict));
    verdict["from_cache"] = entry.from_cache;
    verdict["denied"] = entry.denied;
    verdicts.push_back(std::move(verdict));
  }
  return {{"file", utf8(test.file)}, {"failed", test.failed()}, {"verdicts", verdicts}};
}

void print_entry(const DeviceSelfTest::Entry& entry) {
  const Verdict& verdict = entry.verdict;
  std::printf("    %-60s %s%s%s%s\n", to_string(verdict.kind).c_str(),
              std::string(to_string(verdict.outcome)).c_str(), verdict.detail.empty() ? "" : ": ",
              verdict.detail.c_str(), entry.from_cache ? " (from the cache)" : "");
  if (!entry.denied.empty()) {
    std::printf("      %s: %s\n",
                verdict.outcome == Outcome::passed ? "denied, but for this verdict" : "denied",
                entry.denied.c_str());
  }
  std::fflush(stdout);
}

struct InfoOptions {
  bool as_json = false;
  std::string device;
  SelfTestOptions self_test;
};

// Index, or part of the name.
bool is_wanted(const headless::DeviceListing& device, const std::string& wanted) {
  return wanted.empty() || wanted == std::to_string(device.index) ||
         device.name.find(wanted) != std::string::npos;
}

bool print_devices(const InfoOptions& options,
                   const std::vector<headless::DeviceListing>& devices) {
  bool passed = true;
  Json list = Json::array();
  for (const headless::DeviceListing& device : devices) {
    if (options.as_json) {
      list.push_back(device_json(device));
    } else {
      print_device(device);
    }
    if (!options.self_test.wanted || !device.caps) continue;
    if (!options.as_json) std::printf("  self-test\n");
    const DeviceSelfTest test = run_self_test(device, options.self_test, [&](const auto& entry) {
      if (!options.as_json) print_entry(entry);
    });
    passed = passed && !test.failed();
    if (options.as_json) {
      list.back()["self_test"] = self_test_json(test);
    } else if (!test.file.empty()) {
      std::printf("    kept in %s\n", utf8(test.file).c_str());
    }
  }
  if (options.as_json) {
    std::printf("%s\n", json_text({{"devices", list}}, 2).c_str());
  }
  return passed;
}

}  // namespace

void add_info(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App& command = *app.add_subcommand(
      "info",
      "List the devices: architecture, paths and why one is off, shapes and limits. With "
      "--self-test, test their kernels");
  command.add_flag("--json", options->as_json, "Print JSON");
  command.add_option("--device", options->device, "Only this one: index, or part of the name");
  options->self_test.add(command);
  command.callback([options, &exit_code] {
    if (options->self_test.kind) return try_kind(options->device, options->self_test);
    if (options->self_test.wanted) check_that_listing_is_safe(options->self_test);
    std::string error;
    std::vector<headless::DeviceListing> devices = headless::list_devices(&error);
    if (devices.empty()) {
      print_devices(*options, devices);
      throw Failure(device_error, error);
    }
    std::erase_if(devices, [&](const headless::DeviceListing& device) {
      return !is_wanted(device, options->device);
    });
    if (devices.empty()) {
      throw Failure(usage_error, "--device " + options->device + ": no such device");
    }
    if (!options->self_test.only.empty()) check_only(options->self_test, devices);
    if (!print_devices(*options, devices)) exit_code = verification_failed;
  });
}

}  // namespace vkgemm::tool
