// parallel.hpp: a function on several threads.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

namespace vkgemm {

// Calls work(0) … work(threads - 1), each on a thread of its own, and waits. The caller's thread is
// one of them.
template <class Work>
void on_threads(std::uint64_t threads, const Work& work) {
  std::vector<std::thread> others;
  for (std::uint64_t thread = 1; thread < threads; ++thread) {
    others.emplace_back([&work, thread] { work(thread); });
  }
  if (threads != 0) work(std::uint64_t{0});
  for (std::thread& other : others) other.join();
}

}  // namespace vkgemm
