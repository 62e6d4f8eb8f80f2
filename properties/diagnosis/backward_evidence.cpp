#include "properties/diagnosis/backward_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "properties/diagnosis/call_listener.hpp"
#include "properties/diagnosis/evidence.hpp"
#include "properties/diagnosis/relatives.hpp"
#include "properties/law/compare.hpp"
#include "properties/law/dropout_mask.hpp"
#include "properties/law/gradient_run.hpp"
#include "properties/search/kernel_trial.hpp"
#include "reference/oracle/gradients.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/feature.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::diagnosis {

namespace {

std::string said_of(Role role) {
    switch (role) {
        case Role::d_q:
            return "dQ";
        case Role::d_k:
            return "dK";
        case Role::d_v:
            return "dV";
        case Role::d_mask:
            return "the bias gradient";
        case Role::d_slopes:
            return "the slopes' gradient";
        case Role::d_sinks:
            return "the sinks' gradient";
        case Role::q:
            return "Q";
        case Role::k:
            return "K";
        case Role::v:
            return "V";
        case Role::o:
            return "O";
        case Role::d_o:
            return "dO";
        case Role::lse:
            return "the LSE";
        case Role::d_lse:
            return "dLSE";
        default:
            return "the mask";
    }
}

// As products_max of a forward; a backward model costs about three.
constexpr std::int64_t backward_products_max = 100'000;
constexpr std::size_t backward_evidence_max = 12;

bool any_outside(const Tensor& observed, const std::vector<bound::ExpectedElement>& expected,
                 Precision format) {
    for (std::size_t n = 0; n < expected.size(); ++n)
        if (outside(observed.get(static_cast<std::int64_t>(n)), expected[n], format)) return true;
    return false;
}

bool forward_is_right(const Specification& asked, const bound::Expected& truth) {
    if (any_outside(asked.inputs[Role::o], truth.output, asked.problem.format_o)) return false;
    return !asked.inputs.has(Role::lse) ||
           !any_outside(asked.inputs[Role::lse], truth.lse, lse_format(asked.problem));
}

/// Which weights forward keeps of a problem, read off its outputs.
std::optional<law::KeptMask> kept_by(search::Kernel& kernel, const Problem& problem,
                                     const TensorSet& inputs, std::int64_t calls_max = 16) try {
    if (law::reading_calls(problem) > calls_max) return std::nullopt;
    const Case asked{problem, {}};
    law::KeptMask mask = law::read_mask(search::KernelTrial(kernel, asked), problem, inputs);
    if (mask.contradiction) return std::nullopt;
    return mask;
} catch (const search::NoAnswer&) {
    return std::nullopt;
}

/// A weight's fate is one of its cell, whatever the lengths: the mask with cells that the problem
/// does not have.
std::optional<Tensor> kept_in_square(search::Kernel& kernel, const Problem& problem) {
    Case square{problem, {}};
    Problem& p = square.problem;
    p.len_q = p.len_kv = std::max(p.len_q, p.len_kv);
    p.mask = {};
    p.layout_q = p.layout_k = p.layout_v = p.layout_o = {};
    p.want_grad = false;
    if (!kernel.supports(p, nullptr)) return std::nullopt;
    constexpr std::int64_t calls_max = 160;
    auto mask = kept_by(kernel, p, make_inputs(square), calls_max);
    if (!mask) return std::nullopt;
    return std::move(mask->keep);
}

/// What no query sees has a fate as well, which a backward that sees more may take.
Tensor with_fates_of_hidden(law::KeptMask mask, const std::optional<Tensor>& square) {
    for (std::int64_t at = 0; square && at < mask.keep.size(); ++at) {
        const Shape n = law::index_of(mask.keep.shape(), at);
        if (!mask.sees(at))
            mask.keep.set_bits(at, square->bits(square->flat(n[0], n[1], n[2], n[3])));
    }
    return std::move(mask.keep);
}

/// None where it ended otherwise, or means nothing to the reference.
std::optional<BackwardEvidence> judged(search::Kernel& kernel, Specification asked,
                                       worker::CallResult result,
                                       bool* forward_wrong = nullptr) try {
    if (result.outcome != worker::Outcome::ok || products(asked.problem) > backward_products_max)
        return std::nullopt;
    BackwardEvidence e{std::move(asked), {}, {}, std::move(result.outputs), {}, {}};
    e.unwritten = result.outputs_unwritten;
    Specification& s = e.asked;
    if (s.problem.dropout.p > 0) {
        std::optional<law::KeptMask> keep = kept_by(kernel, s.problem, s.inputs);
        if (!keep) return std::nullopt;
        if (auto next = kept_by(kernel, law::reseeded(s.problem, 1), s.inputs))
            e.next_keep = std::move(next->keep);
        e.square_keep = kept_in_square(kernel, s.problem);
        s.inputs.put(Role::dropout_keep, with_fates_of_hidden(std::move(*keep), e.square_keep));
    }
    e.forward = oracle::attend(s.problem, s.dialect, s.numerics, s.inputs);
    if (!forward_is_right(s, e.forward)) {
        if (forward_wrong != nullptr) *forward_wrong = true;
        return std::nullopt;
    }
    e.truth = oracle::attend_gradients(s.problem, s.dialect, s.numerics, s.inputs);
    e.call = std::make_shared<BackwardCall>(s, s, e.forward);
    for (const Role role : gradient_roles)
        if (e.observed.has(role) &&
            any_outside(e.observed[role], e.truth[role], law::gradient_format(s.problem, role)))
            e.wrong.push_back(role);
    const auto nan = [&](Role role) { return nan_for_a_number(e.observed[role], e.truth[role]); };
    e.workspace_read = result.workspace_read && std::ranges::any_of(e.wrong, nan);
    return e;
} catch (const BadInput&) {
    return std::nullopt;
}

std::vector<Role> wanted_of(const search::Kernel& kernel, const Problem& problem) {
    std::vector<Role> wanted = kernel.manifest().gradients;
    std::erase_if(wanted, [&](Role role) { return !shape_of(problem, role); });
    return wanted;
}

worker::CallResult call_both(search::Kernel& kernel, Specification& asked,
                             const std::vector<Role>& wanted) {
    const worker::CallResult forward = kernel.forward(asked.problem, asked.inputs);
    if (forward.outcome != worker::Outcome::ok) return forward;
    asked.inputs = law::backward_inputs(asked.problem, asked.inputs, forward.outputs);
    return kernel.backward(asked.problem, asked.inputs, wanted);
}

/// The same gradients asked again of the same numbers.
std::optional<BackwardEvidence> asked_again(search::Kernel& kernel, Specification asked,
                                            const TensorSet& observed) {
    std::vector<Role> wanted;
    for (const Role role : gradient_roles)
        if (observed.has(role)) wanted.push_back(role);
    worker::CallResult result = call_both(kernel, asked, wanted);
    return judged(kernel, std::move(asked), std::move(result));
}

/// The same call, first in a fresh process.
bool right_alone(search::Kernel& kernel, const BackwardEvidence& e) {
    kernel.restart();
    const auto alone = asked_again(kernel, e.asked, e.observed);
    return alone && alone->wrong.empty();
}

void add_calls_of_the_law(AllBackwardEvidence& all, search::Kernel& kernel,
                          const search::Counterexample& c) {
    CallListener heard = listen(kernel, c);
    for (auto& [asked, result] : heard.backwards) {
        auto e = judged(kernel, std::move(asked), std::move(result), &all.forward_wrong);
        if (e && !e->wrong.empty() && right_alone(kernel, *e))
            all.remembers = true;
        else
            all.add(std::move(e));
    }
}

/// Backward of whole sequences alone: of a law's case that may be asked of forward alone, the plain
/// form.
Case differentiated(Case c) {
    c.problem.want_grad = true;
    return c;
}

}  // namespace

