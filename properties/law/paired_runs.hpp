#pragma once
// Paired runs: a kernel is run on x and on a transformed x', and the two outputs are compared as
// the law says. Where the law promises the same arithmetic, to the bit. Where it promises the same
// real number T only, by the two derived bounds: before its last rounding each run is within
// bound_1, bound_2 of T, so the sets of numbers T can be, given what was observed, must meet.
// And where the law promises a difference, by the reference: two elements whose admitted
// intervals do not meet must come out apart.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "properties/law/calls.hpp"
#include "properties/law/compare.hpp"
#include "properties/law/verdict.hpp"

namespace attest::law {

/// Which row of the second run is which row of the first.
struct RowMatch {
    Row first, second;
    bool lse = true;  ///< whether the log-sum-exp of this row is defined
};

/// What a law promises of two matched rows: the same arithmetic, which gives the same bits; or the
/// same real numbers, each run within its own bound, where a channel of the first output may be
/// another one of the second, or its negative.
struct SameBits {};
struct SecondChannel {
    std::int64_t channel = 0;
    bool negated = false;
};
struct SameTruth {
    std::function<SecondChannel(std::int64_t channel)> channel{};  ///< empty: each is itself
};
using Promise = std::variant<SameTruth, SameBits>;
inline Promise same_bits_if(bool promised) {
    return promised ? Promise(SameBits{}) : SameTruth{};
}

/// How two runs correspond.
struct Relation {
    std::vector<RowMatch> rows;
    Promise promise = SameTruth{};
    /// The one-line sentence of a violation; empty: that the row gets another answer.
    std::function<std::string(const RowMatch&)> sentence;
};

/// The rows of a problem that the dialect defines: where it says refuse neither the empty ones nor
/// those past lens_q; without their log-sum-exp where it says nan. A row matches itself.
std::vector<RowMatch> defined_rows(const PlannedCall& call);

/// Both runs' elements, by bits or by the two bounds. An element whose bound is infinite is not
/// compared and not counted.
Judgement compare_runs(const Run& first, const Run& second, const Relation& relation);

/// Numbers a kernel of the declared numerics may leave: [rd(value-bound-error),
/// rd(value+bound+error)]; rounding is monotone.
struct Admitted {
    double low = 0, high = 0;
    bool bounded = false;  ///< false: the reference says nothing (infinite bound, NaN)
};
Admitted admitted(const bound::ExpectedElement& expected, Precision format);

/// How much `second` certainly exceeds `first` (negative: falls below it); 0 where they may be
/// equal. Decided by the references alone, never by what was observed.
double certain_change(const Admitted& first, const Admitted& second);

/// Whether the observed change is at least the certain one, in its direction.
bool shows(double observed_change, double certain);

/// Element `flat_first` of one output against `flat_second` of another, whose references are
/// apart for certain.
struct Contrast {
    std::int64_t flat_first = 0, flat_second = 0;
    double expected = 0;  ///< change
    double observed = 0;
    double certain = 0;  ///< the least change, signed
    bool shown() const { return shows(observed, certain); }
    /// No change at all but for rounding: less than is due, and no more than the bounds and
    /// roundings of two runs of one truth can make. What changes by a wrong amount is another
    /// law's.
    bool absent() const;
    /// No change in the direction that is due.
    bool reversed() const;
};
/// None where the references do not separate the two elements.
std::optional<Contrast> contrast(const Run& first, std::int64_t flat_first, const Run& second,
                                 std::int64_t flat_second);

/// The violation of a contrast that is absent or reversed: expected and observed are changes.
Violation missing_change(const Run& first, const Contrast& contrast, std::string sentence);

/// What stands in a verdict when every comparison was void.
Judgement nothing_compared(std::int64_t elements, double worst_ratio, std::string_view reason);

}  // namespace attest::law
