// Deviations of a forward that drops weights, each computed under the mask that was read off it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "properties/diagnosis/dropped_forward.hpp"
#include "properties/diagnosis/evidence.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

using ElementList = std::vector<bound::ExpectedElement>;

/// The output times `ratio`, which is exact: errors grow with it, and what underflows does not
/// shrink.
bound::Expected scaled(bound::Expected truth, double ratio) {
    for (bound::ExpectedElement& e : truth.output) {
        e.value *= ratio;
        e.error *= std::max(ratio, 1.0);
        e.bound *= std::max(ratio, 1.0);
    }
    return truth;
}

/// `factor` stands where 1/(1-p) is meant.
Deviation other_factor(std::string id, std::string says, double (*factor)(double p)) {
    return {.id = std::move(id),
            .says = std::move(says),
            .formula = [factor](const Specification& s,
                                const bound::Expected& truth) -> std::optional<bound::Expected> {
                const double p = s.problem.dropout.p, ratio = factor(p) * (1 - p);
                if (ratio == 1) return std::nullopt;
                return scaled(truth, ratio);
            }};
}

/// Attention of the kept keys alone: the dropped ones are hidden.
bound::Expected of_kept_keys(const Specification& s) {
    Rules rules = rules_of(s);
    const Tensor& keep = s.inputs[Role::dropout_keep];
    rules.also_hidden = [&keep](const MaskPlace& at) {
        return keep.bits(keep.flat(at.batch, at.head, at.query, at.key)) == 0;
    };
    Specification kept = with_rules(s, rules);
    kept.problem.dropout = {};
    kept.inputs.erase(Role::dropout_keep);
    return oracle::attend(kept.problem, kept.dialect, kept.numerics, kept.inputs);
}

// A kernel that drops weights after the maximum was taken of all has its largest weight dropped as
// well: kept ones so far below it are subnormal, or 0. Half of the exponents are above that.
double reach(const Specification& s) {
    return s.problem.format_q == Precision::f64 ? 350 : 43;
}

/// `own` of the kept keys, each row where there are any, and not far below what was dropped.
ElementList within_reach(const Specification& s, const bound::Expected& truth,
                         const bound::Expected& kept, ElementList own) {
    const double natural = s.dialect.lse_base == LseBase::two ? std::numbers::ln2 : 1;
    if (truth.lse.empty()) return own;
    const std::size_t width = own.size() / truth.lse.size();
    for (std::size_t n = 0; n < own.size(); ++n) {
        const double all = truth.lse[n / width].value, some = kept.lse[n / width].value;
        const bool none = std::isfinite(all) && !std::isfinite(some);
        if (none || natural * (all - some) > reach(s)) own[n] = {0, 0, infinite};
    }
    return own;
}

/// The log-sum-exp, `more` of natural units added, with what two sums of its size lose.
ElementList moved(const Specification& s, ElementList lse, const ElementList& truth, double more) {
    if (s.dialect.lse_base == LseBase::two) more *= std::numbers::log2e;
    const double unit = traits(lse_format(s.problem)).unit_roundoff;
    for (std::size_t n = 0; n < lse.size(); ++n) {
        bound::ExpectedElement& e = lse[n];
        if (!std::isfinite(e.value)) continue;
        const double size = std::abs(e.value) + std::abs(more) +
                            (std::isfinite(truth[n].value) ? std::abs(truth[n].value) : 0);
        e.value += more;
        e.bound += std::max(truth[n].bound, 0.0) + 4 * unit * size;
    }
    return lse;
}

double log_kept(const Specification& s) {
    return std::log1p(-s.problem.dropout.p);
}

/// `output`: what the output of the kept keys is multiplied by; where there is none it is as it
/// was.
Deviation with_kept(std::string id, std::string says, double (*output)(double p),
                    std::optional<double> (*lse_moved)(const Specification&)) {
    return {.id = std::move(id),
            .says = std::move(says),
            .formula = [=](const Specification& s,
                           const bound::Expected& truth) -> std::optional<bound::Expected> {
                const bound::Expected kept = of_kept_keys(s);
                bound::Expected out = truth;
                if (output != nullptr)
                    out.output = within_reach(s, truth, kept,
                                              scaled(kept, output(s.problem.dropout.p)).output);
                if (const auto more = lse_moved(s); more && !truth.lse.empty())
                    out.lse = within_reach(s, truth, kept, moved(s, kept.lse, truth.lse, *more));
                return out;
            }};
}

