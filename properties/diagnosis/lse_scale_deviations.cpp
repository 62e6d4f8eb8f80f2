// A log-sum-exp multiplied by what it must not be.

#include <cmath>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
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

}  // namespace

std::vector<Deviation> lse_misscaled() {
    return {lse_times("lse_scaled", "a log-sum-exp multiplied by the scale",
                      [](double scale) { return scale; }),
            lse_times("lse_divided_by_scale", "a log-sum-exp divided by the scale",
                      [](double scale) { return 1 / scale; })};
}

}  // namespace attest::diagnosis
