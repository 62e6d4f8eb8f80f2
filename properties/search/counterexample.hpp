#pragma once
// A failure made small, and the way there.

#include "properties/search/confirmation.hpp"
#include "properties/search/judge.hpp"

namespace attest::search {

struct ShrinkStep {
    std::int64_t evaluation = 0;
    std::string pass, change, line;
    std::int64_t scores = 0;
};

struct Counterexample {
    std::string law;
    std::string id;  ///< SHA-256 of case and law, hex
    Case smallest;
    law::Verdict verdict;
    worker::Outcome outcome = worker::Outcome::ok;
    std::optional<worker::Fault> fault;
    std::string printed;  ///< by the kernel, in the smallest case
    CaseRecord found;
    std::int64_t evaluations = 0, accepted = 0;
    double shrink_seconds = 0;
    Confirmed confirmed;
    std::vector<ShrinkStep> steps;
};

}  // namespace attest::search
