#pragma once
// Two runs of one truth whose scores differ by one number a row: the outputs are the same, the
// log-sum-exps that number apart.

#include <functional>

#include "properties/law/interval.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/tally.hpp"

namespace attest::law {

/// Both runs' outputs are one truth, and the second L exceeds the first by shift(row).
void compare_shifted(Tally& tally, const Run& first, const Run& second, const char* change,
                     const std::function<Interval(const Row&)>& shift);

}  // namespace attest::law
