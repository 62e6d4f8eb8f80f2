#pragma once
// Which wrong specification explains a kernel's output: the reference is run again under a list of
// known deviations, and the one whose answer matches within the bound, element by element, on every
// failing case looked at, is reported. A deviation that could not tell itself from the truth on
// these cases is no explanation.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "properties/diagnosis/deviation.hpp"
#include "properties/search/counterexample.hpp"

namespace attest::diagnosis {

/// One failing case with what the kernel answered, and what it should have.
struct Evidence {
    Specification asked;
    bound::Expected truth;
    TensorSet observed;
};

struct Diagnosis {
    bool known = false;
    std::string id, says, declared;
    law::Tells tells =
        law::Tells::nothing;         ///< what a law has to tell to show this kind of defect best
    std::int64_t agree = 0, of = 0;  ///< elements within the bound, of those compared
    std::int64_t cases = 0;          ///< failing cases looked at
    std::int64_t tried = 0;          ///< deviations that had something to say of these cases
    std::string next_id;             ///< the second best, and how many elements it explains
    std::int64_t next_agree = 0;
};

/// What the kernel computes instead. A deviation may have nothing to say of some cases (the splits
/// a kernel chose by itself, say), but of half of them it must. Runs the kernel on the smallest
/// case, the case as found, other failing cases of the law, and wider relatives of the smallest
/// case; those whose own output agrees with the reference are no evidence. Where none is left, the
/// cases are run again with NaN among the keys; and where laws of memory between calls failed on
/// answers that are right by themselves, that is what is told.
Diagnosis diagnose(search::Kernel& kernel, const search::Counterexample& counterexample,
                   const std::vector<search::CaseRecord>& records);

/// The same for evidence that is already at hand.
Diagnosis explain_evidence(const std::vector<Evidence>& evidence);

/// The evidence of one case; none where the kernel does not answer, or answers as it should.
/// `change`, where given, edits the inputs first.
std::optional<Evidence> evidence_of(
    search::Kernel& kernel, const Case& tried,
    const std::function<void(const Problem&, TensorSet&)>& change = {});

}  // namespace attest::diagnosis
