// A log-sum-exp multiplied by what it must not be, or of another maximum.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

// As far off as the right one, and by a rounding of the product.
Deviation lse_times(std::string id, std::string says, double (*factor)(double scale)) {
    return {.id = std::move(id),
            .says = std::move(says),
            .formula = [factor](const Specification& s,
                                const bound::Expected& truth) -> std::optional<bound::Expected> {
                const double by = factor(effective_scale(s.problem));
                if (truth.lse.empty() || by == 1 || !std::isfinite(by)) return std::nullopt;
                bound::Expected out;
                out.lse = truth.lse;
                for (bound::ExpectedElement& e : out.lse) {
                    if (!std::isfinite(e.value)) continue;
                    e.value *= by;
                    e.error *= std::abs(by);
                    e.bound = e.bound * std::abs(by) +
                              traits(Precision::f32).unit_roundoff * std::abs(e.value);
                }
                return out;
            }};
}

// L = by m + log l. As far off as the right one, by as much more as the maximum is larger.
std::optional<bound::Expected> with_maximum_times(const Specification& s,
                                                  const bound::Expected& truth, double by) {
    if (truth.lse.empty() || by == 1 || !(by > 0) || !std::isfinite(by)) return std::nullopt;
    const double unit = s.dialect.lse_base == LseBase::two ? std::numbers::log2e : 1.0;
    const auto rows = rows_of(s);
    bound::Expected out;
    out.lse = truth.lse;
    for (std::size_t n = 0; n < out.lse.size(); ++n) {
        bound::ExpectedElement& e = out.lse[n];
        const double most = (*rows)[n].max;
        if (!std::isfinite(e.value) || !std::isfinite(most)) continue;
        e.value += unit * (by * most - most);
        e.error *= std::max(1.0, by);
        e.bound =
            e.bound * std::max(1.0, by) + traits(Precision::f32).unit_roundoff * std::abs(e.value);
    }
    return out;
}

Deviation maximum_times(std::string id, std::string says, double (*by)(const Specification&)) {
    return {.id = std::move(id),
            .says = std::move(says),
            .formula = [by](const Specification& s, const bound::Expected& truth) {
                return with_maximum_times(s, truth, by(s));
            }};
}

// L = max(m, least) + log l, l being the sum of exp(S - m): as far off as the right one.
Deviation maximum_held(double least) {
    return {.id = fmt::format("lse_maximum_from_{:g}", least),
            .says = fmt::format("a log-sum-exp whose maximum is {:g} where it is less", least),
            .formula = [least](const Specification& s,
                               const bound::Expected& truth) -> std::optional<bound::Expected> {
                if (truth.lse.empty()) return std::nullopt;
                const double unit = s.dialect.lse_base == LseBase::two ? std::numbers::log2e : 1.0;
                const auto kept = rows_of(s);
                const std::vector<oracle::RowDetail>& rows = *kept;
                bound::Expected out;
                out.lse = truth.lse;
                bool differs = false;
                for (std::size_t n = 0; n < out.lse.size(); ++n) {
                    if (!std::isfinite(out.lse[n].value) || !(rows[n].max < least)) continue;
                    differs = true;
                    out.lse[n].value += unit * (least - rows[n].max);
                }
                return differs ? std::optional(std::move(out)) : std::nullopt;
            }};
}

}  // namespace

std::vector<Deviation> lse_maximum_held() {
    std::vector<Deviation> list;
    for (const double least : {-1e4, -1e5, -1e3, -100.0, -65504.0, -5e4, -3e4})
        list.push_back(maximum_held(least));
    return list;
}

std::vector<Deviation> lse_misscaled() {
    return {
        lse_times("lse_scaled", "a log-sum-exp multiplied by the scale",
                  [](double scale) { return scale; }),
        lse_times("lse_divided_by_scale", "a log-sum-exp divided by the scale",
                  [](double scale) { return 1 / scale; }),
        maximum_times("lse_maximum_unscaled",
                      "a log-sum-exp whose maximum is that of the scores before they are scaled",
                      [](const Specification& s) { return 1 / effective_scale(s.problem); }),
        maximum_times("lse_maximum_other_base", "a log-sum-exp whose maximum is of the other base",
                      [](const Specification& s) {
                          return s.dialect.lse_base == LseBase::two ? std::numbers::ln2
                                                                    : std::numbers::log2e;
                      })};
}

}  // namespace attest::diagnosis
