#include "properties/diagnosis/backward_coarser_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "properties/diagnosis/diagnose_backward.hpp"
#include "properties/diagnosis/rounded_step.hpp"
#include "properties/law/gradient_run.hpp"

namespace attest::diagnosis {

namespace {

constexpr const char* coarse_id = "backward_step_";

/// The format that sums are held in, of one problem.
using SumFormat = std::function<std::optional<Precision>(const Problem&)>;

struct CoarseStep {
    BackwardDeviation deviation;
    SumFormat sums{};  ///< empty: it is of weights
};

/// Of one kind, the finer first.
using Kind = std::vector<CoarseStep>;

/// An exponential that is off by 2^-bits of itself.
Kind coarse_exponentials() {
    Kind kind;
    for (const int bits : {18, 15, 12, 9, 7})
        kind.push_back({exchanged_step(
            fmt::format("{}exp_{}", coarse_id, bits),
            fmt::format("errors of the size of weights that are off by 2^-{} of themselves, as of "
                        "a coarse exponential",
                        bits),
            [bits](const BackwardCall&, ModelSteps& s) {
                s.probability = [bits](const ModelPair& pair) {
                    return rounded(plain_probability(pair), std::ldexp(1.0, -bits), 0);
                };
            })});
    return kind;
}

Kind narrow_sums() {
    Kind kind;
    const auto add = [&kind](const std::string& id, const std::string& words, SumFormat format_of) {
        const auto change = [format_of](const BackwardCall& call, ModelSteps& s) {
            const std::optional<Precision> format = format_of(call.problem());
            if (format) s.sum_unit = std::ldexp(1.0, -traits(*format).significand_bits);
        };
        kind.push_back(
            {exchanged_step(fmt::format("{}sums_{}", coarse_id, id),
                            "errors of the size of gradients summed in " + words, change),
             std::move(format_of)});
    };
    add("f32", "f32", [](const Problem&) { return std::optional(Precision::f32); });
    for (const RoundsTo narrow :
         {RoundsTo::inputs, RoundsTo::queries, RoundsTo::f16, RoundsTo::bf16})
        add(id_of(narrow), words_of(narrow),
            [narrow](const Problem& p) { return format_in(narrow, p); });
    return kind;
}

/// Of one call that is right, numbers far nearer to the truth than sums in a format come, which is
/// none of that format's own, with the scale or without.
std::int64_t nearer_than_sums(const BackwardEvidence& e, Role role, Precision sums,
                              const std::vector<bound::ExpectedElement>& own) {
    constexpr double far = 64;
    if (traits(law::gradient_format(e.asked.problem, role)).significand_bits <=
        traits(sums).significand_bits)
        return 0;
    const double scale = effective_scale(e.asked.problem);
    std::int64_t nearer = 0;
    for (std::size_t n = 0; n < own.size(); ++n) {
        const bound::ExpectedElement& truth = e.truth[role][n];
        const auto is_of_format = [&](double x) {
            return std::abs(round_to(x, sums) - x) <= truth.bound;
        };
        nearer += truth.bound < infinite && own[n].bound > far * truth.bound &&
                  !is_of_format(truth.value) && !is_of_format(truth.value / scale);
    }
    return nearer;
}

/// Right calls that sums in this format would not have got right: a loss is as small as any
/// rounding where weights are.
bool refuted_by_right(const CoarseStep& step, const std::vector<BackwardEvidence>& right,
                      const std::vector<Role>& roles) {
    std::int64_t nearer = 0;
    for (const BackwardEvidence& e : right) {
        const auto format = step.sums ? step.sums(e.asked.problem) : std::nullopt;
        const auto own = format ? predict(step.deviation, e) : std::nullopt;
        if (!own) continue;
        for (const Role role : roles)
            if (e.observed.has(role)) nearer += nearer_than_sums(e, role, *format, (*own)[role]);
    }
    return nearer >= telling_beside_right_min;
}

/// As in coarser_step.cpp: a bound far above the errors explains anything.
constexpr double telling_part = 1.0 / 64;

struct Allowed {
    bool all = true;
    std::int64_t of = 0, telling = 0;
};

void count_allowed(Allowed& found, const BackwardEvidence& e, Role role,
                   const std::vector<bound::ExpectedElement>& own) {
    const Precision format = law::gradient_format(e.asked.problem, role);
    for (std::size_t n = 0; found.all && n < own.size(); ++n) {
        const double seen = e.observed[role].get(static_cast<std::int64_t>(n));
        if (e.truth[role][n].bound == infinite) continue;
        found.all = !outside(seen, own[n], format);
        ++found.of;
        found.telling += std::isfinite(own[n].bound) && outside(seen, e.truth[role][n], format) &&
                         std::abs(seen - own[n].value) > telling_part * own[n].bound;
    }
}

Allowed allowed(const CoarseStep& step, const std::vector<BackwardEvidence>& wrong,
                const std::vector<Role>& roles) {
    Allowed found;
    for (const BackwardEvidence& e : wrong) {
        const auto own = predict(step.deviation, e);
        if (!own) continue;
        for (const Role role : roles)
            if (found.all && e.observed.has(role)) count_allowed(found, e, role, (*own)[role]);
        if (!found.all) break;
    }
    return found;
}

// dV is a sum of weights: where it is right to the bound, so are they.
bool weights_are_right(const std::vector<BackwardEvidence>& wrong, const std::vector<Role>& roles) {
    return std::ranges::find(roles, Role::d_v) == roles.end() &&
           std::ranges::any_of(wrong,
                               [](const BackwardEvidence& e) { return e.observed.has(Role::d_v); });
}

}  // namespace

std::vector<Explanation> backward_coarser_steps(const AllBackwardEvidence& evidence,
                                                const std::vector<Role>& roles) {
    std::vector<Explanation> all;
    std::vector<Kind> kinds{narrow_sums()};
    if (!weights_are_right(evidence.wrong, roles))
        kinds.insert(kinds.begin(), coarse_exponentials());
    for (const Kind& kind : kinds)
        for (const CoarseStep& step : kind) {
            const Allowed found = allowed(step, evidence.wrong, roles);
            if (!found.all) continue;
            if (found.telling < telling_elements_min) break;  // a coarser one tells less
            if (refuted_by_right(step, evidence.right, roles)) continue;
            // The coarser ones after it: other counterexamples of the same defect may need them.
            Explanation e{step.deviation.id, step.deviation.says, {}, {}, found.of, found.of};
            e.general = true;
            all.push_back(std::move(e));
        }
    return all;
}

std::vector<std::string> fitting_backward_steps(const AllBackwardEvidence& evidence,
                                                const std::vector<Role>& roles) {
    std::vector<std::string> ids;
    for (const CoarseStep& step : narrow_sums())
        if (allowed(step, evidence.wrong, roles).all &&
            !refuted_by_right(step, evidence.right, roles))
            ids.push_back(step.deviation.id);
    return ids;
}

bool is_backward_coarser_step(const std::string& id) {
    return id.starts_with(coarse_id);
}

}  // namespace attest::diagnosis
