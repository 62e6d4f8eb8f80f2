#pragma once
// What slots of a cache hold that hold no key: NaN, or, for a kernel that is asked for nothing
// beside NaN, a number that no answer has a use for, as earlier tokens may have left one there.

#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"
#include "reference/problem/tensor.hpp"

namespace attest {

/// NaN, or a number that is exact in every format.
double in_empty_slots(const Dialect& dialect) noexcept;

/// Keys or values [batch, heads, len_kv, dim] of a cache, as make_inputs makes them: what is NaN at
/// and past a sequence's number of keys becomes that.
void fill_empty_slots(Tensor& keys, const Problem& problem, const Dialect& dialect);

}  // namespace attest
