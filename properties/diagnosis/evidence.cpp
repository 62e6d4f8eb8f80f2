#include "properties/diagnosis/evidence.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "properties/diagnosis/call_listener.hpp"
#include "properties/diagnosis/relatives.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/empty_slots.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::diagnosis {

namespace {

constexpr std::size_t evidence_max = 16;  // of the wrong, and of the right ones

bool disagrees(const Tensor& observed, const std::vector<bound::ExpectedElement>& expected,
               Precision format) {
    if (observed.size() != static_cast<std::int64_t>(expected.size())) return false;
    for (std::int64_t n = 0; n < observed.size(); ++n)
        if (bound::judge(observed.get(n), expected[static_cast<std::size_t>(n)], format) ==
            bound::Agreement::disagrees)
            return true;
    return false;
}

// Some biases become 0: else "visible where not zero" and "no mask" could not be told apart. A
// single one stays.
void leave_some_scores_alone(TensorSet& inputs, const Problem& problem) {
    if (problem.mask.tensor.kind != MaskKind::additive) return;
    Tensor& mask = inputs[Role::mask];
    for (std::int64_t n = mask.size() > 1 ? 0 : 1; n < mask.size(); n += 3)
        if (std::isfinite(mask.get(n))) mask.set(n, 0);
}

/// What a wrong call is as the first of a process.
enum class Alone : std::uint8_t { right, the_same, wrong_otherwise };

// A few times, since threads that race are right now and then.
Alone by_itself(search::Kernel& kernel, const Evidence& e) {
    constexpr int processes = 4;
    for (int n = 0; n < processes; ++n) {
        kernel.restart();
        const std::optional<Evidence> alone =
            judged_call(e.asked, kernel.forward(e.asked.problem, e.asked.inputs));
        if (!alone) return Alone::the_same;
        const bool repeats =
            !kernel.manifest().numerics.deterministic || alone->observed == e.observed;
        if (alone->wrong()) return repeats ? Alone::the_same : Alone::wrong_otherwise;
    }
    return Alone::right;
}

void add_calls_of_the_law(AllEvidence& evidence, search::Kernel& kernel,
                          const search::Counterexample& c) {
    const law::Property* law = law::find_property(c.law);
    if (law != nullptr && !features_of(c.smallest.problem).contains(law->cases.require)) return;
    CallListener heard = listen(kernel, c);
    for (auto& [asked, result] : heard.forwards) {
        std::optional<Evidence> e = judged_call(std::move(asked), std::move(result));
        if (e && e->wrong() && by_itself(kernel, *e) == Alone::right)
            evidence.remembers = true;
        else
            evidence.add(std::move(e));
    }
}

// Of the cases that held those tell most that have what the smallest failing one has.
std::vector<Case> cases_that_held(const std::vector<search::CaseRecord>& records,
                                  const Case& smallest) {
    const FeatureSet own = features_of(smallest.problem);
    std::vector<Case> cases;
    for (const search::CaseRecord& record : records)
        if (answered(record, law::Decision::holds) && !too_large(record.tried))
            cases.push_back(record.tried);
    std::ranges::stable_sort(cases, std::greater{}, [own](const Case& c) {
        return std::popcount((features_of(c.problem) & own).bits());
    });
    cases.resize(std::min(cases.size(), holding_cases_max));
    return cases;
}

}  // namespace

bool nan_for_a_number(const Tensor& observed, const std::vector<bound::ExpectedElement>& truth) {
    for (std::size_t n = 0; n < truth.size(); ++n)
        if (std::isfinite(truth[n].value) && std::isfinite(truth[n].bound) &&
            std::isnan(observed.get(static_cast<std::int64_t>(n))))
            return true;
    return false;
}

