// fields.hpp: which field of a structure of the C API is which of the C++ API. Each pair is named
// once, and serves both directions: what the caller gives, and what he is given, defaults included.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "c/enums.hpp"
#include "c/failure.hpp"
#include "c/structures.hpp"
#include "kernels/main_loop.hpp"
#include "problem/fields.hpp"
#include "problem/operands.hpp"
#include "vkgemm/context.hpp"
#include "vkgemm/vkgemm.h"

namespace vkgemm::c {

// Fields<C>: Cpp, the structure of the C++ API, and map(), which hands each pair of fields to
// ToCpp or ToC.
template <class C>
struct Fields;

// The parts of a problem that is handed to the caller, which stay in place.
class Parts {
 public:
  // The place of the next part of a type.
  template <class C>
  C& next() {
    auto place = std::make_shared<C>();
    C& part = *place;
    places_.push_back(std::move(place));
    return part;
  }

 private:
  std::vector<std::shared_ptr<void>> places_;
};

template <class C>
C defaults();

// From the caller. Keeps the first failure, whose message names the field.
class ToCpp {
 public:
  // `structure` is what messages call the structure: "a", of "a.type".
  explicit ToCpp(std::string_view structure) : structure_(structure) {}

  template <class T, class U>
  void number(std::string_view, const T& c, U& cpp) {
    cpp = c;
  }
  template <class C, class Cpp>
  void enumerator(std::string_view name, const C& c, Cpp& cpp) {
    static_assert(std::same_as<C, CEnum<Cpp>>);
    if (const auto found = to_cpp<Cpp>(value_of(c))) {
      cpp = *found;
    } else {
      fail(name, value_of(c), concat("no ", EnumTable<Cpp>::name, " that can stand here"));
    }
  }
  // Zero of enumerations that have an ANY.
  template <class C, class Cpp>
  void enumerator(std::string_view name, const C& c, std::optional<Cpp>& cpp) {
    if (value_of(c) == 0) return cpp.reset();
    enumerator(name, c, cpp.emplace());
  }
  void boolean(std::string_view name, VkBool32 c, bool& cpp) {
    if (c > VK_TRUE) fail(name, c, "VK_FALSE or VK_TRUE is needed");
    cpp = c != VK_FALSE;
  }
  void boolean(std::string_view name, VkBool32 c, std::uint32_t& cpp) {
    bool is = false;
    boolean(name, c, is);
    cpp = is ? 1 : 0;
  }
  void size(std::string_view, std::uint64_t c, std::optional<std::uint64_t>& cpp) {
    cpp = c == VKGEMM_NOT_SET ? std::nullopt : std::optional(c);
  }
  void real(std::string_view, float c, std::optional<float>& cpp) {
    cpp = std::isnan(c) ? std::nullopt : std::optional(c);
  }
  void span(const VkgemmDeviceSpan& c, DeviceSpan& cpp) { cpp = {c.address, c.bytes}; }
  void fingerprint(const VkgemmFingerprint& c, Fingerprint& cpp) {
    cpp = std::bit_cast<Fingerprint>(c);
  }
  void text(const char* c, std::string& cpp) { cpp = c != nullptr ? c : ""; }
  void reserved(std::uint32_t c, std::string_view name = "reserved") {
    if (c != 0) fail(name, c, "0 is needed");
  }
  // What vkgemm alone sets.
  template <class T, class U>
  void told(T&, const U&) {}
  template <class C>
  void part(std::string_view name, const C* c, typename Fields<C>::Cpp& cpp) {
    if (c != nullptr && !failure_) failure_ = read(*c, name, cpp);
  }
  template <class C>
  void part(std::string_view name, const C* c, std::optional<typename Fields<C>::Cpp>& cpp) {
    if (c != nullptr && !failure_) failure_ = read(*c, name, cpp.emplace());
  }

  template <class C, class Cpp, std::size_t count>
  void list(std::string_view name, const C (&c)[count], std::array<Cpp, count>& cpp) {
    for (std::size_t i = 0; i < count && !failure_; ++i) {
      const std::string element = concat(name, "[", i, "]");
      if constexpr (std::is_enum_v<Cpp>) {
        enumerator(element, c[i], cpp[i]);
      } else {
        const std::string whole = concat(structure_, structure_.empty() ? "" : ".", element);
        ToCpp map(whole);
        FieldsOf<Cpp>::visit(map, c[i], cpp[i]);
        failure_ = map.failure_;
      }
    }
  }

