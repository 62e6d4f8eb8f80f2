#pragma once
// Which counterexample of a cause speaks for it.

#include <vector>

#include "properties/diagnosis/counterexample_report.hpp"

namespace attest::diagnosis {

/// The lead is the one a person reads first: wholly explained, repeated in a fresh process, of the
/// law whose sentence says most of this kind of defect; else of the reference, so that it is the
/// same in every run; else small. A law that builds larger cases from its own has tiny ones: they
/// come last.
std::size_t lead_of(const std::vector<std::size_t>& members,
                    const std::vector<CounterexampleReport>& counterexamples);

}  // namespace attest::diagnosis
