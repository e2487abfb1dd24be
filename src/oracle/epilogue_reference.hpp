// epilogue_reference.hpp: what the elementwise epilogue makes of a product's sums in double
// precision, and how far a correct f32 kernel may be off. Internal to the reference.
#pragma once

#include <cstdint>

#include "oracle/groups.hpp"
#include "oracle/tile_reference.hpp"

namespace vkgemm::oracle {

struct Expected {
  double pre[2] = {};        // what aux holds, before the cast; with a gate l and r
  double pre_bound[2] = {};  // error of it in a correct f32 kernel
  double d = 0.0;
  double d_bound = 0.0;
  double stored[most_tensors] = {};  // by steps, before the cast; or a term of a column's sum
  double stored_bound[most_tensors] = {};
  // An intermediate value may exceed f32's range, and whether it does depends on the order of the
  // sum: any result is right.
  bool unpredictable = false;
  bool ambiguous = false;  // zero is right, and NaN
};

// A tile's epilogue: everything but A and B that an element of D depends on.
class EpilogueOracle {
 public:
  EpilogueOracle(const Problem& problem, const Views& views, const HostOperands& operands)
      : problem_(problem), views_(views), operands_(operands), epilogue_(problem.epilogue) {}

  // The value expected of element (i, j) of D, element `at` of a tile. `sums`: with a gate two, of
  // l and of r.
  Expected operator()(std::uint64_t batch, std::uint64_t i, std::uint64_t j, const Sums* sums,
                      std::uint64_t at) const;

 private:
  Expected pre(std::uint64_t batch, std::uint64_t i, std::uint64_t j, double dot,
               double magnitude) const;
  void apply_steps(Expected& expected, std::uint64_t batch, std::uint64_t i, std::uint64_t j) const;
  double clamp(double x) const;
  void bound(Expected& expected, double product_size, double magnitude, double scales,
             double size) const;
  bool has_scales() const {
    return epilogue_.row_scales != Scales::none || epilogue_.column_scales != Scales::none;
  }

  const Problem& problem_;
  const Views& views_;
  const HostOperands& operands_;
  const Epilogue& epilogue_;
};

}  // namespace vkgemm::oracle