  // Reads a structure of the caller's.
  template <class C>
  static MaybeFailure read(const C& given, std::string_view name, typename Fields<C>::Cpp& cpp) {
    C c = defaults<C>();
    if (auto failure = read_structure(given, name, c)) return failure;
    ToCpp map(name);
    Fields<C>::map(map, static_cast<const C&>(c), cpp);
    return map.failure_;
  }

  const MaybeFailure& failure() const { return failure_; }

 private:
  template <class T>
  void fail(std::string_view field, T value, std::string_view why) {
    if (failure_) return;
    const std::string_view dot = structure_.empty() ? "" : ".";
    failure_ = invalid(concat(structure_, dot, field, " is ", value, ": ", why));
  }

  std::string_view structure_;
  MaybeFailure failure_;
};

// To the caller.
class ToC {
 public:
  // Without a place for them, parts are null.
  explicit ToC(Parts* parts = nullptr) : parts_(parts) {}

  template <class T, class U>
  void number(std::string_view, T& c, const U& cpp) {
    c = cpp;
  }
  template <class C, class Cpp>
  void enumerator(std::string_view, C& c, Cpp cpp) {
    c = to_c(cpp).value();  // tests/host/c_abi_test.cpp: every enumerator has one
  }
  template <class C, class Cpp>
  void enumerator(std::string_view name, C& c, const std::optional<Cpp>& cpp) {
    c = C{};
    if (cpp) enumerator(name, c, *cpp);
  }
  void boolean(std::string_view, VkBool32& c, auto cpp) { c = cpp ? VK_TRUE : VK_FALSE; }
  void size(std::string_view, std::uint64_t& c, std::optional<std::uint64_t> cpp) {
    c = cpp.value_or(VKGEMM_NOT_SET);
  }
  void real(std::string_view, float& c, std::optional<float> cpp) {
    c = cpp.value_or(std::numeric_limits<float>::quiet_NaN());
  }
  void span(VkgemmDeviceSpan& c, const DeviceSpan& cpp) { c = {cpp.address, cpp.bytes}; }
  void fingerprint(VkgemmFingerprint& c, const Fingerprint& cpp) {
    c = std::bit_cast<VkgemmFingerprint>(cpp);
  }
  void text(const char*& c, const std::string& cpp) { c = cpp.c_str(); }
  void reserved(std::uint32_t& c, std::string_view = {}) { c = 0; }
  template <class T, class U>
  void told(T& c, const U& cpp) {
    c = cpp;
  }
  template <class C>
  void part(std::string_view, const C*& c, const typename Fields<C>::Cpp& cpp) {
    c = nullptr;
    if (parts_ == nullptr) return;
    C& place = parts_->next<C>();
    place = structure<C>(cpp);
    c = &place;
  }
  template <class C>
  void part(std::string_view name, const C*& c, const std::optional<typename Fields<C>::Cpp>& cpp) {
    c = nullptr;
    if (cpp) part(name, c, *cpp);
  }

  template <class C, class Cpp, std::size_t count>
  void list(std::string_view name, C (&c)[count], const std::array<Cpp, count>& cpp) {
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (std::is_enum_v<Cpp>) {
        enumerator(name, c[i], cpp[i]);
      } else {
        FieldsOf<Cpp>::visit(*this, c[i], cpp[i]);
      }
    }
  }

  // A structure for the caller. Texts in it are those of `cpp`.
  template <class C>
  static C structure(const typename Fields<C>::Cpp& cpp, Parts* parts = nullptr) {
    C c{};
    c.struct_size = sizeof(C);
    ToC map(parts);
    Fields<C>::map(map, c, cpp);
    return c;
  }

 private:
  Parts* parts_;
};

// The defaults of the C++ API.
template <class C>
C defaults() {
  static const typename Fields<C>::Cpp cpp{};  // whose empty texts a structure may point at
  return ToC::structure<C>(cpp);
}

// The fields of a structure that src/problem/fields.hpp lists.
template <class T>
struct ListedFields {
  using Cpp = T;
  static void map(auto& map, auto& c, auto& cpp) {
    FieldsOf<T>::visit(map, c, cpp);
    if constexpr (requires { c.reserved; }) map.reserved(c.reserved);
  }
};

#define VKGEMM_LISTED_FIELDS(type, name) \
  template <>                            \
  struct Fields<Vkgemm##type> : ListedFields<type> {};
VKGEMM_STRUCTURES(VKGEMM_LISTED_FIELDS)
#undef VKGEMM_LISTED_FIELDS

