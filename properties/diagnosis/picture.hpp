#pragma once
// What a kernel reads, read off the kernel itself: with unit vectors for values, the output is a
// block of the weights.

#include <optional>
#include <string>
#include <vector>

#include "properties/search/kernel.hpp"
#include "reference/problem/case.hpp"

namespace attest::diagnosis {

/// Weights of one head as the kernel has them: [len_q][len_kv]. None where the kernel does not
/// answer. Columns of V are taken dim_v at a time, so this costs len_kv / dim_v calls.
std::optional<std::vector<std::vector<double>>> read_weights(search::Kernel& kernel,
                                                             const Case& tried, std::int64_t batch,
                                                             std::int64_t head);

/// Bit rows of batch 0, head 0: what each query may see, and what it reads.
struct Picture {
    std::string line;
    std::vector<std::string> may, reads;  ///< [len_q] strings of len_kv characters 0 and 1
    bool differs() const { return may != reads; }
};
inline constexpr std::int64_t picture_max = 16;

/// Read with Q = 0, so that no weight is too small to show. None above picture_max either way, or
/// where the kernel does not answer.
std::optional<Picture> picture_of(search::Kernel& kernel, const Case& tried);

/// The smallest case, and then the first of its relatives 4 to 8 wide that shows a difference.
std::vector<Picture> pictures_of(search::Kernel& kernel, const Case& smallest);

}  // namespace attest::diagnosis
