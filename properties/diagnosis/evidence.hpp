#pragma once
// What a kernel answered, call by call, beside what it should have: the calls in which it was
// wrong, which an explanation must predict, and those in which it was right, which can refute one.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "properties/diagnosis/deviation.hpp"
#include "properties/search/counterexample.hpp"

namespace attest::diagnosis {

/// Of the other cases of a law, those that held.
inline constexpr std::size_t holding_cases_max = 8;

/// One call.
struct Evidence {
    Specification asked;
    bound::Expected truth;
    TensorSet observed;
    bool output_wrong = false, lse_wrong = false;
    bool unwritten = false;       ///< an element still holds the NaN laid there before the call
    bool workspace_read = false;  ///< one is NaN, of what the workspace held before, for a number

    bool wrong() const noexcept { return output_wrong || lse_wrong; }
};

struct AllEvidence {
    std::vector<Evidence> wrong, right;
    /// Wrong calls with one feature more: an explanation need not predict them, but where it does
    /// it holds with that feature, too.
    std::vector<Evidence> richer;
    bool remembers = false;  ///< a call was wrong after others, and right as the first of a process
    void add(std::optional<Evidence> evidence);
    bool paged() const noexcept;   ///< a call has pages
    bool enough() const noexcept;  ///< more would cost time and say nothing new
    /// What was asked for to refute an explanation: however much there is already.
    void add_probe(Evidence evidence);
};

/// The smallest case, the case as found, relatives of the smallest, and other cases of the law.
std::vector<Case> cases_around(const search::Counterexample& counterexample,
                               const std::vector<search::CaseRecord>& records);

/// The calls the law itself made of the smallest case, with its own inputs, where that has what the
/// law asks for; then the smallest case, the case as found, relatives of the smallest that tell
/// deviations apart, and other cases of the law, the holding ones first. Calls that are too large
/// for the reference to answer again and again, or that end in no answer, are left out.
AllEvidence gather_evidence(search::Kernel& kernel, const search::Counterexample& counterexample,
                            const std::vector<search::CaseRecord>& records);

/// Whether one of the wrong calls has another answer as the first of a process: two seconds are
/// given to that, for processes that take long to start.
bool differs_alone(search::Kernel& kernel, const AllEvidence& evidence);

/// The neighbours of a smallest case (relatives.hpp): calls that no law chose, and that an
/// explanation found without them has to predict too, where the kernel is wrong and where it is
/// right; those with one feature more stand apart where it is wrong.
void add_neighbours(AllEvidence& evidence, search::Kernel& kernel, const Case& smallest);

/// The same for the size of values, from numbers below the least normal ones of f32 up.
void add_magnitudes(AllEvidence& evidence, search::Kernel& kernel, const Case& smallest);

/// One case as the kernel takes it, without its LSE where it does not return one; none where it
/// gives no answer. `change`, where given, edits the inputs first.
std::optional<Evidence> evidence_of(
    search::Kernel& kernel, const Case& tried,
    const std::function<void(const Problem&, TensorSet&)>& change = {});

/// A call and what came of it; none where it ended otherwise, or means nothing to the reference.
std::optional<Evidence> judged_call(Specification asked, worker::CallResult result);

/// Whether a call returned, and the law decided so.
bool answered(const search::CaseRecord& record, law::Decision decision) noexcept;

/// The reference would take too long to answer it under every deviation.
bool too_large(const Case& tried) noexcept;

/// An element is NaN where the truth is a number.
bool nan_for_a_number(const Tensor& observed, const std::vector<bound::ExpectedElement>& truth);

/// The format of the log-sum-exp of such a call.
Precision lse_format(const Problem& problem) noexcept;

}  // namespace attest::diagnosis
