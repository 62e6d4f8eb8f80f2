#include "properties/law/paired_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "properties/law/interval.hpp"
#include "reference/bound/next.hpp"

namespace attest::law {

namespace {

/// One element of each run.
struct Elements {
    Role role = Role::o;
    std::int64_t first = 0, second = 0;
    double sign = 1;
};

/// The ratio of two observations of one truth: at most 1 where they can both be right; none where
/// the bounds say nothing.
std::optional<double> ratio_within_bounds(const Run& a, const Run& b, const Elements& e) {
    const bool output = e.role == Role::o;
    const bound::ExpectedElement& expected_a =
        output ? a.expected_output(e.first) : a.expected_lse(e.first);
    const bound::ExpectedElement& expected_b =
        output ? b.expected_output(e.second) : b.expected_lse(e.second);
    const double observed_a = a.outputs()[e.role].get(e.first);
    const double observed_b = e.sign * b.outputs()[e.role].get(e.second);
    if (!std::isfinite(expected_a.value) || !std::isfinite(expected_b.value)) {
        // A truth that is infinite or NaN is met by kind, by both.
        const bool same = std::isnan(expected_a.value)
                              ? std::isnan(observed_a) && std::isnan(observed_b)
                              : observed_a == observed_b;
        return same ? 0 : infinite;
    }
    if (!std::isfinite(expected_a.bound) || !std::isfinite(expected_b.bound)) return std::nullopt;
    const Precision format_a = output ? a.output_format() : a.lse_format();
    const Precision format_b = output ? b.output_format() : b.lse_format();
    const Interval truth_a = truth_of(observed_a, expected_a.bound, format_a);
    const Interval truth_b = truth_of(observed_b, expected_b.bound, format_b);
    const double ratio = separation(truth_a, truth_b);
    // separation divides rounded numbers; meet compares the outward rounded ends and decides.
    return meet(truth_a, truth_b) ? std::min(ratio, 1.0) : std::max(ratio, bound::next_up(1));
}

Violation difference(const Run& a, const Run& b, const RowMatch& rows, const Elements& e, bool bits,
                     double ratio, std::string sentence) {
    Violation v;
    v.problem = std::move(sentence);
    v.tensor = e.role;
    const Shape at = index_of(a.outputs()[e.role].shape(), e.first);
    v.index = {at[0], at[1], at[2]};
    v.element_name = e.role == Role::o ? "output of " : "log-sum-exp of ";
    v.element_name += name_of(a.problem(), rows.first);
    if (e.role == Role::o) v.index.push_back(at[3]);
    v.expected = a.outputs()[e.role].get(e.first);
    v.observed = e.sign * b.outputs()[e.role].get(e.second);
    v.bound_kind = bits ? BoundKind::bits : BoundKind::derived;
    v.ratio = bits ? infinite : ratio;
    if (bits) return v;
    const bool output = e.role == Role::o;
    const bound::ExpectedElement& ref_a =
        output ? a.expected_output(e.first) : a.expected_lse(e.first);
    const bound::ExpectedElement& ref_b =
        output ? b.expected_output(e.second) : b.expected_lse(e.second);
    const Precision format = output ? a.output_format() : a.lse_format();
    // The two runs contradict each other; the one farther from its reference is shown as the odd
    // one.
    if (bound::error_ratio(e.sign * v.observed, ref_b, format) <
        bound::error_ratio(v.expected, ref_a, format))
        std::swap(v.expected, v.observed);
    const auto rounding = [&](double x) {
        return std::isfinite(x) ? preimage(x, format).radius() : 0;
    };
    v.bound = ref_a.bound + ref_b.bound + rounding(v.expected) + rounding(v.observed);
    return v;
}

}  // namespace

std::vector<RowMatch> defined_rows(const PlannedCall& call) {
    const Visibility visibility = call.visibility();
    const EmptyRow policy = call.given().dialect().empty_row;
    std::vector<RowMatch> rows;
    for (const Row& row : all_rows(call.problem())) {
        // With a sink there is always one term in the denominator: nothing is undefined.
        const bool empty =
            policy != EmptyRow::zeros && !call.problem().sink && visibility.empty(row);
        // A mean of all keys changes with those that nobody sees.
        if (empty && policy != EmptyRow::nan) continue;
        if (policy == EmptyRow::refuse && !visibility.is_query(row)) continue;
        rows.push_back({row, row, !empty});
    }
    return rows;
}

Judgement compare_runs(const Run& first, const Run& second, const Relation& relation) {
    const bool lse = first.has_lse() && second.has_lse();
    const bool bits = std::holds_alternative<SameBits>(relation.promise);
    const SameTruth* truth = std::get_if<SameTruth>(&relation.promise);
    const Tensor &a = first.output(), &b = second.output();
    const std::int64_t channels = a.shape()[3];
    std::int64_t compared = 0;
    double worst = 0;
    for (const RowMatch& rows : relation.rows) {
        const auto [ab, ah, ai] = rows.first;
        const auto [bb, bh, bi] = rows.second;
        for (std::int64_t c = 0; c < channels + (lse && rows.lse ? 1 : 0); ++c) {
            Elements e;
            if (c < channels) {
                const bool moved = truth != nullptr && truth->channel;
                const SecondChannel to = moved ? truth->channel(c) : SecondChannel{c};
                e.first = a.flat(ab, ah, ai, c);
                e.second = b.flat(bb, bh, bi, to.channel);
                e.sign = to.negated ? -1 : 1;
            } else {
                e = {Role::lse, first.lse().flat(ab, ah, ai, 0), second.lse().flat(bb, bh, bi, 0)};
            }
            double ratio = 0;
            if (bits) {
                const bool same = same_element(first.outputs()[e.role], e.first,
                                               second.outputs()[e.role], e.second);
                ratio = same ? 0 : infinite;
            } else {
                const std::optional<double> within = ratio_within_bounds(first, second, e);
                if (!within) continue;
                ratio = *within;
            }
            ++compared;
            if (!(ratio <= 1))
                return violated(
                    difference(first, second, rows, e, bits, ratio,
                               relation.sentence
                                   ? relation.sentence(rows)
                                   : name_of(first.problem(), rows.first) + " gets another answer"),
                    compared);
            worst = std::max(worst, ratio);
        }
    }
    return holds(compared, worst);
}

Admitted admitted(const bound::ExpectedElement& expected, Precision format) {
    if (!std::isfinite(expected.value) || !std::isfinite(expected.bound) ||
        !std::isfinite(expected.error))
        return {};
    const double radius = expected.bound + expected.error;
    if (radius == 0) {
        const double exact = round_to(expected.value, format);
        return {exact, exact, true};
    }
    const Interval reals = Interval::around(expected.value, bound::next_up(radius));
    return {round_to(reals.lo, format), round_to(reals.hi, format), true};
}

double certain_change(const Admitted& first, const Admitted& second) {
    if (!first.bounded || !second.bounded) return 0;
    if (second.low > first.high) return second.low - first.high;
    if (second.high < first.low) return second.high - first.low;
    return 0;
}

// Observed changes are differences of members of the two intervals, so at least the difference of
// their nearest ends, and the rounding of both differences to double is monotone.
bool shows(double observed_change, double certain) {
    return certain > 0 ? observed_change >= certain : observed_change <= certain;
}

// Written so that NaN, which shows no change, counts as none. |expected| - |certain| holds the
// bounds, the reference's errors and the roundings of both runs.
bool Contrast::absent() const {
    const double noise = std::abs(expected) - std::abs(certain);
    return !shown() && !(std::abs(observed) > noise);
}

bool Contrast::reversed() const {
    return !(certain > 0 ? observed > 0 : observed < 0);
}

std::optional<Contrast> contrast(const Run& first, std::int64_t flat_first, const Run& second,
                                 std::int64_t flat_second) {
    const bound::ExpectedElement &a = first.expected_output(flat_first),
                                 &b = second.expected_output(flat_second);
    const double certain =
        certain_change(admitted(a, first.output_format()), admitted(b, second.output_format()));
    // An end that rounds to infinity leaves a change of any size possible.
    if (certain == 0 || !std::isfinite(certain)) return std::nullopt;
    return Contrast{flat_first, flat_second, b.value - a.value,
                    second.output().get(flat_second) - first.output().get(flat_first), certain};
}

Violation missing_change(const Run& first, const Contrast& contrast, std::string sentence) {
    Violation v;
    const Shape at = index_of(first.output().shape(), contrast.flat_first);
    v.index.assign(at.begin(), at.end());
    const std::string row = name_of(first.problem(), {at[0], at[1], at[2]});
    v.element_name = "change of the output of " + row;
    v.problem = std::isnan(contrast.observed)
                    ? "the change of the output of " + row + " is NaN, though it sees none"
                    : std::move(sentence);
    v.expected = contrast.expected;
    v.observed = contrast.observed;
    v.bound = std::abs(contrast.expected) - std::abs(contrast.certain);
    v.ratio = v.bound > 0 ? std::abs(contrast.observed - contrast.expected) / v.bound : infinite;
    return v;
}

Judgement nothing_compared(std::int64_t elements, double worst_ratio, std::string_view reason) {
    return elements > 0 ? holds(elements, worst_ratio) : nothing_compared(std::string(reason));
}

}  // namespace attest::law
