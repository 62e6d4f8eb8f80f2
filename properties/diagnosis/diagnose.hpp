#pragma once
// Which wrong specification explains a kernel's output: the reference is run again under a list of
// known deviations, and one whose answer matches within the bound, output and log-sum-exp, element
// by element, in every call in which the kernel was wrong, is reported. Where it is refuted by
// calls in which the kernel was right, it says so. A deviation that could not tell itself from the
// truth in enough elements is no explanation.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "properties/diagnosis/evidence.hpp"

namespace attest::diagnosis {

/// One element in bfloat16 lies within a bound by chance about once in 2^7; about 100 deviations
/// are tried. Three elements leave chance 100 / 2^21.
inline constexpr std::int64_t telling_elements_min = 3;

/// Beside right calls that refute it, with nothing to tell these from the calls in which it holds:
/// the elements of one short row agree with many a deviation by how they are made, not by chance;
/// those of several rows are asked for.
inline constexpr std::int64_t telling_beside_right_min = 15;

/// What a kernel computes instead, held against every call at hand.
struct Explanation {
    std::string id, says, declared;
    law::Tells tells =
        law::Tells::nothing;         ///< what a law has to tell to show this kind of defect best
    std::int64_t agree = 0, of = 0;  ///< elements within the bound, of those compared
    bool refuted = false;            ///< by a call in which the kernel was right; `says` tells
    std::string bare{};              ///< `says` without where it holds, where it has that
    std::function<bool(const Problem&)> holds_in{};  ///< the calls `says` limits it to
    bool unlimited = false;  ///< refuted, and no relation tells the calls in which it holds
    bool narrowed = false;   ///< of a backward: it says that of some gradients what holds of others
    std::string in_forward{};  ///< of a backward: id of the deviation of forward that implies it
    bool of_both = false;      ///< of a backward: forward was found to have the same defect
    /// It predicts the smallest call, and not most of those that are wrong.
    bool few = false;
    /// That it holds beside right numbers says little: whatever says more stands before it.
    bool general = false;
    std::shared_ptr<const Deviation> deviation{};  ///< of forward; none where it is of no list
    std::string form_of{};                         ///< as the deviation's
};

/// What its forms have in common.
inline const std::string& defect_of(const Explanation& e) noexcept {
    return e.form_of.empty() ? e.id : e.form_of;
}

struct AllBackwardEvidence;

struct Diagnosis : Explanation {
    bool known = false;
    bool backward = false;   ///< of the gradients, beside a forward that is right
    std::int64_t cases = 0;  ///< calls in which the kernel was wrong, of those looked at
    /// Something agrees with every wrong call, and where it holds is not known.
    bool limit_open = false;
    bool too_large = false;  ///< no failing case is small enough to be looked at
    std::string skipped{};   ///< why nothing was asked, where nothing was
    std::string misread{};   ///< of what is not known: which keys are read wrongly (misread.hpp)
    bool strays = false;     ///< of what has no name: calls like it die of a stray read
    std::int64_t tried = 0;  ///< deviations that had something to say of these calls
    std::string next_id{};   ///< the second best, and how many elements it explains
    std::int64_t next_agree = 0;
    /// Whatever else explains the same calls: the cause decides, once all counterexamples are
    /// there. Where nothing is known, what agrees with them in too few elements to be told from the
    /// truth by these alone.
    std::vector<Explanation> also{};
    /// What explanations of other counterexamples predict in part (cross_examination.hpp).
    std::vector<Explanation> shared{};
    /// Ids of those that agree with every call and are told from the truth in too few elements;
    /// and of the deviations of forward that imply them.
    std::vector<std::string> fits{}, fits_in_forward{};
    std::shared_ptr<const AllEvidence> evidence{};  ///< of forward: the calls behind all this
    std::shared_ptr<const AllBackwardEvidence> backward_evidence{};  ///< the same of a backward
    /// Put down to a cause that predicts other numbers: what is wrong here is so where that shows.
    bool in_place_alone = false;
};

/// What was named before, of other counterexamples of a kernel or of fewer calls; each id once.
struct NamedDeviation {
    std::string id, says;  ///< of the explanation
    std::shared_ptr<const Deviation> deviation;
};
using NamedDeviations = std::vector<NamedDeviation>;

/// Of a forward that is known.
void add_named(NamedDeviations& named, const Diagnosis& diagnosis);

/// What the kernel computes instead. Where something `named` agrees with all calls, wrong and
/// right, or holds where it did, it is that, and nothing else is tried. A deviation may have
/// nothing to say of some calls (the splits a kernel chose by itself, say), but of half of them it
/// must. Where no call shows anything wrong the cases are run again with NaN among the keys; and
/// where laws of memory between calls failed on answers that are right by themselves, that is what
/// is told. Of a kernel that `races` no coarser step is named: a number read too early may be as
/// little off.
Diagnosis diagnose(search::Kernel& kernel, const search::Counterexample& counterexample,
                   const std::vector<search::CaseRecord>& records,
                   const NamedDeviations& named = {}, bool races = false);

/// An answer that depends on earlier calls.
Explanation remembered();

/// The same for evidence that is already at hand. A coarser step is named where `refuted` does not
/// say that the kernel takes none such.
Diagnosis explain_evidence(const AllEvidence& evidence,
                           const std::function<bool(const std::string& id)>& refuted = {},
                           const NamedDeviations& named = {});

}  // namespace attest::diagnosis
