#pragma once
// What a kernel reads where it has nothing to seek: a death where a guard lies there, and a number
// of nobody's elsewhere.

#include <vector>

#include "properties/diagnosis/evidence.hpp"

namespace attest::diagnosis {

/// Whether one of the wrong calls dies of such a read, or one like its smallest case: that case,
/// one of tensors that end at their guards, or the case as found; tensors laid both ways, pages in
/// several orders.
bool dies_of_stray_read(search::Kernel& kernel, const search::Counterexample& counterexample,
                        const std::vector<Evidence>& wrong);

}  // namespace attest::diagnosis
