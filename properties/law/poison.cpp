#include "properties/law/poison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "properties/law/hidden.hpp"

namespace attest::law {

namespace {

constexpr std::array ordinary_fillings = {Filling::fresh, Filling::huge};

/// Slots of a cache past a sequence's keys, page tails and pages nobody names hold NaN in every
/// case: an output that is no number although the reference has one has read them.
Judgement finite_beside_poison(const Run& base) {
    std::int64_t compared = 0;
    for (const RowMatch& match : defined_rows(base))
        for (std::int64_t c = 0; c < value_dim(base.problem()); ++c) {
            const Row& row = match.first;
            const std::int64_t at = base.output().flat(row.batch, row.head, row.query, c);
            const bound::ExpectedElement& expected = base.expected_output(at);
            const double observed = base.output().get(at);
            // Where the bound leaves room for overflow, an infinity is no sign of poison.
            const bool in_range = admitted(expected, base.output_format()).bounded;
            if (!in_range) continue;
            ++compared;
            if (!std::isnan(observed)) continue;
            Violation v;
            v.problem = name_of(base.problem(), row) +
                        " is not a number: it reads cache slots that hold no key";
            v.index = {row.batch, row.head, row.query, c};
            v.element_name = "output of " + name_of(base.problem(), row);
            v.expected = expected.value;
            v.observed = observed;
            v.bound = expected.bound + expected.error;
            v.ratio = observed;
            return violated(std::move(v), compared);
        }
    return nothing_compared(compared, 0, "no row of this case sees a key");
}

}  // namespace

Judgement padding_changes_nothing(const Trial& trial) {
    const Run base(trial);
    const Judgement keys = non_interference(base, Hiding::length, ordinary_fillings);
    if (keys.violated()) return keys;
    const Judgement queries = padded_queries_change_nothing(base, Filling::huge);
    if (queries.violated()) return queries;
    return nothing_compared(keys.elements + queries.elements,
                            std::max(keys.worst_ratio, queries.worst_ratio),
                            "no sequence is shorter than its axis");
}

Judgement poison_changes_nothing(const Trial& trial) {
    constexpr std::array every_poison = {Filling::nonfinite_keys, Filling::nonfinite_values,
                                         Filling::huge, Filling::largest};
    constexpr std::array finite_poison = {Filling::huge};
    // A kernel that leaves non-finite numbers unspecified may multiply a weight of zero by them.
    const bool propagates = trial.dialect().nonfinite == Nonfinite::propagate;
    const Run base(trial);
    Judgement sum = non_interference(base, std::nullopt,
                                     propagates ? std::span<const Filling>(every_poison)
                                                : std::span<const Filling>(finite_poison));
    if (sum.violated()) return sum;
    const Judgement queries =
        padded_queries_change_nothing(base, propagates ? Filling::nonfinite_keys : Filling::huge);
    if (queries.violated()) return queries;
    std::int64_t elements = sum.elements + queries.elements;
    if (base.problem().cache.present) {
        const Judgement cache = finite_beside_poison(base);
        if (cache.violated()) return cache;
        elements += cache.elements;
    }
    return nothing_compared(elements, sum.worst_ratio, "nothing is hidden in this case");
}

}  // namespace attest::law