template <>
struct Fields<VkgemmOperands> {
  using Cpp = Operands;
  static void map(auto& map, auto& c, auto& cpp) {
    map.reserved(c.reserved);
#define VKGEMM_MAP_SPAN(name) map.span(c.name, cpp.name);
    VKGEMM_OPERANDS(VKGEMM_MAP_SPAN)
#undef VKGEMM_MAP_SPAN
    map.span(c.workspace, cpp.workspace);
    map.fingerprint(c.a_fingerprint, cpp.a_fingerprint);
    map.fingerprint(c.b_fingerprint, cpp.b_fingerprint);
    map.fingerprint(c.b_right_fingerprint, cpp.b_right_fingerprint);
  }
};

template <>
struct Fields<VkgemmDispatchRange> {
  using Cpp = DispatchRange;
  static void map(auto& map, auto& c, auto& cpp) {
    map.number("first", c.first, cpp.first);
    map.number("count", c.count, cpp.count);
    map.reserved(c.reserved);
  }
};

// Its other members refer to memory of the caller.
template <>
struct Fields<VkgemmTuneInfo> {
  using Cpp = TuneInfo;
  static void map(auto& map, auto& c, auto& cpp) {
    map.number("queue_family", c.queue_family, cpp.queue_family);
    map.number("queue", c.queue, cpp.queue);
    map.number("budget_ms", c.budget_ms, cpp.budget_ms);
    map.number("max_candidates", c.max_candidates, cpp.max_candidates);
    map.number("threads", c.threads, cpp.threads);
    map.boolean("warm_l2", c.warm_l2, cpp.warm_l2);
    map.boolean("skip_timed", c.skip_timed, cpp.skip_timed);
    map.reserved(c.reserved);
  }
};

template <>
struct Fields<VkgemmTuneProgress> {
  using Cpp = TuneProgress;
  static void map(auto& map, auto& c, auto& cpp) {
    map.number("timed", c.timed, cpp.timed);
    map.number("candidates", c.candidates, cpp.candidates);
    map.reserved(c.reserved);
    map.number("elapsed_ms", c.elapsed_ms, cpp.elapsed_ms);
    map.number("best_us", c.best_us, cpp.best_us);
    map.number("chosen_us", c.chosen_us, cpp.chosen_us);
  }
};

template <>
struct Fields<VkgemmPackedLayout> {
  using Cpp = PackedLayout;
  static void map(auto& map, auto& c, auto& cpp) {
    map.reserved(c.reserved);
    map.number("bytes", c.bytes, cpp.bytes);
    map.number("matrix_bytes", c.matrix_bytes, cpp.matrix_bytes);
    map.number("alignment", c.alignment, cpp.alignment);
    map.fingerprint(c.fingerprint, cpp.fingerprint);
  }
};

template <>
struct Fields<VkgemmConfig> {
  using Cpp = Config;
  static void map(auto& map, auto& c, auto& cpp) {
    map.enumerator("path", c.path, cpp.path());
    map.enumerator("main_loop", c.main_loop, cpp.main_loop());
    map.number("tile_m", c.tile_m, cpp.tile_m);
    map.number("tile_n", c.tile_n, cpp.tile_n);
    map.number("tile_k", c.tile_k, cpp.tile_k);
    map.number("swizzle", c.swizzle, cpp.swizzle);
    map.number("slices", c.slices, cpp.slices);
    map.enumerator("reduction_mode", c.reduction_mode, cpp.reduction_mode);
    map.number("workgroups", c.workgroups, cpp.workgroups);
    map.number("spin_limit", c.spin_limit, cpp.spin_limit);
    map.boolean("pack_a", c.pack_a, cpp.pack_a);
    map.boolean("pack_b", c.pack_b, cpp.pack_b);
    map.boolean("static_shape", c.static_shape, cpp.static_shape);
    map.enumerator("schedule", c.schedule, cpp.schedule);
    map.enumerator("rows", c.rows, cpp.rows);
  }
};

template <>
struct Fields<VkgemmFragmentShape> {
  using Cpp = FragmentShape;
  static void map(auto& map, auto& c, auto& cpp) {
    map.enumerator("input", c.input, cpp.input);
    map.enumerator("accumulator", c.accumulator, cpp.accumulator);
    map.number("m", c.m, cpp.m);
    map.number("n", c.n, cpp.n);
    map.number("k", c.k, cpp.k);
  }
};

