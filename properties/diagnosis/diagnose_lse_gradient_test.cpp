// What backward may make of the gradient of the log-sum-exp, each under its name.

#include <gtest/gtest.h>

#include <cmath>

#include "properties/diagnosis/backward_actor_test.hpp"
#include "properties/law/compare.hpp"

namespace attest::diagnosis {
namespace {

// dLSE of another row, or times something, is the gradients of another question.
TEST(DiagnoseBackward, GradientsOfTheLseAreNamed) {
    const auto given = [](auto change) {
        const auto ask = [change](Specification& s) {
            if (s.inputs.has(Role::d_lse)) change(s.problem, s.inputs);
        };
        return diagnosis_of(of_other(ask, {std::begin(gradient_roles), std::end(gradient_roles)}));
    };
    const auto times = [&](double factor) {
        return given([factor](const Problem&, TensorSet& inputs) {
                   Tensor& x = inputs[Role::d_lse];
                   for (std::int64_t n = 0; n < x.size(); ++n) x.set(n, factor * x.get(n));
               })
            .id;
    };
    EXPECT_EQ(times(0), "lse_gradient_ignored");
    EXPECT_EQ(times(-1), "lse_gradient_negated");
    EXPECT_EQ(times(std::log(2.0)), "lse_gradient_times_ln2");
    EXPECT_EQ(given([](const Problem& p, TensorSet& inputs) {
                  std::vector<std::int64_t> above{0};
                  for (std::int64_t i = 1; i < p.len_q; ++i) above.push_back(i - 1);
                  inputs[Role::d_lse] = law::gather(inputs[Role::d_lse], 2, above);
              }).id,
              "lse_gradient_row_above_1");
    EXPECT_EQ(given([](const Problem&, TensorSet& inputs) {
                  Tensor& x = inputs[Role::d_lse];
                  for (std::int64_t n = 0; n < x.size(); ++n)
                      x.set(n, round_to(x.get(n), Precision::bf16));
              }).id,
              "lse_gradient_bf16");
    const Diagnosis sinks = diagnosis_of(
        of_other([](Specification& s) { s.inputs.erase(Role::d_lse); }, {Role::d_sinks}));
    EXPECT_EQ(sinks.id, "lse_gradient_not_in_sinks");
}

}  // namespace
}  // namespace attest::diagnosis
