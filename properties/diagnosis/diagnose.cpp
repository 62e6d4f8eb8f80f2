#include "properties/diagnosis/diagnose.hpp"

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/experiment.hpp"
#include "properties/diagnosis/relatives.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::diagnosis {

namespace {

// A reference row costs its scores times both dimensions. So many of them, over all evidence and
// all deviations, take about a second: 100 deviations times 3e5 products a case times 16 cases at
// 0.3e9 a second.
constexpr std::int64_t products_max = 300'000;
constexpr std::size_t evidence_max = 16;

std::int64_t products(const Problem& p) {
    return score_count(p) * (p.dim_qk + value_dim(p));
}

bool informative(const bound::ExpectedElement& e) {
    return !std::isfinite(e.value) || std::isfinite(e.bound);
}

struct AgreementCount {
    std::int64_t agree = 0, of = 0;
    bool excludes_truth = false;
};

// Elements of one output within the deviation's bound. The truth itself, rounded to the format, is
// judged the same way: a deviation that admits it everywhere explains nothing.
AgreementCount count_output(const Tensor& observed,
                            const std::vector<bound::ExpectedElement>& predicted,
                            const std::vector<bound::ExpectedElement>& truth, Precision format) {
    AgreementCount count;
    for (std::size_t n = 0; n < predicted.size(); ++n) {
        if (!informative(predicted[n])) continue;
        ++count.of;
        const double seen = observed.get(static_cast<std::int64_t>(n));
        if (bound::judge(seen, predicted[n], format) != bound::Agreement::disagrees) ++count.agree;
        if (n < truth.size() && bound::judge(round_to(truth[n].value, format), predicted[n],
                                             format) == bound::Agreement::disagrees)
            count.excludes_truth = true;
    }
    return count;
}

Precision lse_format(const Problem& p) {
    return p.format_q == Precision::f64 ? Precision::f64 : Precision::f32;
}

bool disagrees(const Tensor& observed, const std::vector<bound::ExpectedElement>& expected,
               Precision format) {
    if (observed.size() != static_cast<std::int64_t>(expected.size())) return false;
    for (std::int64_t n = 0; n < observed.size(); ++n)
        if (bound::judge(observed.get(n), expected[static_cast<std::size_t>(n)], format) ==
            bound::Agreement::disagrees)
            return true;
    return false;
}

bool output_disagrees(const Evidence& e) {
    return disagrees(e.observed[Role::o], e.truth.output, e.asked.problem.format_o);
}

bool lse_disagrees(const Evidence& e) {
    return e.observed.has(Role::lse) &&
           disagrees(e.observed[Role::lse], e.truth.lse, lse_format(e.asked.problem));
}

struct DeviationScore {
    const Deviation* deviation = nullptr;
    AgreementCount count;
    std::int64_t silent = 0;  // evidence the deviation has nothing to say of
};

DeviationScore score(const Deviation& deviation, const std::vector<const Evidence*>& evidence,
                     bool lse) {
    DeviationScore total{&deviation, {}, 0};
    for (const Evidence* e : evidence) {
        const std::optional<bound::Expected> predicted = predict(deviation, e->asked, e->truth);
        const auto& elements = predicted ? (lse ? predicted->lse : predicted->output)
                                         : std::vector<bound::ExpectedElement>{};
        if (elements.empty()) {
            ++total.silent;
            continue;
        }
        const Problem& p = e->asked.problem;
        const AgreementCount one =
            lse ? count_output(e->observed[Role::lse], elements, e->truth.lse, lse_format(p))
                : count_output(e->observed[Role::o], elements, e->truth.output, p.format_o);
        total.count.agree += one.agree;
        total.count.of += one.of;
        total.count.excludes_truth = total.count.excludes_truth || one.excludes_truth;
    }
    return total;
}

// An f32 result that was computed in half or bfloat16 is a member of that format, everywhere, and
// as far from the truth as one rounding to it.
std::optional<Diagnosis> narrower_output(const std::vector<const Evidence*>& evidence) {
    for (const Precision narrow : {Precision::bf16, Precision::f16, Precision::f32}) {
        Diagnosis d;
        d.id = "output_" + std::string(name(narrow));
        d.says = "an output of the precision of " + std::string(name(narrow));
        bool wider = true, member = true, wide_truth = false;
        for (const Evidence* e : evidence) {
            const Precision format = e->asked.problem.format_o;
            wider = wider && traits(format).significand_bits > traits(narrow).significand_bits;
            Numerics lower = e->asked.numerics;
            lower.weights = lower.output = narrow == Precision::bf16  ? NumberFormat::bf16
                                           : narrow == Precision::f16 ? NumberFormat::f16
                                                                      : NumberFormat::f32;
            if (!wider) break;
            const bound::Expected truth =
                oracle::attend(e->asked.problem, e->asked.dialect, lower, e->asked.inputs);
            for (std::size_t n = 0; n < truth.output.size(); ++n) {
                const double seen = e->observed[Role::o].get(static_cast<std::int64_t>(n));
                ++d.of;
                member = member && (std::isnan(seen) || round_to(seen, narrow) == seen);
                wide_truth = wide_truth || round_to(truth.output[n].value, narrow) !=
                                               round_to(truth.output[n].value, format);
                if (bound::judge(seen, truth.output[n], narrow) != bound::Agreement::disagrees)
                    ++d.agree;
            }
        }
        if (wider && member && wide_truth && d.agree == d.of && d.of > 0) {
            d.known = true;
            return d;
        }
    }
    return std::nullopt;
}

// Some biases become 0: else "visible where not zero" and "no mask" could not be told apart.
void leave_some_scores_alone(TensorSet& inputs, const Problem& problem) {
    if (problem.mask.tensor.kind != MaskKind::additive) return;
    Tensor& mask = inputs[Role::mask];
    for (std::int64_t n = 0; n < mask.size(); n += 3)
        if (std::isfinite(mask.get(n))) mask.set(n, 0);
}

Diagnosis remembered() {
    Diagnosis d;
    d.known = true;
    d.id = "remembers";
    d.tells = law::Tells::memory;
    d.says = "an answer that depends on earlier calls; by itself each is right";
    return d;
}

}  // namespace

