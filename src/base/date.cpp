#include "base/date.hpp"

#include <chrono>
#include <cstdio>

namespace vkgemm {

std::string today() {
  namespace chrono = std::chrono;
  const chrono::year_month_day date(chrono::floor<chrono::days>(chrono::system_clock::now()));
  char text[32];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return text;
}

}  // namespace vkgemm
