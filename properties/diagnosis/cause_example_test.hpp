#pragma once
// Counterexamples to group, each with a law, a name or none, and its smallest case.

#include <string>

#include "properties/diagnosis/cause.hpp"
#include "reference/problem/case.hpp"
#include "reference/problem/digest.hpp"

namespace attest::diagnosis {

inline CounterexampleReport counterexample(const std::string& law, const std::string& deviation,
                                           const std::string& line) {
    CounterexampleReport c;
    c.example.law = law;
    c.example.id = sha256_hex(law);
    c.example.smallest = parse_case(line);
    c.example.verdict.violation.emplace().problem = "sentence of " + law;
    c.diagnosis.known = !deviation.empty();
    c.diagnosis.id = deviation;
    c.diagnosis.tells = deviation == "causal_top_left" ? law::Tells::visibility
                        : deviation == "remembers"     ? law::Tells::memory
                                                       : law::Tells::nothing;
    c.diagnosis.cases = 3;
    return c;
}

inline Explanation explanation(const std::string& id, bool refuted = false) {
    Explanation e;
    e.id = id;
    e.says = "what " + id + " is";
    e.refuted = refuted;
    return e;
}

}  // namespace attest::diagnosis
