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

}  // namespace

double KeptCount::surprise() const noexcept {
    if (of == 0) return 0;
    const double share = static_cast<double>(hits) / static_cast<double>(of);
    return static_cast<double>(of) *
           (entropy_term(share, chance) + entropy_term(1 - share, 1 - chance));
}

Judgement judge_counts(const std::vector<KeptCount>& counts) {
    const double threshold = std::log(2 * static_cast<double>(counts.size()) / kept_rate);
    std::int64_t cells = 0;
    const KeptCount* worst = nullptr;
    for (const KeptCount& count : counts) {
        cells += count.of;
        if (worst == nullptr || !(count.surprise() <= worst->surprise())) worst = &count;
    }
    if (cells == 0) return nothing_compared("no weight is visible");
    const double value = worst->surprise();
    Judgement judgement = holds(cells);
    if (!(value <= threshold)) {
        const double share = static_cast<double>(worst->hits) / static_cast<double>(worst->of);
        Violation v;
        v.problem = fmt::format("{:.4g} % of {} {}; by chance it would be {:.4g} %", 100 * share,
                                worst->of, worst->what, 100 * worst->chance);
        v.index = {0, 0, 0, 0};
        v.element_name = "share of " + worst->what;
        v.expected = worst->chance;
        v.observed = share;
        // Pinsker: |share - chance| <= sqrt(KL / 2) wherever the count is no surprise.
        v.bound = std::sqrt(threshold / (2 * static_cast<double>(worst->of)));
        v.bound_kind = BoundKind::statistic;
        v.ratio = value / threshold;
        judgement = violated(std::move(v), cells);
    }
    judgement.statistic =
        Statistic{"surprise of " + worst->what, value, threshold, kept_rate, cells};
    return judgement;
}

}  // namespace attest::law
