// field_checks.hpp: the checks that walk the fields of a problem's structures. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "problem/enumerators.hpp"
#include "problem/fields.hpp"

namespace vkgemm {

// Finds the first value of an enumeration that is no enumerator.
class EnumeratorCheck {
 public:
  explicit EnumeratorCheck(std::string_view structure) : structure_(structure) {}

  template <class Enum>
  void enumerator(const Field& field, const Enum& value, const Enum&) {
    if (error_ || is_enumerator(value)) return;
    const std::string_view dot = structure_.empty() ? "" : ".";
    error_ = invalid_argument(concat(structure_, dot, field.name, " is ",
                                     static_cast<unsigned>(value), ": no such enumerator"));
  }
  template <class Enum>
  void enumerator(const Field& field, const std::optional<Enum>& value,
                  const std::optional<Enum>&) {
    if (value) enumerator(field, *value, *value);
  }
  template <class Part>
  void part(const Field& field, const Part& value, const Part&) {
    if (error_) return;
    EnumeratorCheck check(field.name);
    FieldsOf<Part>::visit(check, value, value);
    error_ = check.take();
  }
  template <class Part>
  void part(const Field& field, const std::optional<Part>& value, const std::optional<Part>&) {
    if (value) part(field, *value, *value);
  }
  template <class Element, std::size_t count>
  void list(const Field& field, const std::array<Element, count>& values, const auto&) {
    for (std::size_t i = 0; i < count && !error_; ++i) {
      const std::string name = concat(field.name, "[", i, "]");
      if constexpr (std::is_enum_v<Element>) {
        enumerator(Field{.name = name}, values[i], values[i]);
      } else {
        part(Field{.name = concat(structure_, structure_.empty() ? "" : ".", name)}, values[i],
             values[i]);
      }
    }
  }
  void number(const Field&, const auto&, const auto&) {}
  void boolean(const Field&, const auto&, const auto&) {}
  void size(const Field&, const auto&, const auto&) {}
  void real(const Field&, const auto&, const auto&) {}

  MaybeError take() { return std::move(error_); }

 private:
  std::string_view structure_;
  MaybeError error_;
};

// Finds the first part of a problem that contradicts itself or another one.
class PartCheck {
 public:
  explicit PartCheck(const Problem& problem) : problem_(problem) {}

  template <class Part>
  void part(const Field&, const std::optional<Part>& value, const std::optional<Part>&) {
    if constexpr (requires { FieldsOf<Part>::check(*value, problem_); }) {
      if (value && !error_) error_ = FieldsOf<Part>::check(*value, problem_);
    }
  }
  void part(const Field&, const auto&, const auto&) {}
  void enumerator(const Field&, const auto&, const auto&) {}
  void number(const Field&, const auto&, const auto&) {}
  void boolean(const Field&, const auto&, const auto&) {}

  MaybeError take() { return std::move(error_); }

 private:
  const Problem& problem_;
  MaybeError error_;
};

// An error if a field of a structure holds no enumerator; `name`: what messages call the structure.
template <class T>
MaybeError check_enumerators(const T& structure, std::string_view name = {}) {
  EnumeratorCheck check(name);
  FieldsOf<T>::visit(check, structure, structure);
  return check.take();
}

// An error if a part of a problem contradicts itself or another one.
inline MaybeError check_parts(const Problem& problem) {
  PartCheck check(problem);
  FieldsOf<Problem>::visit(check, problem, problem);
  return check.take();
}

}  // namespace vkgemm
