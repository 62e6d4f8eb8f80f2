#include "properties/diagnosis/diagnose_backward.hpp"

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/agreement.hpp"
#include "properties/diagnosis/backward_coarser_step.hpp"
#include "properties/diagnosis/backward_some_rows.hpp"
#include "properties/diagnosis/backward_strides.hpp"
#include "properties/diagnosis/experiment.hpp"
#include "properties/diagnosis/scope.hpp"
#include "properties/diagnosis/unwritten_gradients.hpp"
#include "properties/law/gradient_run.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"

namespace attest::diagnosis {

namespace {

/// A number that no accumulator of the kernel holds is infinity there, or was NaN on the way. Of a
/// row that forward saw no key of, NaN is what any other mask of backward makes: it tells none.
bound::ExpectedElement element(const BackwardCall& call, Near x, bool nan_tells) {
    if (std::isnan(x.value)) return {nan_tells ? std::nan("") : 0, 0, infinite};
    if (!(most(x) < call.model.max_finite)) return {0, 0, infinite};
    return {x.value, 0, x.error};
}

struct RoleCount {
    std::int64_t agree = 0, of = 0;
    std::int64_t telling = 0;  ///< where all agree
};

RoleCount count_role(const BackwardEvidence& e, Role role,
                     const std::vector<bound::ExpectedElement>& predicted) {
    RoleCount count;
    const Tensor& observed = e.observed[role];
    const std::vector<bound::ExpectedElement>& truth = e.truth[role];
    if (observed.size() != static_cast<std::int64_t>(predicted.size())) return count;
    const Precision format = law::gradient_format(e.asked.problem, role);
    const auto claims = [](const auto& x) {
        return x.bound != infinite || !std::isfinite(x.value);
    };
    for (std::size_t n = 0; n < predicted.size(); ++n) {
        if (!claims(predicted[n]) || !claims(truth[n])) continue;
        ++count.of;
        count.agree += !outside(observed.get(static_cast<std::int64_t>(n)), predicted[n], format);
    }
    if (count.agree < count.of) return count;
    for (std::size_t n = 0; n < predicted.size(); ++n)
        count.telling += claims(predicted[n]) && claims(truth[n]) &&
                         outside(round_to(truth[n].value, format), predicted[n], format);
    return count;
}

/// Over the calls looked at.
struct BackwardScoring {
    const BackwardDeviation* deviation = nullptr;
    std::int64_t agree = 0, of = 0, telling = 0, silent = 0;
    bool elsewhere = true;  ///< it agrees as well where every answer is right

