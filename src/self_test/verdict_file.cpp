// verdict_file.cpp: what the self-test found, from one run to the next. JSON, so that people can
// read it and send it along; strict, since a file may come from anywhere.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#ifndef _WIN32
#include <unistd.h>
#endif

#include "base/cache_file.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"
#include "device/caps.hpp"
#include "embedded.hpp"
#include "kernels/main_loop.hpp"
#include "self_test/self_test.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm {
namespace {

using Json = nlohmann::ordered_json;

constexpr int file_version = 2;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20;
constexpr int deepest_nesting = 8;  // writing a value into a message recurses

std::string hexadecimal(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

// The fingerprint of the kernels in this build: verdicts are about these.
const std::string& fingerprint() {
  static const std::string text = [] {
    std::uint64_t hash = 0;
    for (const embedded::Module& module : embedded::modules()) {
      hash = hash * 31 + fnv1a(std::as_bytes(module.words));
    }
    std::array<std::uint8_t, 8> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(hash >> (8 * i));
    }
    return hexadecimal(bytes);
  }();
  return text;
}

// Everything that must be the same for verdicts to hold.
Json identity(const DeviceCaps& caps) {
  return {{"version", file_version},
          {"kernels", fingerprint()},
          {"vendor_id", caps.vendor_id},
          {"device_id", caps.device_id},
          {"driver_version", caps.driver_version},
          {"pipeline_cache_uuid", hexadecimal(caps.pipeline_cache_uuid)}};
}

Json to_json(const KernelKind& kind) {
  return {{"loop", to_string(kind.loop)},
          {"input", to_string(kind.input)},
          {"m", kind.m},
          {"n", kind.n},
          {"k", kind.k},
          {"subgroup_size", kind.subgroup_size},
          {"invocations", kind.invocations}};
}
Json to_json(const Attempt& attempt) {
  Json object = to_json(attempt.kind);
  object["process"] = attempt.process;
  object["count"] = attempt.count;
  return object;
}

template <class Parse>
auto named(const Json& object, const char* key, Parse parse) {
  const auto text = object.at(key).get<std::string>();
  const auto value = parse(text);
  if (!value) throw std::invalid_argument(concat(key, " is ", in_quotes(text)));
  return *value;
}

std::uint32_t number(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 0xffffffffu) {
    throw std::invalid_argument(concat(key, " is ", in_quotes(value.dump())));
  }
  return value.get<std::uint32_t>();
}

// Main loops that have kinds of their own.
std::optional<MainLoop> parse_tried_loop(std::string_view text) {
  const auto loop = parse_main_loop(text);
  return loop && descriptor(*loop).kinds != nullptr ? loop : std::nullopt;
}

KernelKind parse_kind(const Json& object) {
  return {.loop = named(object, "loop", parse_tried_loop),
          .input = named(object, "input", parse_data_type),
          .m = number(object, "m"),
          .n = number(object, "n"),
          .k = number(object, "k"),
          .subgroup_size = number(object, "subgroup_size"),
          .invocations = number(object, "invocations")};
}

