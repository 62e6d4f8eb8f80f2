#pragma once
// One defect breaks many laws, and each counterexample was explained by itself, from its own calls:
// what one of them names is tried on the calls of all others.

#include <vector>

#include "properties/diagnosis/counterexample_report.hpp"

namespace attest::diagnosis {

/// What their forward passes were found to compute, in their order.
NamedDeviations named_in(const std::vector<CounterexampleReport>& counterexamples);

/// Adds to each counterexample what others' explanations say of its calls. One that agrees with all
/// of them joins `also`. Where nothing, or only something general, was found, one that predicts the
/// first of them or most of them joins `shared`: the kernel has that defect there, and a second one
/// is not shown by it. Of a backward, what is named as a deviation of its own and was found in
/// forward too is that defect of forward: it joins `also` under forward's name.
void cross_examine(std::vector<CounterexampleReport>& counterexamples);

}  // namespace attest::diagnosis
