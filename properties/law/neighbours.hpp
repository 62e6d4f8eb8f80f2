#pragma once
// What a kernel remembers of its neighbours in time: results must not depend on the calls before.

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::law {

/// f(x), f(y), f(x) with y fresh contents in the same shapes: y is answered as y, x as before.
Judgement no_stale_state(const Trial& trial);

/// f(x), then calls of other strides, lengths, formats and dims, each answered within its bound,
/// then f(x) as before.
Judgement no_stale_plan(const Trial& trial);

/// Every argument the case uses changes the result where the references say it must.
Judgement arguments_matter(const Trial& trial);

/// Non-finite numbers reach the rows that see them and no other.
Plan nonfinite_propagates(const Given& given);

}  // namespace attest::law