VerdictFile parse(std::string_view text, const DeviceCaps& caps) {
  const Json document = Json::parse(text, [](int depth, Json::parse_event_t, const Json&) {
    if (depth <= deepest_nesting) return true;
    throw std::invalid_argument(concat("nested deeper than ", deepest_nesting, " levels"));
  });
  const Json expected = identity(caps);
  for (const auto& item : expected.items()) {
    const Json& found = document.at("of").at(item.key());
    if (found != item.value()) {
      throw std::invalid_argument(concat(item.key(), " is ", in_quotes(found.dump()), ", expected ",
                                         in_quotes(item.value().dump())));
    }
  }
  VerdictFile file;
  for (const Json& object : document.at("verdicts")) file.verdicts.push_back(parse_verdict(object));
  if (const auto trying = document.find("trying"); trying != document.end()) {
    for (const Json& object : *trying) {
      file.attempts.push_back({.kind = parse_kind(object),
                               .process = number(object, "process"),
                               .count = number(object, "count")});
    }
  }
  return file;
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

Json to_json(const Verdict& verdict) {
  Json object = to_json(verdict.kind);
  object["outcome"] = to_string(verdict.outcome);
  object["detail"] = verdict.detail;
  object["config"] = verdict.config;
  return object;
}

Verdict parse_verdict(const Json& object) {
  return {.kind = parse_kind(object),
          .outcome = named(object, "outcome", parse_outcome),
          .detail = object.at("detail").get<std::string>(),
          .config = object.at("config").get<std::string>()};
}

std::filesystem::path default_verdict_file(const DeviceCaps& caps) {
  std::filesystem::path folder = environment("XDG_CACHE_HOME");
  // By its specification a relative one is none.
  if (!folder.is_absolute()) folder.clear();
  if (folder.empty()) folder = environment("LOCALAPPDATA");
  if (const std::string home = environment("HOME"); folder.empty() && !home.empty()) {
    folder = std::filesystem::path(home) / ".cache";
  }
  if (folder.empty()) return {};
  const auto hex = [](std::uint32_t id) {
    const std::array bytes = {static_cast<std::uint8_t>(id >> 24),
                              static_cast<std::uint8_t>(id >> 16),
                              static_cast<std::uint8_t>(id >> 8), static_cast<std::uint8_t>(id)};
    return hexadecimal(id > 0xffff ? std::span(bytes) : std::span(bytes).subspan(2));
  };
  return folder / "vkgemm" /
         concat("self-test-", hex(caps.vendor_id), "-", hex(caps.device_id), "-",
                static_cast<std::uint32_t>(caps.driver_id), ".json");
}

void settle(VerdictFile& file, const std::function<bool(std::uint32_t process)>& is_alive) {
  std::erase_if(file.attempts, [&](const Attempt& attempt) {
    if (std::ranges::find(file.verdicts, attempt.kind, &Verdict::kind) != file.verdicts.end()) {
      return true;
    }
    if (attempt.count < attempts_of_a_crash || is_alive(attempt.process)) return false;
    file.verdicts.push_back(
        {.kind = attempt.kind,
         .outcome = Outcome::crashed,
         .detail = concat("the process ended while this was tried, ", attempt.count, " times")});
    return true;
  });
}

void merge(VerdictFile& file, std::span<const Verdict> found, std::uint32_t process,
           const std::optional<Attempt>& attempt) {
  const auto is = [](const KernelKind& kind) {
    return [&kind](const auto& other) { return other.kind == kind; };
  };
  const auto is_own = [&](const KernelKind& kind) {
    return [&](const Attempt& other) { return other.kind == kind && other.process == process; };
  };
  for (const Verdict& verdict : found) {
    std::erase_if(file.attempts, is_own(verdict.kind));
    if (verdict.outcome == Outcome::untested) continue;
    std::erase_if(file.verdicts, is(verdict.kind));
    std::erase_if(file.attempts, is(verdict.kind));
    file.verdicts.push_back(verdict);
  }
  if (attempt) std::erase_if(file.attempts, is_own(attempt->kind));
  // The rest under this number is of a process before this one.
  settle(file, [&](std::uint32_t other) { return other != process; });
  if (attempt) file.attempts.push_back(*attempt);
}

#ifdef _WIN32
std::uint32_t own_process() noexcept { return 0; }
bool is_running(std::uint32_t) noexcept { return false; }
#else
std::uint32_t own_process() noexcept { return static_cast<std::uint32_t>(getpid()); }
bool is_running(std::uint32_t process) noexcept {
  // For 0 and numbers below it, kill() would ask for groups of processes.
  const auto id = static_cast<pid_t>(process);
  return id > 0 && (kill(id, 0) == 0 || errno == EPERM);
}
#endif

bool another_is_running(std::uint32_t process) noexcept {
  return process != own_process() && is_running(process);
}

Result<VerdictFile> parse_verdict_file(std::string_view text, const DeviceCaps& caps) {
  return without_exceptions([&]() -> Result<VerdictFile> {
    constexpr std::size_t longest = 200;  // it may quote the file
    try {
      return parse(text, caps);
    } catch (const std::invalid_argument& error) {
      return Error{Status::io_error, error.what()};
    } catch (const Json::exception& error) {
      return Error{Status::io_error, std::string(error.what()).substr(0, longest)};
    }
  });
}

std::string verdict_file_text(const VerdictFile& content, const DeviceCaps& caps) {
  Json document = {{"of", identity(caps)},
                   {"device", caps.name},
                   {"driver", driver_text(caps)},
                   {"verdicts", Json::array()}};
  for (const Verdict& verdict : content.verdicts) {
    if (verdict.outcome == Outcome::untested) continue;
    document["verdicts"].push_back(to_json(verdict));
  }
  for (const Attempt& attempt : content.attempts) {
    document["trying"].push_back(to_json(attempt));
  }
  // Drivers' names may be anything.
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<VerdictFile> read_verdict_file(const std::filesystem::path& file, const DeviceCaps& caps,
                                      bool is_alive(std::uint32_t process)) {
  return without_exceptions([&]() -> Result<VerdictFile> {
    const Result<std::vector<std::byte>> bytes = read_cache_file(file, most_bytes);
    if (!bytes) return bytes.error();
    if (bytes->empty()) return VerdictFile{};
    auto content =
        parse_verdict_file({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, caps);
    if (!content) {
      return Error{Status::io_error, concat(file.string(), ": ", content.error().message)};
    }
    settle(*content, is_alive);
    return content;
  });
}

Result<void> write_verdict_file(const std::filesystem::path& file, const DeviceCaps& caps,
                                const VerdictFile& content) {
  return without_exceptions([&]() -> Result<void> {
    const std::string text = verdict_file_text(content, caps);
    std::error_code ignored;  // what is wrong with the folder shows when the file is written
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
    return replace_cache_file(file, std::as_bytes(std::span(text)));
  });
}

Result<std::vector<Verdict>> load_verdicts(const std::filesystem::path& file,
                                           const DeviceCaps& caps) {
  Result<VerdictFile> content = read_verdict_file(file, caps);
  if (!content) return content.error();
  return std::move(content->verdicts);
}

Result<void> save_verdicts(const std::filesystem::path& file, const DeviceCaps& caps,
                           std::span<const Verdict> verdicts) {
  return without_exceptions([&] {
    return write_verdict_file(file, caps, {.verdicts = {verdicts.begin(), verdicts.end()}});
  });
}

}  // namespace vkgemm
