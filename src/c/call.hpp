// call.hpp: what every function of the C API does around its own work: it checks its arguments,
// lets no exception out, and tells its status.
#pragma once

#include <concepts>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "c/failure.hpp"
#include "c/handles.hpp"
#include "vkgemm/vkgemm.h"

namespace vkgemm::c {

// An argument of a call: what is wrong with it, if anything is.
struct Argument {
  VkgemmStatus status = VKGEMM_SUCCESS;
  std::string_view name;
  std::string_view complaint = {};
};

// A handle that must be alive.
template <class Handle>
Argument handle(const Handle* given, std::string_view name) {
  if (given == nullptr) return {VKGEMM_ERROR_INVALID_HANDLE, name, " is null"};
  if (is_alive(given)) return {.name = name};
  return {VKGEMM_ERROR_INVALID_HANDLE, name, " is of another kind, was destroyed, or is no handle"};
}

// A handle that may be null: of destruction.
template <class Handle>
Argument handle_or_null(const Handle* given, std::string_view name) {
  return given == nullptr ? Argument{.name = name} : handle(given, name);
}

// A pointer that must not be null.
inline Argument pointer(const void* given, std::string_view name) {
  if (given == nullptr) return {VKGEMM_ERROR_INVALID_ARGUMENT, name, " is null"};
  return {.name = name};
}

// Calls work(), which returns nothing or a MaybeFailure, if all arguments are right.
template <class Work>
VkgemmStatus call(VkgemmError* error, std::initializer_list<Argument> arguments,
                  Work&& work) noexcept {
  if (error != nullptr && !is_alive(error)) return VKGEMM_ERROR_INVALID_HANDLE;
  MaybeFailure failure;
  const char* text = nullptr;  // of failures for whose message there may be no memory
  VkgemmStatus status = VKGEMM_SUCCESS;
  try {
    for (const Argument& argument : arguments) {
      if (argument.status == VKGEMM_SUCCESS) continue;
      failure = Failure{argument.status, std::string(argument.name) += argument.complaint};
      break;
    }
    if (!failure) {
      if constexpr (std::same_as<std::invoke_result_t<Work>, void>) {
        std::forward<Work>(work)();
      } else {
        failure = std::forward<Work>(work)();
      }
    }
    if (failure) status = failure->status;
  } catch (const std::bad_alloc&) {
    status = VKGEMM_ERROR_OUT_OF_HOST_MEMORY;
    text = "no host memory";
  } catch (...) {
    status = VKGEMM_ERROR_INTERNAL;
    text = "an exception that vkgemm did not expect";
  }
  if (error == nullptr) return status;
  error->status = status;
  error->vk_result = text == nullptr && failure ? failure->vk_result : VK_SUCCESS;
  error->message.clear();
  if (text == nullptr && failure) error->message = std::move(failure->message);
  error->text = text != nullptr ? text : error->message.c_str();
  return status;
}

// Defines a function that hands out a value of a handle.
#define VKGEMM_GET(function, Handle, from, Pointer, to, value)                               \
  VkgemmStatus function(Handle from, Pointer to) {                                           \
    return call(nullptr, {handle(from, #from), pointer(to, #to)}, [&] { *(to) = (value); }); \
  }

// Defines a function that destroys a handle.
#define VKGEMM_DESTROY(function, Handle, from)                                   \
  VkgemmStatus function(Handle from) {                                           \
    return call(nullptr, {handle_or_null(from, #from)}, [&] { delete (from); }); \
  }

// Hands a text over as vkgemm.h says.
inline MaybeFailure write_text(std::string_view from, char* text, std::size_t* size) {
  const std::size_t room = std::exchange(*size, from.size() + 1);
  if (text == nullptr) return {};
  if (room <= from.size()) return Failure{VKGEMM_ERROR_BUFFER_TOO_SMALL, "the text does not fit"};
  text[from.copy(text, from.size())] = '\0';
  return {};
}

// Defines a function that hands out a text of a handle.
#define VKGEMM_GET_TEXT(function, Handle, from, value)                 \
  VkgemmStatus function(Handle from, char* text, size_t* size) {       \
    return call(nullptr, {handle(from, #from), pointer(size, "size")}, \
                [&] { return write_text((value), text, size); });      \
  }

// Defines a function that hands out a structure of a handle.
#define VKGEMM_GET_STRUCTURE(function, Handle, from, Pointer, to, value)                           \
  VkgemmStatus function(Handle from, Pointer to) {                                                 \
    return call(nullptr, {handle(from, #from), pointer(to, #to)}, [&] {                            \
      return write_structure(ToC::structure<std::remove_pointer_t<decltype(to)>>(value), to, #to); \
    });                                                                                            \
  }

inline MaybeFailure check_array(const void* array, std::string_view name, std::uint32_t count,
                                std::string_view count_name) {
  if (array != nullptr || count == 0) return {};
  return invalid(concat(name, " is null, and ", count_name, " is ", count));
}

// An index of a list of the caller's.
inline MaybeFailure check_index(std::uint32_t index, std::size_t count) {
  if (index < count) return {};
  return invalid(concat("index is ", index, ", and there are ", count));
}

// Hands an element of a list over.
template <class C, class List>
MaybeFailure write_element(const List& list, std::uint32_t index, C* to, std::string_view name) {
  if (auto failure = check_index(index, list.size())) return failure;
  return write_structure(ToC::structure<C>(list[index]), to, name);
}

// Defines a function that hands out an element of a list of a handle.
#define VKGEMM_GET_ELEMENT(function, Handle, from, Pointer, to, list)   \
  VkgemmStatus function(Handle from, uint32_t index, Pointer to) {      \
    return call(nullptr, {handle(from, #from), pointer(to, #to)},       \
                [&] { return write_element((list), index, to, #to); }); \
  }

}  // namespace vkgemm::c