std::optional<Evidence> evidence_of(search::Kernel& kernel, const Case& tried,
                                    const std::function<void(const Problem&, TensorSet&)>& change) {
    Case c = tried;
    if (products(c.problem) > products_max) return std::nullopt;
    try {
        c.problem = canonical(c.problem);
        require_valid(c.problem);
        std::string reason;
        if (!kernel.supports(c.problem, &reason)) {
            c.problem.want_lse = false;
            if (!kernel.supports(c.problem, &reason)) return std::nullopt;
        }
        Evidence e{
            {c.problem, kernel.manifest().dialect, kernel.manifest().numerics, make_inputs(c)},
            {},
            {}};
        leave_some_scores_alone(e.asked.inputs, c.problem);
        if (change) change(c.problem, e.asked.inputs);
        worker::CallResult result = kernel.forward(c.problem, e.asked.inputs);
        if (result.outcome != worker::Outcome::ok || !result.outputs.has(Role::o))
            return std::nullopt;
        e.observed = std::move(result.outputs);
        e.truth =
            oracle::attend(e.asked.problem, e.asked.dialect, e.asked.numerics, e.asked.inputs);
        if (!output_disagrees(e) && !lse_disagrees(e)) return std::nullopt;
        return e;
    } catch (const BadInput&) {
        return std::nullopt;
    }
}

Diagnosis explain_evidence(const std::vector<Evidence>& evidence) {
    std::vector<const Evidence*> outputs, sums;
    for (const Evidence& e : evidence) {
        if (output_disagrees(e)) outputs.push_back(&e);
        if (lse_disagrees(e)) sums.push_back(&e);
    }
    const bool lse = outputs.empty();
    const std::vector<const Evidence*>& used = lse ? sums : outputs;
    Diagnosis none;
    none.cases = static_cast<std::int64_t>(used.size());
    if (used.empty()) return none;

    std::vector<DeviationScore> scores;
    for (const Deviation& d : deviations()) {
        DeviationScore s = score(d, used, lse);
        if (s.silent < none.cases) scores.push_back(s);
    }
    none.tried = static_cast<std::int64_t>(scores.size());
    const auto explains = [&none](const DeviationScore& s) {
        return 2 * s.silent <= none.cases && s.count.of > 0 && s.count.agree == s.count.of &&
               s.count.excludes_truth;
    };
    const auto best = std::find_if(scores.begin(), scores.end(), explains);
    const auto more = [](const DeviationScore& a, const DeviationScore& b) {
        return a.count.agree < b.count.agree;
    };
    Diagnosis found = none;
    if (best != scores.end()) {
        const Specification& first = used.front()->asked;
        found.known = true;
        found.id = best->deviation->id;
        found.tells = best->deviation->tells;
        found.says = (lse && !best->deviation->formula ? "in the log-sum-exp alone: " : "") +
                     best->deviation->says;
        if (best->deviation->declares) found.declared = best->deviation->declares(first);
        found.agree = best->count.agree;
        found.of = best->count.of;
        scores.erase(best);
    } else if (!lse) {
        std::optional<Diagnosis> other = narrower_output(used);
        if (!other) other = not_finite(used);
        if (other) {
            other->cases = none.cases;
            other->tried = none.tried;
            found = *other;
        }
    }
    if (const auto next = std::max_element(scores.begin(), scores.end(), more);
        next != scores.end()) {
        found.next_id = next->deviation->id;
        found.next_agree = next->count.agree;
        if (!found.known) {
            found.agree = next->count.agree;
            found.of = next->count.of;
        }
    }
    return found;
}

Diagnosis diagnose(search::Kernel& kernel, const search::Counterexample& counterexample,
                   const std::vector<search::CaseRecord>& records) {
    if (counterexample.outcome != worker::Outcome::ok || counterexample.fault) return {};
    std::vector<Case> cases{counterexample.smallest, counterexample.found.tried};
    // Relatives tell deviations apart, so they stand before further cases of the law; where the
    // defect needs what they do not have, the kernel is right on them and they drop out.
    for (Case& wide : relatives(counterexample.smallest)) cases.push_back(std::move(wide));
    for (const search::CaseRecord& record : records)
        if (record.verdict.decision == law::Decision::violated &&
            record.outcome == worker::Outcome::ok)
            cases.push_back(record.tried);
    const auto gather = [&](const auto& evidence_in) {
        std::vector<Evidence> evidence;
        for (const Case& c : cases) {
            if (evidence.size() == evidence_max) break;
            if (std::optional<Evidence> e = evidence_in(c)) evidence.push_back(std::move(*e));
        }
        return evidence;
    };
    std::vector<Evidence> evidence = gather([&](const Case& c) { return evidence_of(kernel, c); });
    const law::Property* law = law::find_property(counterexample.law);
    if (evidence.empty() && law != nullptr && law->after_other_calls) return remembered();
    if (evidence.empty())
        evidence = gather([&](const Case& c) { return poisoned_evidence(kernel, c); });
    if (std::optional<Diagnosis> leak = hidden_leaks(kernel, evidence)) return *leak;
    return explain_evidence(evidence);
}

}  // namespace attest::diagnosis