template <>
struct Fields<VkgemmFlexibleShape> {
  using Cpp = FlexibleShape;
  static void map(auto& map, auto& c, auto& cpp) {
    map.enumerator("input", c.input, cpp.input);
    map.enumerator("accumulator", c.accumulator, cpp.accumulator);
    map.enumerator("scope", c.scope, cpp.scope);
    map.number("granularity_m", c.granularity_m, cpp.granularity_m);
    map.number("granularity_n", c.granularity_n, cpp.granularity_n);
    map.number("granularity_k", c.granularity_k, cpp.granularity_k);
    map.number("invocations", c.invocations, cpp.invocations);
  }
};

template <>
struct Fields<VkgemmDenial> {
  using Cpp = Denial;
  static void map(auto& map, auto& c, auto& cpp) {
    map.enumerator("path", c.path, cpp.path);
    map.enumerator("input", c.input, cpp.input);
    map.number("m", c.m, cpp.m);
    map.number("n", c.n, cpp.n);
    map.number("k", c.k, cpp.k);
    map.boolean("shapes_unknown", c.shapes_unknown, cpp.shapes_unknown);
    map.reserved(c.reserved);
    map.text(c.reason, cpp.reason);
  }
};

template <>
struct Fields<VkgemmKernelKind> {
  using Cpp = KernelKind;
  // Of a verdict, too.
  static void map(auto& map, auto& c, auto& cpp) {
    map.enumerator("loop", c.loop, cpp.loop);
    map.enumerator("input", c.input, cpp.input);
    const auto number = [&](std::string_view name, auto& number_of_c, bool is_boolean = false) {
      auto* const found = find_number(cpp, name);
      if (found == nullptr) {
        map.reserved(number_of_c, name);
      } else if (is_boolean) {
        map.boolean(name, number_of_c, *found);
      } else {
        map.number(name, number_of_c, *found);
      }
    };
    number("m", c.m);
    number("n", c.n);
    number("k", c.k);
    number("subgroup_size", c.subgroup_size);
    number("invocations", c.invocations);
    number("a_in_rows", c.a_in_rows, true);
    number("code_run", c.code_run);
  }
};

template <>
struct Fields<VkgemmVerdict> {
  using Cpp = Verdict;
  static void map(auto& map, auto& c, auto& cpp) {
    map.enumerator("outcome", c.outcome, cpp.outcome);
    map.told(c.failed, cpp.failed() ? VK_TRUE : VK_FALSE);
    Fields<VkgemmKernelKind>::map(map, c, cpp.kind);
    map.text(c.detail, cpp.detail);
    map.text(c.config, cpp.config);
  }
};

template <>
struct Fields<VkgemmLimits> {
  using Cpp = Limits;
  static void map(auto& map, auto& c, auto& cpp) {
    map.number("max_shared_memory_bytes", c.max_shared_memory_bytes, cpp.max_shared_memory_bytes);
    map.number("max_invocations", c.max_invocations, cpp.max_invocations);
    map.number("max_push_constant_bytes", c.max_push_constant_bytes, cpp.max_push_constant_bytes);
    for (std::size_t i = 0; i < cpp.max_workgroup_count.size(); ++i) {
      map.number("max_workgroup_count", c.max_workgroup_count[i], cpp.max_workgroup_count[i]);
    }
    map.number("min_subgroup_size", c.min_subgroup_size, cpp.min_subgroup_size);
    map.number("max_subgroup_size", c.max_subgroup_size, cpp.max_subgroup_size);
    map.number("max_subgroups_per_workgroup", c.max_subgroups_per_workgroup,
               cpp.max_subgroups_per_workgroup);
    map.boolean("subgroup_size_control", c.subgroup_size_control, cpp.subgroup_size_control);
    map.number("compute_units", c.compute_units, cpp.compute_units);
    map.number("nv_max_dimension", c.nv_max_dimension, cpp.nv_max_dimension);
    map.number("nv_max_invocations", c.nv_max_invocations, cpp.nv_max_invocations);
    map.number("nv_reserved_shared_memory_bytes", c.nv_reserved_shared_memory_bytes,
               cpp.nv_reserved_shared_memory_bytes);
    map.reserved(c.reserved);
    map.boolean("subgroup_shuffles", c.subgroup_shuffles, cpp.subgroup_shuffles);
    map.boolean("subgroup_votes", c.subgroup_votes, cpp.subgroup_votes);
  }
};

}  // namespace vkgemm::c
