#pragma once
// What a kernel's backward answered, call by call, where its forward was right: what it should have
// answered, and in which gradients it was wrong.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/layouts.hpp"
#include "properties/search/counterexample.hpp"

namespace attest::diagnosis {

struct BackwardEvidence {
    Specification asked;  ///< inputs hold d_o, what forward gave, and what it kept
    bound::Expected forward;
    bound::ExpectedGradients truth;
    TensorSet observed;
    std::vector<Role> wrong;
    std::shared_ptr<const BackwardCall> call;
    /// Which weights forward keeps with the next seed; and with this one, of as many queries as
    /// keys that all see each other. Both where weights are dropped and a kernel shows it.
    std::optional<Tensor> next_keep{}, square_keep{};
    bool unwritten = false;       ///< an element still holds the NaN laid there before the call
    bool workspace_read = false;  ///< one is NaN, of what the workspace held before, for a number
};

struct AllBackwardEvidence {
    std::vector<BackwardEvidence> wrong, right;
    bool remembers = false;      ///< wrong after other calls, right as the first of a process
    bool forward_wrong = false;  ///< in the law's own calls
    void add(std::optional<BackwardEvidence> evidence);
};

/// The calls the law itself made of the smallest case; then the smallest case, the case as found,
/// relatives, and other cases of the law.
AllBackwardEvidence gather_backward_evidence(search::Kernel& kernel,
                                             const search::Counterexample& counterexample,
                                             const std::vector<search::CaseRecord>& records);

/// The neighbours of a smallest case in lengths, lists and features, as forward's (evidence.hpp).
void add_neighbours(AllBackwardEvidence& evidence, search::Kernel& kernel, const Case& smallest);

/// One case, forward and backward; none where it has no answer, or where forward was wrong.
std::optional<BackwardEvidence> backward_evidence_of(search::Kernel& kernel, const Case& tried);

/// dQ, the LSE, K, ..., as people write them.
std::string text_of(const std::vector<Role>& roles);

/// The same numbers in tensors laid out so are answered rightly.
bool right_laid_out(search::Kernel& kernel, const BackwardEvidence& evidence,
                    const Layouts& layouts);

/// What is claimed of an element, and the answer is outside of it.
bool outside(double observed, const bound::ExpectedElement& expected, Precision format) noexcept;

}  // namespace attest::diagnosis
