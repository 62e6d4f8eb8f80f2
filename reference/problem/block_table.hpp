#pragma once
// Which page of a paged cache holds which keys.

#include <cstdint>

#include "reference/problem/problem.hpp"
#include "reference/problem/tensor.hpp"

namespace attest {

/// Physical pages in an order drawn by the seed, handed to the sequences one after another.
void fill_block_table(const Problem& problem, std::uint64_t seed, Tensor& table);

}  // namespace attest
