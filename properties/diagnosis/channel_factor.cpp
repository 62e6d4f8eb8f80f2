// Outputs whose channels from some number on are a little too large or too small: another path for
// what is beyond one vector's width.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

/// The channel of an element of the output, flat.
std::int64_t channel_of(const Problem& problem, std::size_t n) {
    return static_cast<std::int64_t>(n) % value_dim(problem);
}

Deviation channels_times(std::int64_t from, double factor) {
    return {
        .id = fmt::format("channels_from_{}_times", from),
        .says =
            fmt::format("outputs {:.6g} times as large in their channels from {} on", factor, from),
        .formula = [from, factor](const Specification& s,
                                  const bound::Expected& truth) -> std::optional<bound::Expected> {
            if (value_dim(s.problem) <= from) return std::nullopt;
            bound::Expected out = truth;
            for (std::size_t n = 0; n < out.output.size(); ++n) {
                if (channel_of(s.problem, n) < from) continue;
                bound::ExpectedElement& o = out.output[n];
                o.value *= factor;
                o.error *= std::abs(factor);
                o.bound *= std::max(1.0, std::abs(factor));
            }
            return out;
        }};
}

}  // namespace

// From the element that stands out most of its bound: the factor is known to one part in so much.
// The first channel that is ever wrong begins them; in formats whose bound hides the factor it does
// not, and is refuted.
std::vector<Deviation> channel_factors(const AllEvidence& evidence) {
    std::int64_t from = std::numeric_limits<std::int64_t>::max();
    double most = 0, factor = 0;
    for (const Evidence& e : evidence.wrong)
        for (std::size_t n = 0; e.output_wrong && n < e.truth.output.size(); ++n) {
            const bound::ExpectedElement& o = e.truth.output[n];
            const double seen = e.observed[Role::o].get(static_cast<std::int64_t>(n));
            const double ratio = bound::error_ratio(seen, o, e.asked.problem.format_o);
            if (!(ratio > 1)) continue;
            from = std::min(from, channel_of(e.asked.problem, n));
            const double of_bound = std::abs(o.value) / (o.bound + o.error);
            if (!std::isfinite(seen) || o.value == 0 || !(of_bound > most)) continue;
            most = of_bound;
            factor = seen / o.value;
        }
    if (from < 1 || !(factor > 0)) return {};
    const double round = std::round(factor * 1000) / 1000;
    return {channels_times(from,
                           std::abs(factor / round - 1) * most < 1 && round != 1 ? round : factor)};
}

}  // namespace attest::diagnosis
