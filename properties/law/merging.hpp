#pragma once
// Parts of the keys, each attended alone, merged by their log-sum-exps into what the whole is.

#include "properties/law/trial.hpp"

namespace attest::law {

/// The case whole, and cut into parts at random places: outputs and log-sum-exps.
Plan parts_merge(const Given& given);

}  // namespace attest::law
