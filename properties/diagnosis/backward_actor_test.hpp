#pragma once
// Calls on which the deviations of backward show, and the answers of backwards that are wrong.

#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "properties/diagnosis/diagnose_backward.hpp"
#include "properties/law/dropout_mask.hpp"
#include "properties/law/gradient_run.hpp"
#include "reference/oracle/gradients.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::diagnosis {

inline constexpr const char* lines[] = {
    "b2 hq4 hkv2 tq5 tk7 d6 causal f32 grad",
    "b1 hq2 hkv2 tq9 tk9 d4 window 3 1 f32 grad",
    "b2 hq2 hkv1 tq4 tk6 d4 mask additive f32 grad",
    "b2 hq2 hkv2 tq4 tk6 d4 mask bool f32 grad",
    "b1 hq6 hkv2 tq3 tk3 d13 scale 0.5 f32 grad seed 3",
    "b1 hq3 hkv3 tq10 tk5 d5 dv7 f32 grad",
    "b1 hq2 hkv2 tq3 tk5 d4 softcap 0.5 f32 grad",
    "b1 hq2 hkv2 tq3 tk5 d4 sink f32 grad",
    "b1 hq4 hkv4 tq5 tk5 d4 alibi f32 grad",
    "b3 hq4 hkv2 tq4 tk4 d4 alibi causal softcap 2 seed 7 f32 grad",
    "b1 hq2 hkv2 tq5 tk5 d8 rope half base 100 dims 4 f32 grad",
    "b1 hq2 hkv1 tq6 tk6 d4 docs_q 2,4 docs_kv 2,4 f32 grad",
    "b2 hq2 hkv2 tq4 tk6 d4 lens_kv 3,5 lens_q 2,4 f32 grad",
    "b1 hq2 hkv2 tq3 tk5 d4 bf16 grad",
    "b2 hq4 hkv2 tq5 tk7 d6 f32 grad lse_grad",
    "b1 hq6 hkv2 tq3 tk5 d4 causal sink f32 grad lse_grad seed 11",
    "b2 hq8 hkv2 tq4 tk5 d4 sink f32 grad lse_grad seed 13",
    "b2 hq2 hkv2 tq4 tk6 d4 mask additive lens_q 3,4 f32 grad lse_grad seed 12",
};
inline constexpr const char* dropped_lines[] = {
    "b2 hq4 hkv2 tq5 tk7 d6 dropout 0.25 seed 3 f32 grad",
    "b1 hq2 hkv1 tq6 tk4 d4 causal dropout 0.5 seed 4 f32 grad",
    "b1 hq2 hkv2 tq4 tk6 d3 dv5 sink dropout 0.125 seed 5 f32 grad",
    "b2 hq2 hkv2 tq4 tk4 d4 mask additive dropout 0.75 seed 6 bf16 grad",
    "b1 hq2 hkv2 tq4 tk4 d4 sink dropout 0.5 seed 7 f32 grad lse_grad",
};

using GradientNumbers = std::map<Role, std::vector<double>>;
using AnswerOf = std::function<GradientNumbers(const Specification&)>;

inline GradientNumbers reference(const Specification& s) {
    const bound::ExpectedGradients truth =
        oracle::attend_gradients(s.problem, s.dialect, s.numerics, s.inputs);
    GradientNumbers values;
    for (const Role role : gradient_roles)
        for (const bound::ExpectedElement& e : truth[role]) values[role].push_back(e.value);
    return values;
}

inline BackwardEvidence evidence_of(const Case& c, const AnswerOf& answer,
                                    const Numerics& numerics = {},
                                    const std::function<void(TensorSet&)>& edit = {}) {
    BackwardEvidence e;
    e.asked = {c.problem, {}, numerics, law::with_drawn_keep(c.problem, make_inputs(c))};
    if (edit) edit(e.asked.inputs);
    if (c.problem.dropout.p > 0) {
        e.next_keep = law::drawn_keep(law::reseeded(c.problem, 1));
        Problem square = c.problem;
        square.len_q = square.len_kv = std::max(c.problem.len_q, c.problem.len_kv);
        e.square_keep = law::drawn_keep(square);
    }
    Specification& s = e.asked;
    e.forward = oracle::attend(s.problem, s.dialect, s.numerics, s.inputs);
    Tensor o(type_of(s.problem, Role::o), e.forward.output_shape);
    for (std::int64_t n = 0; n < o.size(); ++n)
        o.set(n, e.forward.output[static_cast<std::size_t>(n)].value);
    Tensor lse(type_of(s.problem, Role::lse), shape_of(s.problem, Role::lse).value());
    for (std::int64_t n = 0; n < lse.size(); ++n)
        lse.set(n, e.forward.lse[static_cast<std::size_t>(n)].value);
    s.inputs.put(Role::o, std::move(o));
    s.inputs.put(Role::lse, std::move(lse));
    e.truth = oracle::attend_gradients(s.problem, s.dialect, s.numerics, s.inputs);
    e.call = std::make_shared<BackwardCall>(s, s, e.forward);
    const GradientNumbers values = answer(s);
    for (const auto& [role, numbers] : values) {
        if (numbers.empty()) continue;
        Tensor t(type_of(s.problem, role), shape_of(s.problem, role).value());
        bool wrong = false;
        for (std::int64_t n = 0; n < t.size(); ++n) {
            t.set(n, numbers[static_cast<std::size_t>(n)]);
            e.unwritten = e.unwritten || std::isnan(t.get(n));
            wrong = wrong || outside(t.get(n), e.truth[role][static_cast<std::size_t>(n)],
                                     law::gradient_format(s.problem, role));
        }
        if (wrong) e.wrong.push_back(role);
        e.observed.put(role, std::move(t));
    }
    return e;
}

inline Diagnosis diagnosis_of(const AnswerOf& answer, std::span<const char* const> asked = lines) {
    AllBackwardEvidence all;
    for (const char* line : asked) all.add(evidence_of(parse_case(line), answer));
    return explain_backward(all);
}

/// `change` made to the right answer.
inline AnswerOf changed(std::function<void(const Specification&, GradientNumbers&)> change) {
    return [change = std::move(change)](const Specification& s) {
        GradientNumbers values = reference(s);
        change(s, values);
        return values;
    };
}

/// The gradients of another question in some of them.
inline AnswerOf of_other(std::function<void(Specification&)> ask, std::vector<Role> roles) {
    return [ask = std::move(ask), roles = std::move(roles)](const Specification& s) {
        Specification other = s;
        ask(other);
        GradientNumbers values = reference(s), wrong = reference(other);
        for (const Role role : roles) values[role] = wrong[role];
        return values;
    };
}

}  // namespace attest::diagnosis
