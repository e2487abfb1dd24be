// parallel.hpp: a function on several threads.
#pragma once

#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace vkgemm {

// Calls work(0) … work(threads - 1), each on a thread of its own, and waits. The caller's thread is
// one of them, and does the work of threads that the system refuses.
template <class Work>
void on_threads(std::uint64_t threads, const Work& work) {
  std::vector<std::thread> others;
  others.reserve(threads);
  std::uint64_t next = 1;
  try {
    for (; next < threads; ++next) others.emplace_back([&work, next] { work(next); });
  } catch (const std::system_error&) {  // no thread: the rest is for this one
  }
  if (threads != 0) work(std::uint64_t{0});
  for (; next < threads; ++next) work(next);
  for (std::thread& other : others) other.join();
}

}  // namespace vkgemm
