#pragma once
// How far what a deviation predicts agrees with what a kernel answered: element by element, call by
// call, and what follows of it for the calls of one counterexample.

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "properties/diagnosis/diagnose.hpp"
#include "properties/diagnosis/scope.hpp"

namespace attest::diagnosis {

struct AgreementCount {
    std::int64_t agree = 0, of = 0;
    std::int64_t telling = 0;  ///< where all agree, elements that the truth would not explain

    void add(const AgreementCount& more) {
        agree += more.agree;
        of += more.of;
        telling += more.telling;
    }
    bool all() const { return agree == of; }
};

/// What is judged: where every output is right, the log-sum-exp alone.
enum class JudgedPart : std::uint8_t { both, lse };
JudgedPart part_of(const std::vector<Evidence>& wrong);

/// None where the deviation has nothing to say of what is wrong in this call.
std::optional<AgreementCount> count_call(const Deviation& deviation, const Evidence& e,
                                         JudgedPart part);

/// The numbers of parts that kernels are known to make of their own accord of the keys of a call:
/// of one with few rows, with a tile of 16 keys at least in each part.
std::set<std::int64_t> parts_of_own_accord(const Problem& problem);

struct DeviationScore {
    const Deviation* deviation = nullptr;
    AgreementCount count;
    std::int64_t silent = 0;  ///< calls the deviation has nothing to say of

    /// Agrees with every call, and with half of them at least it has something to say of.
    bool fits(std::int64_t cases) const { return 2 * silent <= cases && count.all(); }
};

/// Up to the call that refutes it for the last time asked for.
DeviationScore score(const Deviation& deviation, const std::vector<Evidence>& wrong,
                     JudgedPart part, int refutations = 1);

/// What is never written holds the NaN that was laid there.
void tell_unwritten(Explanation& found, const std::vector<Evidence>& wrong);

/// Of the wrong calls with one feature more, those that it predicts.
std::vector<Problem> predicted_richer(const Deviation& deviation, const AllEvidence& evidence,
                                      JudgedPart part);

Explanation explanation_of(const DeviationScore& score, const AllEvidence& evidence,
                           JudgedPart part);

/// Says where an explanation holds that right calls refute: in such calls; without a scope, in the
/// cases that fail.
void limit(Explanation& explanation, const std::optional<Scope>& scope);

/// What a deviation that another counterexample named says of this one's calls. All of it where it
/// agrees with all of them; else part of it, where it predicts the first of them, or most.
struct SharedExplanation {
    Explanation explanation;
    bool whole = false;
};
std::optional<SharedExplanation> shared_explanation(const Deviation& deviation,
                                                    const AllEvidence& evidence);

}  // namespace attest::diagnosis
