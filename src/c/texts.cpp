// texts.cpp: versions, errors, names of enumerators, and texts that need no device.
#include <algorithm>
#include <string>

#include "base/text.hpp"
#include "c/call.hpp"
#include "vkgemm/version.h"

using namespace vkgemm;
using namespace vkgemm::c;

namespace {

// Enumerators that the C++ API has no name for.
struct Name {
  VkgemmEnumeration enumeration;
  std::int32_t value;
  std::string_view name;
};
constexpr Name names[] = {
    {VKGEMM_ENUMERATION_STATUS, VKGEMM_SUCCESS, "success"},
    {VKGEMM_ENUMERATION_STATUS, VKGEMM_ERROR_INVALID_HANDLE, "invalid_handle"},
    {VKGEMM_ENUMERATION_STATUS, VKGEMM_ERROR_BUFFER_TOO_SMALL, "buffer_too_small"},
    {VKGEMM_ENUMERATION_STATUS, VKGEMM_ERROR_INTERNAL, "internal"},
    {VKGEMM_ENUMERATION_DATA_TYPE, VKGEMM_DATA_TYPE_ANY, "any"},
    {VKGEMM_ENUMERATION_REDUCTION_MODE, VKGEMM_REDUCTION_MODE_ANY, "any"},
    {VKGEMM_ENUMERATION_LOG_LEVEL, VKGEMM_LOG_LEVEL_INFO, "info"},
    {VKGEMM_ENUMERATION_LOG_LEVEL, VKGEMM_LOG_LEVEL_WARNING, "warning"},
    {VKGEMM_ENUMERATION_LOG_LEVEL, VKGEMM_LOG_LEVEL_ERROR, "error"},
    {VKGEMM_ENUMERATION_MATRIX_SCOPE, VKGEMM_MATRIX_SCOPE_SUBGROUP, "subgroup"},
    {VKGEMM_ENUMERATION_MATRIX_SCOPE, VKGEMM_MATRIX_SCOPE_WORKGROUP, "workgroup"},
    {VKGEMM_ENUMERATION_PACKED_OPERAND, VKGEMM_PACKED_OPERAND_A, "a"},
    {VKGEMM_ENUMERATION_PACKED_OPERAND, VKGEMM_PACKED_OPERAND_B, "b"},
};

// Calls visit(value, name) for each enumerator of an enumeration.
template <class Visit>
void for_each_name(std::int32_t enumeration, const Visit& visit) {
  for (const Name& name : names) {
    if (name.enumeration == enumeration) visit(name.value, name.name);
  }
  for_each_enumeration([&]<class Cpp>() {
    if constexpr (requires(Cpp cpp) { to_string(cpp); }) {
      if (EnumTable<Cpp>::enumeration != enumeration) return;
      for (const auto& pair : EnumTable<Cpp>::pairs) visit(value_of(pair.c), to_string(pair.cpp));
    }
  });
}

Argument enumeration_argument(std::int32_t value) {
  bool is_known = false;
  for_each_name(value, [&](auto&&...) { is_known = true; });
  if (is_known) return {.name = "enumeration"};
  return {VKGEMM_ERROR_INVALID_ARGUMENT, "enumeration", " is no VkgemmEnumeration"};
}

}  // namespace

VkgemmStatus vkgemm_version(uint32_t* major, uint32_t* minor, uint32_t* patch) {
  return call(nullptr, {pointer(major, "major"), pointer(minor, "minor"), pointer(patch, "patch")},
              [&] {
                *major = VKGEMM_VERSION_MAJOR;
                *minor = VKGEMM_VERSION_MINOR;
                *patch = VKGEMM_VERSION_PATCH;
              });
}

VkgemmStatus vkgemm_error_create(VkgemmError** error) {
  return call(nullptr, {pointer(error, "error")}, [&] { *error = new VkgemmError; });
}

VKGEMM_DESTROY(vkgemm_error_destroy, VkgemmError*, error)

VKGEMM_GET(vkgemm_error_status, const VkgemmError*, error, VkgemmStatus*, status, error->status)

