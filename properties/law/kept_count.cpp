#include "properties/law/kept_count.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace attest::law {

namespace {

/// x log(x/y), 0 at x = 0.
double entropy_term(double x, double y) noexcept {
    return x == 0 ? 0 : x * std::log(x / y);
}

double surprise_of(double share, const KeptCount& count) noexcept {
    return static_cast<double>(count.of) *
           (entropy_term(share, count.chance) + entropy_term(1 - share, 1 - count.chance));
}

/// How far from the chance a share is no surprise yet, towards `end`, 0 or 1: the surprise grows
/// all the way there.
double unsurprising(const KeptCount& count, double end, double threshold) noexcept {
    double near = count.chance, far = end;
    for (int halving = 0; halving < 60; ++halving) {
        const double middle = (near + far) / 2;
        (surprise_of(middle, count) <= threshold ? near : far) = middle;
    }
    return std::abs(near - count.chance);
}

}  // namespace

double KeptCount::surprise() const noexcept {
    return of == 0 ? 0 : surprise_of(static_cast<double>(hits) / static_cast<double>(of), *this);
}

Judgement judge_counts(const std::vector<KeptCount>& counts) {
    const double threshold = std::log(2 * static_cast<double>(counts.size()) / kept_rate);
    std::int64_t cells = 0;
    const KeptCount *worst = nullptr, *wrong = nullptr;
    for (const KeptCount& count : counts) {
        cells += count.of;
        const double surprise = count.surprise();
        if (wrong == nullptr && !(surprise <= threshold)) wrong = &count;
        if (worst == nullptr || !(surprise <= worst->surprise())) worst = &count;
    }
    if (cells == 0) return nothing_compared("no weight is visible");
    Judgement judgement = holds(cells);
    if (wrong != nullptr) {
        worst = wrong;
        const double share = static_cast<double>(wrong->hits) / static_cast<double>(wrong->of);
        Violation v;
        v.problem = fmt::format("{:.4g} % of {} {}; by chance it would be {:.4g} %", 100 * share,
                                wrong->of, wrong->what, 100 * wrong->chance);
        v.index = {0, 0, 0, 0};
        v.element_name = "share of " + wrong->what;
        v.expected = wrong->chance;
        v.observed = share;
        v.bound = unsurprising(*wrong, share < wrong->chance ? 0 : 1, threshold);
        v.bound_kind = BoundKind::statistic;
        v.ratio = wrong->surprise() / threshold;
        judgement = violated(std::move(v), cells);
    }
    const double value = worst->surprise();
    judgement.statistic =
        Statistic{"surprise of " + worst->what, value, threshold, kept_rate, cells};
    return judgement;
}

}  // namespace attest::law
