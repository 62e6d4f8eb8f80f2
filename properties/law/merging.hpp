#pragma once
// Parts of the keys, each attended alone, merged by their log-sum-exps into what the whole is.

#include <cstdint>
#include <vector>

#include "properties/law/interval.hpp"
#include "properties/law/paired_runs.hpp"

namespace attest::law {

/// Where the keys are cut into parts, ends included: one boundary or two at random places, never an
/// empty part. At least two keys.
std::vector<std::int64_t> cuts(const Trial& trial, std::uint64_t stream, std::int64_t keys);

/// What the parts say of one row: for each that sees a key, its L and its share of the whole.
struct Merge {
    std::vector<const Run*> parts;
    std::vector<double> share;   ///< softmax of the middles of the parts' L
    std::vector<double> excess;  ///< expm1 of what each L may be off by
    Interval lse;
    double off = 0;  ///< sum of share * excess
};

Merge merge_row(const std::vector<Run>& parts, const Row& row);

/// The merged output of one channel, enclosed; everything where the parts are known too badly.
Interval merged(const Merge& merge, const Row& row, std::int64_t channel);

}  // namespace attest::law
