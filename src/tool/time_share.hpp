// time_share.hpp: the time that the search of one problem has. Pure: callers say what has passed.
#pragma once

#include <algorithm>

namespace vkgemm::tool {

class TimeShare {
 public:
  explicit TimeShare(double seconds) : seconds_(std::max(seconds, 0.0)) {}

  double seconds() const { return seconds_; }

  // The part that is spent; 1 or more: all of it.
  double spent(double passed_s) const { return seconds_ > 0.0 ? passed_s / seconds_ : 1.0; }

  // True if a step as long as the longest one of its kind before would end in time: a step that is
  // begun is finished, and one that compiles a kernel may take seconds.
  bool has_room(double passed_s, double longest_step_s) const {
    return seconds_ > 0.0 && passed_s + longest_step_s <= seconds_;
  }

 private:
  double seconds_;
};

}  // namespace vkgemm::tool