std::optional<Evidence> judged_call(Specification asked, worker::CallResult result) try {
    if (products(asked.problem) > products_max) return std::nullopt;
    if (result.outcome != worker::Outcome::ok || !result.outputs.has(Role::o)) return std::nullopt;
    for (const Role role : {Role::k, Role::v})  // as the kernel was given them
        fill_empty_slots(asked.inputs[role], asked.problem, asked.dialect);
    Evidence e{std::move(asked), {}, std::move(result.outputs)};
    const Problem& p = e.asked.problem;
    e.unwritten = result.outputs_unwritten;
    e.truth = oracle::attend(p, e.asked.dialect, e.asked.numerics, e.asked.inputs);
    e.output_wrong = disagrees(e.observed[Role::o], e.truth.output, p.format_o);
    e.lse_wrong =
        e.observed.has(Role::lse) && disagrees(e.observed[Role::lse], e.truth.lse, lse_format(p));
    e.workspace_read = result.workspace_read &&
                       (nan_for_a_number(e.observed[Role::o], e.truth.output) ||
                        (e.lse_wrong && nan_for_a_number(e.observed[Role::lse], e.truth.lse)));
    return e;
} catch (const BadInput&) {
    return std::nullopt;  // a call that means nothing to the reference
}

bool answered(const search::CaseRecord& record, law::Decision decision) noexcept {
    return record.verdict.decision == decision && record.outcome == worker::Outcome::ok;
}

bool too_large(const Case& tried) noexcept {
    return products(tried.problem) > products_max;
}

Precision lse_format(const Problem& p) noexcept {
    return p.format_q == Precision::f64 ? Precision::f64 : Precision::f32;
}

void AllEvidence::add(std::optional<Evidence> evidence) {
    if (!evidence) return;
    std::vector<Evidence>& list = evidence->wrong() ? wrong : right;
    if (list.size() < evidence_max) list.push_back(std::move(*evidence));
}

void AllEvidence::add_probe(Evidence evidence) {
    (evidence.wrong() ? wrong : right).push_back(std::move(evidence));
}

bool AllEvidence::paged() const noexcept {
    const auto has_pages = [](const Evidence& e) { return e.asked.problem.cache.page_size > 0; };
    return std::ranges::any_of(wrong, has_pages) || std::ranges::any_of(right, has_pages);
}

bool AllEvidence::enough() const noexcept {
    return wrong.size() == evidence_max;
}

std::optional<Evidence> evidence_of(search::Kernel& kernel, const Case& tried,
                                    const std::function<void(const Problem&, TensorSet&)>& change) {
    Case c = tried;
    if (too_large(c)) return std::nullopt;
    try {
        c.problem = canonical(c.problem);
        require_valid(c.problem);
        std::string reason;
        if (!kernel.supports(c.problem, &reason)) {
            c.problem.want_lse = false;
            if (!kernel.supports(c.problem, &reason)) return std::nullopt;
        }
        Specification asked{c.problem, kernel.manifest().dialect, kernel.manifest().numerics,
                            make_inputs(c)};
        leave_some_scores_alone(asked.inputs, c.problem);
        if (change) change(c.problem, asked.inputs);
        worker::CallResult result = kernel.forward(c.problem, asked.inputs);
        return judged_call(std::move(asked), std::move(result));
    } catch (const BadInput&) {
        return std::nullopt;
    }
}

std::vector<Case> cases_around(const search::Counterexample& counterexample,
                               const std::vector<search::CaseRecord>& records) {
    std::vector<Case> cases{counterexample.smallest, counterexample.found.tried};
    for (Case& wide : relatives(counterexample.smallest)) cases.push_back(std::move(wide));
    for (const search::CaseRecord& record : records)
        if (answered(record, law::Decision::violated)) cases.push_back(record.tried);
    std::ranges::move(cases_that_held(records, counterexample.smallest), std::back_inserter(cases));
    return cases;
}

