#pragma once
// Calls so plain that one step of a kernel shows by itself in their answers.

#include <cstdint>
#include <optional>

#include "properties/diagnosis/evidence.hpp"

namespace attest::diagnosis {

/// One query, nothing that a step of another kind could show in, but for what the kernel takes
/// nothing without.
Case plain(const search::Kernel& kernel, const Case& smallest, std::int64_t keys, std::int64_t dim);

/// n O, or the sum of the weights, is known to a few roundings to f32, relative to itself.
inline constexpr double sum_slack = 0x1p-21;

inline constexpr std::int64_t equal_keys = 7;

/// Queries of zeros weigh all keys the same: what is summed up is numbers of the format, the sum is
/// none.
std::optional<Evidence> of_equal_weights(search::Kernel& kernel, const Case& smallest,
                                         Precision format);

/// One key of weight 1, a product of two whole numbers and a value of the format: sums in it are
/// exact.
bool wrong_on_members(search::Kernel& kernel, const Case& smallest, Precision format);

}  // namespace attest::diagnosis
