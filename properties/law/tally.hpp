#pragma once
// What a law has compared so far: how many elements, how near the worst came to its bound, and the
// first that was violated. A law that compared nothing never holds.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "properties/law/compare.hpp"
#include "properties/law/interval.hpp"
#include "properties/law/verdict.hpp"
#include "reference/bound/expected.hpp"
#include "reference/problem/problem.hpp"

namespace attest::law {

/// One logical element of one tensor.
struct ElementPlace {
    Role role = Role::o;
    std::vector<std::int64_t> index;
};
inline ElementPlace output_at(const Row& row, std::int64_t channel) {
    return {Role::o, {row.batch, row.head, row.query, channel}};
}
inline ElementPlace lse_at(const Row& row) {
    return {Role::lse, {row.batch, row.head, row.query}};
}

constexpr bool is_gradient(Role role) noexcept {
    return std::ranges::find(gradient_roles, role) != std::end(gradient_roles);
}
/// A sum over sequences: what it adds up is nobody's own.
constexpr bool is_summed(Role role) noexcept {
    return role == Role::d_mask || role == Role::d_sinks || role == Role::d_slopes;
}
/// Element `flat` of a gradient of the problem.
ElementPlace gradient_at(const Problem& problem, Role role, std::int64_t flat);

/// "output of query 3, channel 1", with batch and head where there are several.
std::string element_name(const Problem& problem, const ElementPlace& place);

class Tally {
public:
    explicit Tally(const Problem& problem) : problem_(&problem) {}

    /// One observed number against what is known of it. An element whose bound is infinite is not
    /// compared: nothing is claimed of it. False where it is violated; `sentence` is called then.
    template <typename Sentence>
    bool element(double observed, const bound::ExpectedElement& expected, Precision format,
                 const ElementPlace& place, Sentence&& sentence) {
        if (!claimed(expected)) return true;
        if (bound::judge(observed, expected, format) != bound::Agreement::disagrees)
            return agreed(bound::error_ratio(observed, expected, format));
        return disagreed(expected.value, observed, expected.bound + expected.error,
                         bound::error_ratio(observed, expected, format), place,
                         std::forward<Sentence>(sentence)());
    }

    /// Two enclosures of numbers that are equal by the law. An unbounded one is not compared.
    template <typename Sentence>
    bool same(const Interval& expected, const Interval& observed, const ElementPlace& place,
              Sentence&& sentence) {
        if (unbounded(expected) || unbounded(observed)) return true;
        const double ratio = separation(expected, observed);
        if (meet(expected, observed)) return agreed(ratio);
        return disagreed(expected.mid(), observed.mid(), expected.radius() + observed.radius(),
                         ratio, place, std::forward<Sentence>(sentence)());
    }

    /// A number that is at most `limit`, both known within their intervals.
    template <typename Sentence>
    bool at_most(const Interval& observed, const Interval& limit, const ElementPlace& place,
                 Sentence&& sentence) {
        if (unbounded(limit) || unbounded(observed)) return true;
        if (observed.lo <= limit.hi) return agreed(0);
        return disagreed(limit.hi, observed.mid(), observed.radius() + limit.radius(),
                         separation(limit, observed), place, std::forward<Sentence>(sentence)());
    }

    /// A fact that no rounding excuses: `observed` is as it must be, or is not.
    template <typename Sentence>
    bool fact(bool holds, double expected, double observed, const ElementPlace& place,
              Sentence&& sentence) {
        if (holds) return agreed(0);
        return disagreed(expected, observed, 0, 0, place, std::forward<Sentence>(sentence)(),
                         BoundKind::exact);
    }

    std::int64_t elements() const noexcept { return elements_; }
    double worst_ratio() const noexcept { return worst_; }
    bool violated() const noexcept { return violation_.has_value(); }

    /// Violated, holds, or `nothing` where nothing was compared.
    Judgement judgement(const std::string& nothing) const;

private:
    static bool claimed(const bound::ExpectedElement& expected) noexcept;
    static bool unbounded(const Interval& interval) noexcept;
    bool agreed(double ratio) noexcept;
    bool disagreed(double expected, double observed, double bound, double ratio,
                   const ElementPlace& place, std::string sentence,
                   BoundKind kind = BoundKind::derived);

    const Problem* problem_;
    std::int64_t elements_ = 0;
    double worst_ = 0;
    std::optional<Violation> violation_;
};

}  // namespace attest::law