VKGEMM_GET(vkgemm_error_message, const VkgemmError*, error, const char**, message, error->text)

VKGEMM_GET(vkgemm_error_vk_result, const VkgemmError*, error, VkResult*, result, error->vk_result)

VkgemmStatus vkgemm_enumerator_name(VkgemmEnumeration enumeration, int32_t value,
                                    const char** name) {
  return call(nullptr, {enumeration_argument(value_of(enumeration)), pointer(name, "name")},
              [&]() -> MaybeFailure {
                const char* found = nullptr;
                for_each_name(value_of(enumeration),
                              [&](std::int32_t candidate, std::string_view text) {
                                if (candidate == value) found = text.data();  // all are literals
                              });
                if (found == nullptr) return invalid(concat("value is ", value, ": has no name"));
                *name = found;
                return {};
              });
}

VkgemmStatus vkgemm_enumerator_parse(VkgemmEnumeration enumeration, const char* name,
                                     int32_t* value) {
  return call(
      nullptr,
      {enumeration_argument(value_of(enumeration)), pointer(name, "name"), pointer(value, "value")},
      [&]() -> MaybeFailure {
        std::optional<std::int32_t> found;
        for_each_name(value_of(enumeration), [&](std::int32_t candidate, std::string_view text) {
          if (text == name) found = candidate;
        });
        if (!found) return invalid(concat("name is ", in_quotes(name), ": is none"));
        *value = *found;
        return {};
      });
}

VkgemmStatus vkgemm_config_parse(const char* config, VkgemmConfig* parsed, VkgemmError* error) {
  return call(error, {pointer(config, "config"), pointer(parsed, "parsed")}, [&]() -> MaybeFailure {
    const Result<Config> read = parse_config(config);
    if (!read) return failure_of(read.error());
    return write_structure(ToC::structure<VkgemmConfig>(*read), parsed, "parsed");
  });
}

VkgemmStatus vkgemm_config_normalize(const char* config, char* text, size_t* size,
                                     VkgemmError* error) {
  return call(error, {pointer(config, "config"), pointer(size, "size")}, [&]() -> MaybeFailure {
    const Result<Config> read = parse_config(config);
    if (!read) return failure_of(read.error());
    return write_text(to_string(*read), text, size);
  });
}

VkgemmStatus vkgemm_problem_command_line(const VkgemmProblem* problem, char* text, size_t* size,
                                         VkgemmError* error) {
  return call(error, {pointer(problem, "problem"), pointer(size, "size")}, [&]() -> MaybeFailure {
    Problem read;
    if (auto failure = ToCpp::read(*problem, "problem", read)) return failure;
    return write_text(to_command_line(read), text, size);
  });
}

VkgemmStatus vkgemm_kernel_kind_text(const VkgemmKernelKind* kind, char* text, size_t* size,
                                     VkgemmError* error) {
  return call(error, {pointer(kind, "kind"), pointer(size, "size")}, [&]() -> MaybeFailure {
    KernelKind read;
    if (auto failure = ToCpp::read(*kind, "kind", read)) return failure;
    return write_text(to_string(read), text, size);
  });
}

VkgemmStatus vkgemm_packing_of(const VkgemmFingerprint* fingerprint, VkgemmPacking* packing) {
  return call(nullptr, {pointer(fingerprint, "fingerprint"), pointer(packing, "packing")}, [&] {
    *packing = to_c(packing_of(std::bit_cast<Fingerprint>(*fingerprint))).value();
    return MaybeFailure{};
  });
}

VkgemmStatus vkgemm_fingerprint_difference(const VkgemmFingerprint* given,
                                           const VkgemmFingerprint* wanted, char* text,
                                           size_t* size) {
  return call(
      nullptr, {pointer(given, "given"), pointer(wanted, "wanted"), pointer(size, "size")}, [&] {
        const auto fingerprint = [](const VkgemmFingerprint& from) {
          return std::bit_cast<Fingerprint>(from);
        };
        return write_text(difference(fingerprint(*given), fingerprint(*wanted)), text, size);
      });
}
