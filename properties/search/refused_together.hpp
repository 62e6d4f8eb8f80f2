#pragma once
// What a kernel refuses when things come together, as its answers to drawn cases show: several
// queries behind a cache in more than one sequence, a window without a causal mask. Learned before
// the first case, so that no law's cases are lost to it, and said once.

#include <cstdint>
#include <string>
#include <vector>

#include "reference/problem/problem.hpp"

namespace attest::search {

/// Some of a problem's traits: features it has, features it has not, facts of its sizes. As bits.
using Traits = std::uint64_t;
Traits traits_of(const Problem& problem);

/// For people: "cache with batch > 1 with several queries".
std::string said(Traits traits);

/// At most three traits each. Every problem that has all of one was refused, and so many of them
/// were that chance does not do it: were refusals spread over the draws at random, it would find
/// any such set at all in one kernel of a hundred.
std::vector<Traits> refused_together(const std::vector<Traits>& accepted,
                                     std::vector<Traits> refused);

}  // namespace attest::search