void add_factors(std::vector<Deviation>& list) {
    list.push_back(other_factor("kept_unscaled", "kept weights without the factor 1/(1-p)",
                                [](double) { return 1.0; }));
    list.push_back(other_factor("kept_times_kept_rate", "kept weights times 1-p, not 1/(1-p)",
                                [](double p) { return 1 - p; }));
    list.push_back(other_factor("kept_over_rate", "kept weights times 1/p, not 1/(1-p)",
                                [](double p) { return 1 / p; }));
    list.push_back(other_factor("kept_times_rate", "kept weights times p, not 1/(1-p)",
                                [](double p) { return p; }));
    list.push_back(other_factor("kept_scaled_twice", "kept weights times 1/(1-p) twice",
                                [](double p) { return 1 / ((1 - p) * (1 - p)); }));
    list.push_back(other_factor("kept_times_one_more", "kept weights times 1+p, not 1/(1-p)",
                                [](double p) { return 1 + p; }));
    list.push_back(other_factor("kept_factor_bf16", "a factor 1/(1-p) rounded to bf16",
                                [](double p) { return round_to(1 / (1 - p), Precision::bf16); }));
    list.push_back(other_factor("kept_factor_f16", "a factor 1/(1-p) rounded to f16",
                                [](double p) { return round_to(1 / (1 - p), Precision::f16); }));
    list.push_back(other_factor("kept_factor_255_down",
                                "kept weights times 1/(1-p) of a rate of which 255(1-p) is whole, "
                                "cut off",
                                [](double p) { return 255 / std::floor(255 * (1 - p)); }));
    list.push_back(other_factor("kept_factor_256_down",
                                "kept weights times 1/(1-p) of a rate of which 256(1-p) is whole, "
                                "cut off",
                                [](double p) { return 256 / std::floor(256 * (1 - p)); }));
    list.push_back(other_factor("kept_factor_256_up",
                                "kept weights times 1/(1-p) of a rate p cut off to 8 bits",
                                [](double p) { return 1 / (1 - std::floor(256 * p) / 256); }));
}

}  // namespace

std::vector<Deviation> dropped_forward_deviations() {
    using Moved = std::optional<double>;
    constexpr auto unmoved = [](const Specification&) -> Moved { return 0.0; };
    constexpr auto none = [](const Specification&) -> Moved { return std::nullopt; };
    std::vector<Deviation> list;
    // First what leaves the output as it is.
    list.push_back(with_kept(
        "lse_of_kept", "a log-sum-exp of the weights that are kept, not of all", nullptr, unmoved));
    list.push_back(with_kept(
        "lse_of_kept_scaled", "a log-sum-exp of the kept weights times 1/(1-p), not of all weights",
        nullptr, [](const Specification& s) -> Moved { return -log_kept(s); }));
    for (const int sign : {1, -1})
        list.push_back({.id = sign > 0 ? "lse_less_dropped" : "lse_more_dropped",
                        .says = sign > 0 ? "a log-sum-exp with log(1-p) added"
                                         : "a log-sum-exp with log(1-p) taken off",
                        .formula = [sign](const Specification& s, const bound::Expected& truth)
                            -> std::optional<bound::Expected> {
                            if (truth.lse.empty()) return std::nullopt;
                            bound::Expected out = truth;
                            out.lse = moved(s, truth.lse, truth.lse, sign * log_kept(s));
                            return out;
                        }});
    add_factors(list);
    constexpr auto one = [](double) { return 1.0; };
    list.push_back(with_kept("dropped_before_softmax",
                             "weights dropped before the softmax: those kept sum to 1", one,
                             unmoved));
    list.push_back(with_kept(
        "dropped_before_softmax_scaled",
        "weights dropped before the softmax, and times 1/(1-p) after it",
        [](double p) { return 1 / (1 - p); }, unmoved));
    list.push_back(with_kept("dropped_and_normalised",
                             "kept weights divided by their own sum, not times 1/(1-p)", one,
                             none));
    list.push_back(with_kept(
        "dropped_and_normalised_scaled", "kept weights divided by their own sum, and times 1/(1-p)",
        [](double p) { return 1 / (1 - p); }, none));
    for (Deviation& d : list) d.takes_dropout = true;
    return list;
}

}  // namespace attest::diagnosis
