// What a wrong backward computes is named, by answers made of the reference and not of the model.

#include "properties/diagnosis/diagnose_backward.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/backward_actor_test.hpp"
#include "properties/diagnosis/cause.hpp"
#include "properties/law/compare.hpp"

namespace attest::diagnosis {
namespace {

/// Where nothing is exchanged the model is the truth, and no wider than a few bounds.
TEST(BackwardModel, IsTheTruthWhereNothingIsExchanged) {
    std::vector<const char*> all(std::begin(lines), std::end(lines));
    all.insert(all.end(), std::begin(dropped_lines), std::end(dropped_lines));
    for (const char* line : all) {
        const BackwardEvidence e = evidence_of(parse_case(line), reference);
        EXPECT_TRUE(e.wrong.empty()) << line;
        Predicted plain = run_backward(*e.call, {});
        for (const Role role : gradient_roles)
            for (std::size_t n = 0; n < e.truth[role].size(); ++n) {
                const bound::ExpectedElement& t = e.truth[role][n];
                const Near x = plain[role][n];
                EXPECT_LE(std::abs(x.value - t.value), x.error + t.error) << line;
                EXPECT_LE(x.error, 40 * t.bound + 1e-30) << line << " " << name(role) << n;
            }
    }
}

TEST(DiagnoseBackward, NothingIsSaidOfARightOne) {
    EXPECT_FALSE(diagnosis_of(reference).known);
}

TEST(DiagnoseBackward, FactorsAreNamedWithTheGradientsTheyAreSeenIn) {
    const auto times = [](std::vector<Role> roles, auto factor) {
        return changed([=](const Specification& s, GradientNumbers& v) {
            for (const Role role : roles)
                for (double& x : v[role]) x *= factor(s);
        });
    };
    const auto over_scale = [](const Specification& s) { return 1 / effective_scale(s.problem); };
    const Diagnosis keys = diagnosis_of(times({Role::d_k}, over_scale));
    EXPECT_EQ(keys.id, "unscaled");
    EXPECT_NE(keys.says.find("dK alone"), std::string::npos) << keys.says;
    const Diagnosis both = diagnosis_of(times({Role::d_q, Role::d_k}, over_scale));
    EXPECT_EQ(both.id, "unscaled");
    EXPECT_NE(both.says.find("(seen in dQ and dK)"), std::string::npos) << both.says;
    const auto two = [](const Specification&) { return 2.0; };
    EXPECT_EQ(diagnosis_of(times({Role::d_v}, two)).id, "twice");
    // No factor that has a name.
    EXPECT_EQ(diagnosis_of(times({Role::d_v}, [](const Specification&) { return 1.37; })).says,
              "gradients 1.37 times as large (seen in dV alone)");
}

// Of a mask that backward forgets dO.O is no sum of the weights that it has.
TEST(DiagnoseBackward, DeltaMayBeASumOfTheWeightsThatBackwardHas) {
    const auto forgetful = [](const Specification& s) {
        Specification other = s;
        other.problem.mask.causal = false;
        const BackwardCall call(other, other,
                                oracle::attend(s.problem, s.dialect, s.numerics, s.inputs));
        ModelSteps steps;
        steps.delta = [](const ModelRow& row) { return delta_of_weights(row, as_forward_kept); };
        GradientNumbers values;
        for (const auto& [role, elements] : run_backward(call, steps).of)
            for (const Near& x : elements) values[role].push_back(x.value);
        return values;
    };
    EXPECT_EQ(diagnosis_of(forgetful).id, "backward_causal_ignored");
}

// dS is linear in dO, and with a row's delta that of the row below its dQ is another one.
TEST(DiagnoseBackward, StepsAreNamed) {
    const auto without_mask = [](Specification& s) { s.problem.mask.causal = false; };
    // A causal mask that is forgotten with the LSE that forward stored is no softmax at all; with
    // its own LSE it is another problem's gradient. Both are one defect.
    EXPECT_EQ(diagnosis_of(of_other(without_mask, {Role::d_q, Role::d_k, Role::d_v})).id,
              "backward_causal_ignored");
    const auto uncapped = [](Specification& s) { s.problem.softcap = 0; };
    EXPECT_EQ(diagnosis_of(of_other(uncapped, {Role::d_q, Role::d_k, Role::d_v})).id,
              "backward_softcap_ignored");
    EXPECT_EQ(diagnosis_of(changed([](const Specification& s, GradientNumbers& v) {
                  const std::int64_t group = group_size(s.problem);
                  Specification last = s;
                  for (const Role role : {Role::d_o, Role::d_lse}) {
                      if (!last.inputs.has(role)) continue;
                      Tensor& x = last.inputs[role];
                      for (std::int64_t n = 0; n < x.size(); ++n)
                          if (law::index_of(x.shape(), n)[1] % group != group - 1) x.set(n, 0);
                  }
                  const GradientNumbers wrong = reference(last);
                  v[Role::d_k] = wrong.at(Role::d_k);
                  v[Role::d_v] = wrong.at(Role::d_v);
              })).id,
              "group_last");
    EXPECT_EQ(diagnosis_of(changed([](const Specification& s, GradientNumbers& v) {
                  if (s.problem.dim_qk == value_dim(s.problem))
                      std::swap(v[Role::d_k], v[Role::d_v]);
              })).id,
              "d_k_d_v_exchanged");
    EXPECT_EQ(diagnosis_of(changed([](const Specification&, GradientNumbers& v) {
                  for (double& x : v[Role::d_q]) x = std::nan("");
              })).id,
              "not_cleared");
}

// Sums of the distances' products, from dO of some rows alone, or of dS' own sums.
TEST(DiagnoseBackward, GradientsOfSlopesAreNamed) {
    const auto of_rows = [](auto counts) {
        return diagnosis_of(of_other(
            [counts](Specification& s) {
                Tensor& d_o = s.inputs[Role::d_o];
                for (std::int64_t n = 0; n < d_o.size(); ++n)
                    if (!counts(law::index_of(d_o.shape(), n), s.problem)) d_o.set(n, 0);
            },
            {Role::d_slopes}));
    };
    EXPECT_EQ(diagnosis_of(changed([](const Specification&, GradientNumbers& v) {
                  for (double& x : v[Role::d_slopes]) x = -x;
              })).id,
              "slopes_negated");
    const Diagnosis last =
        of_rows([](const Shape& at, const Problem& p) { return at[0] == p.batch - 1; });
    EXPECT_EQ(last.id, "slopes_last_sequence");
    EXPECT_NE(last.says.find("(seen in the slopes' gradient)"), std::string::npos) << last.says;
    EXPECT_EQ(of_rows([](const Shape& at, const Problem&) { return at[0] == 0; }).id,
              "slopes_first_sequence");
    EXPECT_EQ(of_rows([](const Shape& at, const Problem& p) { return at[2] == p.len_q - 1; }).id,
              "slopes_last_query");
}

// Another mask in dV, which no delta is in, whose O would be another one too; a factor it has not.
TEST(DiagnoseBackward, DropoutIsNamed) {
    const auto keeps = [&](auto drawn) {
        return diagnosis_of(of_other([=](Specification& s) { drawn(s); }, {Role::d_v}),
                            dropped_lines)
            .id;
    };
    EXPECT_FALSE(diagnosis_of(reference, dropped_lines).known);
    EXPECT_EQ(keeps([](Specification& s) {
                  const Problem other = law::reseeded(s.problem, 1);
                  s.inputs.put(Role::dropout_keep, law::drawn_keep(other));
              }),
              "dropout_next_seed");
    EXPECT_EQ(keeps([](Specification& s) {
                  Tensor& keep = s.inputs[Role::dropout_keep];
                  for (std::int64_t at = 0; at < keep.size(); ++at) {
                      const Shape place = law::index_of(keep.shape(), at);
                      keep.set_bits(at, keep.bits(keep.flat(place[0], 0, place[2], place[3])));
                  }
              }),
              "dropout_first_head");
    EXPECT_EQ(diagnosis_of(changed([](const Specification& s, GradientNumbers& v) {
                               for (double& x : v[Role::d_v]) x *= 1 - s.problem.dropout.p;
                           }),
                           dropped_lines)
                  .id,
              "dropout_factor_missing_in_dv");
}

// Weights that are off by so much would show in dV.
TEST(DiagnoseBackward, CoarseSumsOfOneGradientAreNoCoarseExp) {
    const Diagnosis d = diagnosis_of(changed([](const Specification&, GradientNumbers& v) {
        for (double& x : v[Role::d_q]) x *= 1 + 0x1p-11 * std::sin(1e3 * x);
    }));
    EXPECT_EQ(d.says.find("exponential"), std::string::npos) << d.says;
}

// dS, which is the gradient of the bias, times 1 - tanh^2 of the score that was capped before.
TEST(DiagnoseBackward, ASlopeOfWhatIsCappedIsNamed) {
    const auto twice = changed([](const Specification& s, GradientNumbers& v) {
        const Problem& p = s.problem;
        const auto at = [&](Role role, std::int64_t h, std::int64_t i, std::int64_t c) {
            return s.inputs[role].at(0, h, i, c);
        };
        for (std::size_t n = 0; n < v[Role::d_q].size(); ++n) {
            const auto flat = static_cast<std::int64_t>(n);
            const std::int64_t c = flat % p.dim_qk, i = flat / p.dim_qk % p.len_q;
            const std::int64_t h = flat / p.dim_qk / p.len_q;
            v[Role::d_q][n] = 0;
            for (std::int64_t j = 0; j < p.len_kv; ++j) {
                double x = 0;
                for (std::int64_t d = 0; d < p.dim_qk; ++d)
                    x += effective_scale(p) * at(Role::q, h, i, d) * at(Role::k, h, j, d);
                x = p.softcap * std::tanh(x / p.softcap) + at(Role::mask, h, i, j);
                const double t = std::tanh(x / p.softcap);
                const double ds =
                    v[Role::d_mask][static_cast<std::size_t>((h * p.len_q + i) * p.len_kv + j)];
                if (ds != 0)
                    v[Role::d_q][n] += effective_scale(p) * ds * (1 - t * t) * at(Role::k, h, j, c);
            }
        }
    });
    const char* capped[] = {"b1 hq2 hkv2 tq3 tk5 d4 softcap 0.5 mask additive f32 grad",
                            "b1 hq2 hkv2 tq4 tk3 d4 softcap 2 mask additive f32 grad seed 3"};
    EXPECT_EQ(diagnosis_of(twice, capped).id, "slope_of_capped_twice");
}

// Each by itself has a name; together they are another defect, and no one's.
TEST(DiagnoseBackward, TwoDefectsAreNotKnown) {
    EXPECT_FALSE(diagnosis_of(changed([](const Specification& s, GradientNumbers& v) {
                     for (double& x : v[Role::d_q]) x *= 2;
                     for (double& x : v[Role::d_k]) x /= effective_scale(s.problem);
                 })).known);
}

CounterexampleReport counterexample(const std::string& law, const std::string& id) {
    CounterexampleReport c;
    c.example.law = law;
    c.example.smallest = parse_case("b1 hq1 hkv1 tq1 tk1 d1 f32 grad");
    c.example.verdict.violation.emplace().problem = "sentence of " + law;
    c.diagnosis.backward = true;
    c.diagnosis.known = !id.empty();
    c.diagnosis.id = id;
    c.diagnosis.cases = 3;
    return c;
}

TEST(BackwardCause, WhatAgreesInTooFewElementsAndWhatStraysAreOneDefect) {
    std::vector<CounterexampleReport> all{counterexample("reference.gradients", "delta_omitted"),
                                          counterexample("gradients.linear", ""),
                                          counterexample("gradients.empty", "")};
    all[2].example.outcome = worker::Outcome::crash;
    EXPECT_EQ(group_causes(all).size(), 3u);
    all[0].diagnosis.id = "value_strides";
    all[1].diagnosis.fits = {"value_strides"};
    EXPECT_EQ(group_causes(all).size(), 1u);
    // Forward's mask is another defect than backward's, whatever their names.
    all.push_back(counterexample("reference.output", "value_strides"));
    all[3].diagnosis.backward = false;
    EXPECT_EQ(group_causes(all).size(), 2u);
}

// Where both passes compute the same wrong thing, calls that forward answers rightly are no
// evidence that backward is wrong alone.
TEST(BackwardCause, WhatForwardIsFoundToComputeBackwardDoesNotComputeAlone) {
    const auto named = [](const std::string& id, const std::string& in_forward) {
        Explanation e;
        e.id = id;
        e.says = "what " + id + " is";
        e.in_forward = in_forward;
        return e;
    };
    const auto causes_of = [&](const std::string& in_forward) {
        std::vector<CounterexampleReport> all{counterexample("reference.output", "alibi_negated"),
                                              counterexample("reference.gradients", "first"),
                                              counterexample("gradients.linear", "")};
        all[0].diagnosis.backward = false;
        all[0].diagnosis.says = "what forward computes";
        all[1].diagnosis.also = {named("backward_alibi", in_forward)};
        all[2].diagnosis.fits_in_forward = {in_forward};
        const std::size_t causes = group_causes(all).size();
        return std::pair(causes, all[1].diagnosis.says);
    };
    EXPECT_EQ(causes_of("alibi_negated"),
              std::pair(std::size_t{1}, std::string("what forward computes")));
    EXPECT_EQ(causes_of("alibi_ignored").first, 3u);
}

TEST(BackwardCause, WhatHasNoNameInEitherPassIsOneCause) {
    std::vector<CounterexampleReport> all{counterexample("reference.output", ""),
                                          counterexample("reference.gradients", "")};
    all[0].diagnosis.backward = false;
    EXPECT_EQ(group_causes(all).size(), 1u);
}

}  // namespace
}  // namespace attest::diagnosis