AllEvidence gather_evidence(search::Kernel& kernel, const search::Counterexample& counterexample,
                            const std::vector<search::CaseRecord>& records) {
    AllEvidence evidence;
    add_calls_of_the_law(evidence, kernel, counterexample);
    std::vector<Case> cases{counterexample.smallest, counterexample.found.tried};
    // A law may ask of the kernel what is not the case itself: one query instead of three.
    if (!evidence.wrong.empty() &&
        evidence.wrong.front().asked.problem != counterexample.smallest.problem)
        for (Case& wide : relatives({evidence.wrong.front().asked.problem, {}}))
            cases.push_back(std::move(wide));
    // Relatives tell deviations apart, so they stand before further cases of the law; where the
    // defect needs what they do not have, the kernel is right on them, which tells as much.
    for (Case& wide : relatives(counterexample.smallest)) cases.push_back(std::move(wide));
    std::ranges::move(cases_that_held(records, counterexample.smallest), std::back_inserter(cases));
    for (const search::CaseRecord& record : records)
        if (answered(record, law::Decision::violated)) cases.push_back(record.tried);
    for (const Case& c : cases) {
        if (evidence.enough()) break;
        std::optional<Evidence> e = evidence_of(kernel, c);
        // A defect of one call shows in the first of them; a memory may in any.
        if (e && e->wrong() && evidence.wrong.size() < 2 && by_itself(kernel, *e) == Alone::right)
            evidence.remembers = true;
        else
            evidence.add(std::move(e));
    }
    // Whatever refutes does so in small calls first, but for the one that stands for them all.
    if (!evidence.wrong.empty())
        std::ranges::stable_sort(evidence.wrong.begin() + 1, evidence.wrong.end(), {},
                                 [](const Evidence& e) { return products(e.asked.problem); });
    return evidence;
}

bool differs_alone(search::Kernel& kernel, const AllEvidence& evidence) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    return std::ranges::any_of(evidence.wrong, [&](const Evidence& e) {
        return std::chrono::steady_clock::now() < until && by_itself(kernel, e) != Alone::the_same;
    });
}

void add_neighbours(AllEvidence& evidence, search::Kernel& kernel, const Case& smallest) {
    for (const auto neighbours :
         {length_neighbours, list_neighbours, feature_neighbours, dimension_neighbours})
        for (const Case& c : neighbours(smallest))
            if (std::optional<Evidence> e = evidence_of(kernel, c))
                evidence.add_probe(std::move(*e));
    for (const Case& c : richer_neighbours(smallest)) {
        std::optional<Evidence> e = evidence_of(kernel, c);
        if (e && e->wrong())
            evidence.richer.push_back(std::move(*e));
        else if (e)
            evidence.add_probe(std::move(*e));
    }
}

namespace {

/// More values a key, in one of the ways that the kernel takes: each is an element more that tells.
Problem widened(search::Kernel& kernel, const Problem& smallest) {
    Problem values = smallest, both = smallest;
    values.dim_v = value_dim(smallest) + 3;
    if (kernel.supports(values, nullptr)) return values;
    both.dim_qk += 4;
    if (smallest.dim_v != 0) both.dim_v += 4;
    return kernel.supports(both, nullptr) ? both : smallest;
}

}  // namespace

void add_magnitudes(AllEvidence& evidence, search::Kernel& kernel, const Case& smallest) {
    Case wide = smallest;
    wide.problem = widened(kernel, smallest.problem);
    wide.values = {ValueKind::normal, 1, {}};
    for (const int exponent : {-140, -126, -100, -70, -40, -24, -20, -14, -10, -7, 8, 16, 40})
        if (std::optional<Evidence> e =
                evidence_of(kernel, wide, [exponent](const Problem& p, TensorSet& inputs) {
                    Tensor& v = inputs[Role::v];
                    for (std::int64_t n = 0; n < v.size(); ++n)
                        v.set(n, round_to(std::ldexp(v.get(n), exponent), p.format_kv));
                }))
            evidence.add_probe(std::move(*e));
}

}  // namespace attest::diagnosis
