#include "properties/diagnosis/own_temperature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "properties/diagnosis/respecify.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

bound::Expected at_scale(const Evidence& e, double factor) {
    const Specification other = with_scale(e.asked, effective_scale(e.asked.problem) * factor);
    return oracle::attend(other.problem, other.dialect, other.numerics, other.inputs);
}

/// The numbers that were observed, each beside what another scale gives.
template <typename Visit>
void each_number(const Evidence& e, const bound::Expected& expected, const Visit& visit) {
    const auto all = [&](Role role, const std::vector<bound::ExpectedElement>& list,
                         Precision format) {
        if (!e.observed.has(role)) return;
        for (std::size_t n = 0; n < list.size(); ++n)
            visit(e.observed[role].get(static_cast<std::int64_t>(n)), list[n], format);
    };
    all(Role::o, expected.output, e.asked.problem.format_o);
    all(Role::lse, expected.lse, lse_format(e.asked.problem));
}

/// How many there are, and how many of them lie outside their bounds.
std::pair<std::int64_t, std::int64_t> count(const Evidence& e, const bound::Expected& expected) {
    std::int64_t all = 0, outside = 0;
    each_number(e, expected, [&](double seen, const bound::ExpectedElement& x, Precision format) {
        ++all;
        outside += bound::judge(seen, x, format) == bound::Agreement::disagrees;
    });
    return {all, outside};
}

// Newton's method on the sum of squares: what is off, by how the numbers follow the scale. A few
// steps bring a factor within a tenth of one to a part in 2^20 of itself.
double nearest_factor(const Evidence& e) {
    constexpr int steps = 5;
    constexpr double step = 0x1p-12, farthest = 4;
    double factor = 1;
    for (int n = 0; n < steps; ++n) {
        std::vector<double> further;
        each_number(e, at_scale(e, factor * (1 + step)),
                    [&](double, const bound::ExpectedElement& x, Precision) {
                        further.push_back(x.value);
                    });
        double along = 0, square = 0;
        std::size_t at = 0;
        each_number(e, at_scale(e, factor),
                    [&](double seen, const bound::ExpectedElement& x, Precision) {
                        const double slope = (further[at++] - x.value) / step;
                        const double off = seen - x.value;
                        if (!std::isfinite(slope) || !std::isfinite(off)) return;
                        along += off * slope;
                        square += slope * slope;
                    });
        if (!(square > 0)) return 1;
        factor = std::clamp(factor * (1 + along / square), 1 / farthest, farthest);
    }
    return factor;
}

}  // namespace

std::optional<Explanation> temperatures_of_calls(const std::vector<Evidence>& wrong) {
    constexpr std::int64_t numbers_a_call = 4;
    std::int64_t outside = 0;
    for (const Evidence& e : wrong) outside += count(e, e.truth).second;
    if (wrong.empty() || outside < numbers_a_call * static_cast<std::int64_t>(wrong.size()))
        return std::nullopt;
    Explanation found;
    double least = infinite, most = 0;
    for (const Evidence& e : wrong) {
        const double factor = nearest_factor(e);
        const auto [all, off] = count(e, at_scale(e, factor));
        if (off > 0) return std::nullopt;
        found.of += all;
        least = std::min(least, factor);
        most = std::max(most, factor);
    }
    found.agree = found.of;
    found.id = "temperature_of_call";
    found.says = fmt::format("in these calls scores {:.4g} to {:.4g} times as large as asked for",
                             least, most);
    return found;
}

}  // namespace attest::diagnosis