bool right_laid_out(search::Kernel& kernel, const BackwardEvidence& e, const Layouts& layouts) {
    Specification asked = e.asked;
    for (std::size_t n = 0; n < layouts.size(); ++n) asked.problem.*layout_fields[n] = layouts[n];
    const auto again = asked_again(kernel, std::move(asked), e.observed);
    return again && again->wrong.empty();
}

std::string text_of(const std::vector<Role>& roles) {
    std::string text;
    for (std::size_t n = 0; n < roles.size(); ++n)
        text += (n == 0 ? "" : n + 1 == roles.size() ? " and " : ", ") + said_of(roles[n]);
    return text;
}

bool outside(double observed, const bound::ExpectedElement& e, Precision format) noexcept {
    return bound::judge(observed, e, format) == bound::Agreement::disagrees;
}

void AllBackwardEvidence::add(std::optional<BackwardEvidence> evidence) {
    if (!evidence) return;
    std::vector<BackwardEvidence>& list = evidence->wrong.empty() ? right : wrong;
    if (list.size() < backward_evidence_max) list.push_back(std::move(*evidence));
}

std::optional<BackwardEvidence> backward_evidence_of(search::Kernel& kernel, const Case& tried) {
    Case c = differentiated(tried);
    if (products(c.problem) > backward_products_max) return std::nullopt;
    try {
        c.problem = canonical(c.problem);
        require_valid(c.problem);
        std::string reason;
        if (!kernel.supports(c.problem, &reason)) return std::nullopt;
        Specification asked{c.problem, kernel.manifest().dialect, kernel.manifest().numerics,
                            make_inputs(c)};
        worker::CallResult result = call_both(kernel, asked, wanted_of(kernel, c.problem));
        return judged(kernel, std::move(asked), std::move(result));
    } catch (const BadInput&) {
        return std::nullopt;
    }
}

AllBackwardEvidence gather_backward_evidence(search::Kernel& kernel,
                                             const search::Counterexample& counterexample,
                                             const std::vector<search::CaseRecord>& records) {
    AllBackwardEvidence all;
    add_calls_of_the_law(all, kernel, counterexample);
    for (const Case& c : cases_around(counterexample, records)) {
        if (all.remembers || all.wrong.size() == backward_evidence_max) break;
        auto e = backward_evidence_of(kernel, c);
        // A defect of one call shows in the first of them; a memory may in any.
        if (e && !e->wrong.empty() && all.wrong.size() < 2 && right_alone(kernel, *e))
            all.remembers = true;
        else
            all.add(std::move(e));
    }
    return all;
}

void add_neighbours(AllBackwardEvidence& evidence, search::Kernel& kernel, const Case& smallest) {
    for (const auto neighbours : {length_neighbours, list_neighbours, feature_neighbours})
        for (const Case& c : neighbours(smallest))
            if (std::optional<BackwardEvidence> e = backward_evidence_of(kernel, c))
                (e->wrong.empty() ? evidence.right : evidence.wrong).push_back(std::move(*e));
    for (const Case& c : richer_neighbours(smallest))
        if (std::optional<BackwardEvidence> e = backward_evidence_of(kernel, c);
            e && e->wrong.empty())
            evidence.right.push_back(std::move(*e));
}

}  // namespace attest::diagnosis