    bool fits() const { return agree == of && of > 0; }
    bool explains(std::int64_t calls) const {
        return fits() && 2 * silent <= calls && telling >= telling_elements_min;
    }
};

/// What of a call's gradients is wrong somewhere must be as predicted, up to the first call that
/// is not.
BackwardScoring score(const BackwardDeviation& d, const std::vector<BackwardEvidence>& calls,
                      const std::vector<Role>& wrong) {
    BackwardScoring total{&d};
    for (const BackwardEvidence& e : calls) {
        const auto predicted = predict(d, e);
        bool told = false;
        RoleCount sum;
        for (const Role role : gradient_roles) {
            if (!predicted || !e.observed.has(role) || (*predicted)[role].empty()) continue;
            const RoleCount count = count_role(e, role, (*predicted)[role]);
            if (std::ranges::find(wrong, role) == wrong.end()) {
                total.elsewhere = total.elsewhere && count.agree == count.of;
                continue;
            }
            told = told || count.of > 0;
            sum.agree += count.agree;
            sum.of += count.of;
            sum.telling += count.telling;
        }
        total.silent += !told;
        total.agree += sum.agree;
        total.of += sum.of;
        total.telling += sum.telling;
        if (sum.agree < sum.of) break;
    }
    return total;
}

std::vector<Role> wrong_roles(const std::vector<BackwardEvidence>& wrong) {
    std::vector<Role> roles;
    for (const Role role : gradient_roles)
        if (std::ranges::any_of(wrong, [role](const BackwardEvidence& e) {
                return std::ranges::find(e.wrong, role) != e.wrong.end();
            }))
            roles.push_back(role);
    return roles;
}

Explanation explanation_of(const BackwardScoring& s, const AllBackwardEvidence& evidence,
                           const std::vector<Role>& roles) {
    Explanation found{s.deviation->id, s.deviation->says, {}, {}, s.agree, s.of};
    found.says += " (seen in " + text_of(roles) + (s.elsewhere ? ")" : " alone)");
    std::vector<Problem> wrong, refuting;
    for (const BackwardEvidence& e : evidence.wrong) wrong.push_back(e.asked.problem);
    for (const BackwardEvidence& e : evidence.right)
        if (const BackwardScoring right = score(*s.deviation, {e}, roles); right.agree < right.of)
            refuting.push_back(e.asked.problem);
    found.refuted = !refuting.empty();
    if (found.refuted) limit(found, scope_of(wrong, refuting));
    found.in_forward = s.deviation->in_forward;
    return found;
}

void plain_beyond(const BackwardCall& own, ModelSteps& steps) {
    const auto visible = [&own](const ModelPair& pair) {
        const ModelRow& row = pair.row;
        return own.score(row.b, row.h, row.i, pair.j).visible;
    };
    steps.dp_kept = steps.value_kept = [visible](const ModelPair& pair) {
        return visible(pair) ? pair.facts.kept : 1;
    };
    steps.ds = [visible](const ModelPair& pair) {
        return plain_ds(pair, visible(pair) ? pair.row.delta : pair.row.facts.delta);
    };
}

}  // namespace

std::span<const BackwardDeviation> backward_deviations() {
    static const std::vector<BackwardDeviation> list = [] {
        std::vector<BackwardDeviation> all;
        for (auto part : {delta_deviations(), product_deviations(), lse_gradient_deviations(),
                          other_row_deviations(), shared_sum_deviations(),
                          gradient_share_deviations(), rounded_tile_deviations(), sum_deviations(),
                          weight_deviations(), narrow_weight_deviations(), padding_row_deviations(),
                          factor_deviations(), dropout_deviations(), turn_deviations(),
                          place_deviations(), causal_tile_deviations(), skipped_block_deviations()})
            all.insert(all.end(), part.begin(), part.end());
        return all;
    }();
    return list;
}

std::optional<bound::ExpectedGradients> predict(const BackwardDeviation& d,
                                                const BackwardEvidence& e) try {
    std::shared_ptr<const BackwardCall> call = e.call;
    const Problem& p = e.asked.problem;
    if (d.plain_beyond && p.dropout.p == 0 && !p.lse_grad) return std::nullopt;
    if (d.respecify) {
        std::optional<Specification> other = d.respecify(e.asked);
        if (!other) return std::nullopt;
        for (const Role role : {Role::q, Role::k, Role::v})
            if (other->inputs[role].shape() != e.asked.inputs[role].shape()) return std::nullopt;
        // A backward that reads other keys than forward is no slip that anybody makes.
        if (!d.reorders &&
            other->inputs[Role::k].to_doubles() != e.asked.inputs[Role::k].to_doubles())
            return std::nullopt;
        bound::Expected forward = e.forward;
        if (d.renewed) {
            forward =
                oracle::attend(other->problem, other->dialect, other->numerics, other->inputs);
            Tensor o(ElementType::f64, other->inputs[Role::o].shape());
            for (std::int64_t n = 0; n < o.size(); ++n)
                o.set(n, forward.output[static_cast<std::size_t>(n)].value);
            other->inputs.put(Role::o, std::move(o));
            other->inputs.erase(Role::lse);
        }
        call = std::make_shared<BackwardCall>(*other, *other, forward);
    }
    if (d.keeps) {
        std::optional<Tensor> keep = d.keeps(e);
        if (!keep) return std::nullopt;
        Specification other = e.asked;
        other.inputs.put(Role::dropout_keep, std::move(*keep));
        call = std::make_shared<BackwardCall>(other, other, e.forward);
    }
    ModelSteps steps;
    if (d.plain_beyond) plain_beyond(*e.call, steps);
    if (d.change) d.change(*call, steps);
    Predicted predicted = run_backward(*call, steps);
    bound::ExpectedGradients expected;
    for (const Role role : gradient_roles)
        for (const Near& x : predicted[role])
            expected[role].push_back(element(*call, x, !d.respecify));
    return expected;
} catch (const BadInput&) {
    return std::nullopt;  // the deviation makes a problem of this call that has no meaning
}

Diagnosis explain_backward(const AllBackwardEvidence& evidence) {
    Diagnosis found;
    found.backward = true;
    found.cases = static_cast<std::int64_t>(evidence.wrong.size());
    if (evidence.wrong.empty()) return found;
    const std::vector<Role> roles = wrong_roles(evidence.wrong);
    std::vector<Explanation> accepted = unwritten_gradients(evidence.wrong, roles);
    std::int64_t most_agree = -1;
    const auto try_one = [&](const BackwardDeviation& d) {
        const BackwardScoring s = score(d, evidence.wrong, roles);
        found.tried += s.silent < found.cases;
        const bool known = std::ranges::find(accepted, d.id, &Explanation::id) != accepted.end();
        if (known) return;
        if (s.explains(found.cases)) {
            Explanation e = explanation_of(s, evidence, roles);
            e.narrowed = !s.elsewhere;
            if (!e.refuted || e.holds_in || s.telling >= telling_beside_right_min)
                accepted.push_back(std::move(e));
        } else if (s.fits() || (d.strays && s.agree == s.of)) {
            found.fits.push_back(d.id);
            if (!d.in_forward.empty()) found.fits_in_forward.push_back(d.in_forward);
        } else if (s.agree > most_agree) {
            most_agree = s.agree;
            found.next_id = d.id;
            found.next_agree = s.agree;
            found.agree = s.agree;
            found.of = s.of;
        }
    };
    // What a deviation makes NaN is what nobody wrote, where memory is as it was.
    if (accepted.empty()) std::ranges::for_each(backward_deviations(), try_one);
    if (accepted.empty()) std::ranges::for_each(fitted_factor(evidence.wrong, roles), try_one);
    if (accepted.empty()) std::ranges::for_each(in_some_gradient_rows(evidence, roles), try_one);
    // What the right calls agree with stands before what they refute, and what explains every
    // gradient before what explains some of them.
    std::ranges::stable_sort(accepted, {},
                             [](const Explanation& e) { return std::pair(e.refuted, e.narrowed); });
    if (accepted.empty())
        if (auto nan = nan_everywhere(evidence, roles)) accepted.push_back(*nan);
    if (accepted.empty()) accepted = backward_coarser_steps(evidence, roles);
    if (accepted.empty()) {
        std::ranges::move(fitting_backward_steps(evidence, roles), std::back_inserter(found.fits));
        return found;
    }
    static_cast<Explanation&>(found) = accepted.front();
    found.also.assign(accepted.begin() + 1, accepted.end());
    found.known = true;
    return found;
}

/// As forward's: an explanation has to predict calls too that nobody chose who knew it.
bool contradicted(const Explanation& found, const AllBackwardEvidence& evidence) {
    const auto bears = [&](const BackwardDeviation& d) {
        if (d.id != found.id) return false;
        const std::vector<Role> roles = wrong_roles(evidence.wrong);
        const BackwardScoring right = score(d, evidence.right, roles);
        return score(d, evidence.wrong, roles).fits() && right.agree == right.of;
    };
    return std::ranges::none_of(backward_deviations(), bears);
}

std::optional<Diagnosis> diagnose_backward(search::Kernel& kernel,
                                           const search::Counterexample& counterexample,
                                           const std::vector<search::CaseRecord>& records) {
    if (kernel.manifest().gradients.empty() || !counterexample.smallest.problem.want_grad)
        return std::nullopt;
    AllBackwardEvidence evidence = gather_backward_evidence(kernel, counterexample, records);
    if (evidence.forward_wrong) return std::nullopt;  // which backward goes by
    if (evidence.wrong.empty() && !evidence.remembers) return std::nullopt;
    if (evidence.remembers) {
        Diagnosis found{remembered()};
        found.backward = found.known = true;
        return found;
    }
    Diagnosis found = explain_backward(evidence);
    if (found.known) {
        add_neighbours(evidence, kernel, counterexample.smallest);
        if (contradicted(found, evidence)) found = explain_backward(evidence);
    }
    if (const auto read = workspace_read(evidence.wrong); read && (!found.known || found.general)) {
        static_cast<Explanation&>(found) = *read;
        found.known = true;
    }
    if (!found.known)
        if (const auto strides = gradient_strides_ignored(kernel, evidence.wrong)) {
            static_cast<Explanation&>(found) = *strides;
            found.known = true;
        }
    found.backward_evidence = std::make_shared<const AllBackwardEvidence>(std::move(evidence));
    return found;
}

}  // namespace attest::diagnosis
