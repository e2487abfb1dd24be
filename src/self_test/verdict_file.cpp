// verdict_file.cpp: what the self-test found, from one run to the next. JSON, so that people can
// read it and send it along; strict, since a file may come from anywhere.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/errors.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "device/caps.hpp"
#include "device/user_file.hpp"
#include "kernels/kernel_words.hpp"
#include "kernels/main_loop.hpp"
#include "self_test/self_test.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm {
namespace {

constexpr int file_version = 6;

std::string hexadecimal(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

Json identity(const DeviceCaps& caps) {
  return {{"version", file_version},
          {"kernels", kernels_digest()},
          {"vendor_id", caps.vendor_id},
          {"device_id", caps.device_id},
          {"driver_version", caps.driver_version},
          {"pipeline_cache_uuid", hexadecimal(caps.pipeline_cache_uuid)}};
}

Json to_json(const KernelKind& kind) {
  Json object = {{"loop", to_string(kind.loop)}, {"input", to_string(kind.input)}};
  for (const std::string_view name : descriptor(kind.loop).kind_numbers) {
    object[std::string(name)] = *find_number(kind, name);
  }
  return object;
}
Json to_json(const Attempt& attempt) {
  Json object = to_json(attempt.kind);
  object["owner"] = attempt.owner;
  object["count"] = attempt.count;
  object["time"] = attempt.time;
  return object;
}

template <class Parse>
auto named(const Json& object, const char* key, Parse parse) {
  const auto text = object.at(key).get<std::string>();
  const auto value = parse(text);
  if (!value) throw std::invalid_argument(concat(key, " is ", in_quotes(text)));
  return *value;
}

template <class Number = std::uint32_t>
Number number(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_number_unsigned() || !std::in_range<Number>(value.get<std::uint64_t>())) {
    throw std::invalid_argument(concat(key, " is ", in_quotes(json_text(value))));
  }
  return value.get<Number>();
}

// Main loops that have kinds of their own.
std::optional<MainLoop> parse_tried_loop(std::string_view text) {
  const auto loop = parse_main_loop(text);
  return loop && descriptor(*loop).kinds != nullptr ? loop : std::nullopt;
}

KernelKind parse_kind(const Json& object) {
  KernelKind kind{.loop = named(object, "loop", parse_tried_loop),
                  .input = named(object, "input", parse_data_type)};
  for (const std::string_view name : descriptor(kind.loop).kind_numbers) {
    *find_number(kind, name) = number(object, std::string(name).c_str());
  }
  return kind;
}

VerdictFile parse(std::string_view text, const DeviceCaps& caps) {
  const Json document = parse_json(text);
  const Json expected = identity(caps);
  VerdictFile file;
  for (const auto& item : expected.items()) {
    const Json& found = document.at("of").at(item.key());
    if (found == item.value()) continue;
    file.other = concat(item.key(), " is ", in_quotes(json_text(found)), ", expected ",
                        in_quotes(json_text(item.value())));
    return file;
  }
  for (const Json& object : document.at("verdicts")) file.verdicts.push_back(parse_verdict(object));
  if (const auto trying = document.find("trying"); trying != document.end()) {
    for (const Json& object : *trying) {
      file.attempts.push_back({.kind = parse_kind(object),
                               .owner = number<std::uint64_t>(object, "owner"),
                               .count = number(object, "count"),
                               .time = number<std::int64_t>(object, "time")});
    }
  }
  return file;
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
  // Each device, driver and build has its own file.
  return user_file("self-test", caps, json_text(identity(caps)));
}

void settle(VerdictFile& file, const AttemptView& view) {
  std::erase_if(file.attempts, [&](const Attempt& attempt) {
    if (has_verdict(file.verdicts, attempt.kind)) {
      return true;
    }
    // A time to come is as good as none.
    if (attempt.time > view.now || view.now - attempt.time > attempts_last_s) return true;
    if (attempt.count < attempts_of_a_verdict || view.is_running(attempt.owner)) return false;
    file.verdicts.push_back(
        {.kind = attempt.kind,
         .outcome = Outcome::crashed,
         .detail = concat("the process ended, or gave up waiting, while this was on the device, ",
                          attempt.count, " times")});
    return true;
  });
}

const Attempt& begin_attempt(VerdictFile& file, const KernelKind& kind, std::uint64_t owner,
                             const AttemptView& view) {
  settle(file, view);
  Attempt attempt{.kind = kind, .owner = owner, .time = view.now};
  std::erase_if(file.attempts, [&](const Attempt& earlier) {
    if (earlier.kind != kind || view.is_running(earlier.owner)) return false;
    attempt.count = std::max(attempt.count, earlier.count + 1);
    return true;
  });
  return file.attempts.emplace_back(attempt);
}

void merge(VerdictFile& file, std::span<const Verdict> found, std::uint64_t owner) {
  for (const Verdict& verdict : found) {
    const bool untested = verdict.outcome == Outcome::untested;
    std::erase_if(file.attempts, [&](const Attempt& attempt) {
      return attempt.kind == verdict.kind && (!untested || attempt.owner == owner);
    });
    if (untested) continue;
    std::erase_if(file.verdicts,
                  [&](const Verdict& earlier) { return earlier.kind == verdict.kind; });
    file.verdicts.push_back(verdict);
  }
}

Result<VerdictFile> parse_verdict_file(std::string_view text, const DeviceCaps& caps) {
  return without_exceptions([&]() -> Result<VerdictFile> {
    try {
      return parse(text, caps);
    } catch (const std::invalid_argument& error) {
      return Error{Status::io_error, error.what()};
    } catch (const Json::parse_error& error) {
      return Error{Status::io_error, concat("not JSON, from byte ", error.byte, " on")};
    } catch (const Json::exception&) {
      return Error{Status::io_error,
                   "not a file of verdicts: a member is missing, or of another type"};
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
  return json_text(document, 1) + "\n";
}

}  // namespace vkgemm
