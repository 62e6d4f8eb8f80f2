#include "properties/diagnosis/dropped_forward.hpp"

#include <algorithm>
#include <utility>

#include "properties/diagnosis/agreement.hpp"
#include "properties/diagnosis/shared_dropout.hpp"
#include "properties/law/dropout_mask.hpp"
#include "properties/search/kernel_trial.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"
#include "reference/problem/validity.hpp"

namespace attest::diagnosis {

namespace {

/// One call under the mask that is read beside it.
std::optional<Evidence> dropped_evidence(search::Kernel& kernel, Case c) try {
    c.problem = canonical(c.problem);
    const Problem& p = c.problem;
    if (!mask_is_readable(kernel, c)) return std::nullopt;
    const search::KernelTrial trial(kernel, c);
    Specification asked{p, kernel.manifest().dialect, kernel.manifest().numerics, make_inputs(c)};
    law::KeptMask mask = law::read_mask(trial, p, asked.inputs);
    if (mask.contradiction) return std::nullopt;
    worker::CallResult result = kernel.forward(p, asked.inputs);
    asked.inputs.put(Role::dropout_keep, std::move(mask.keep));
    return judged_call(std::move(asked), std::move(result));
} catch (const search::NoAnswer&) {
    return std::nullopt;
} catch (const BadInput&) {
    return std::nullopt;
}

}  // namespace

bool wrong_without_dropout(search::Kernel& kernel, const search::Counterexample& counterexample) {
    Case c = counterexample.smallest;
    c.problem.dropout = {};
    const std::optional<Evidence> e = evidence_of(kernel, c);
    return e && e->wrong();
}

Diagnosis explain_dropped(const AllEvidence& evidence) {
    static const std::vector<Deviation> list = dropped_forward_deviations();
    Diagnosis found;
    found.cases = static_cast<std::int64_t>(evidence.wrong.size());
    if (evidence.wrong.empty()) return found;
    const JudgedPart part = part_of(evidence.wrong);
    std::vector<Explanation> accepted;
    for (const Deviation& d : list) {
        const DeviationScore s = score(d, evidence.wrong, part);
        found.tried += s.silent < found.cases;
        if (!s.fits(found.cases) || s.count.telling < telling_elements_min) continue;
        Explanation e = explanation_of(s, evidence, part);
        // Where it holds may be a path of the kernel's own: what many elements tell holds there.
        if (e.unlimited && s.count.telling < telling_beside_right_min) continue;
        e.deviation.reset();  // it is of no call without dropout
        accepted.push_back(std::move(e));
    }
    if (accepted.empty()) return found;
    std::ranges::stable_partition(accepted, [](const Explanation& e) { return !e.refuted; });
    static_cast<Explanation&>(found) = accepted.front();
    found.also.assign(accepted.begin() + 1, accepted.end());
    found.known = true;
    return found;
}

Diagnosis dropped_forward(search::Kernel& kernel, const search::Counterexample& counterexample,
                          const std::vector<search::CaseRecord>& records) {
    AllEvidence evidence;
    for (const Case& c : cases_around(counterexample, records)) {
        if (evidence.enough()) break;
        evidence.add(dropped_evidence(kernel, c));
    }
    Diagnosis found = explain_dropped(evidence);
    if (found.known) return found;
    found.evidence = std::make_shared<const AllEvidence>(std::move(evidence));
    return found;
}

Diagnosis diagnose_dropout(search::Kernel& kernel, const search::Counterexample& counterexample,
                           const std::vector<search::CaseRecord>& records) {
    Diagnosis found = dropped_forward(kernel, counterexample, records);
    if (found.known) return found;
    std::optional<Explanation> other = shared_dropout(kernel, counterexample);
    if (!other) other = dropout_at_another_rate(kernel, counterexample, records);
    if (other) {
        static_cast<Explanation&>(found) = *other;
        found.known = true;
        found.evidence.reset();
        found.cases = std::max<std::int64_t>(found.cases, 1);
        return found;
    }
    if (found.tried == 0) return {};
    // Its own mask is right, so that something else is wrong. No experiment on a coarser step is
    // made under dropout, and none is named by its bounds alone.
    Diagnosis beside = explain_evidence(*found.evidence, [](const std::string&) { return true; });
    beside.tried += found.tried;
    beside.evidence = found.evidence;
    return beside;
}

}  // namespace attest::diagnosis
