// Bound (s) of the gradients against a backward kernel in float: no kernel of the declared rounding
// violates it, it is sharper than (a), and it sees roundings that (a) cannot.

#include "reference/oracle/gradient_structure.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/oracle/emulated_backward.hpp"
#include "reference/oracle/gradients.hpp"
#include "reference/oracle/random_problem.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

/// A case in bf16 or f16 without RoPE.
RandomCase half_gradient_case(std::uint64_t number) {
    RandomCase c = random_gradient_case(number, 60, 32);
    Problem& p = c.tried.problem;
    p.rope = {};
    p.cache.keys_rotated = false;
    p.format_q = p.format_kv = p.format_o = number % 2 == 0 ? Precision::bf16 : Precision::f16;
    return c;
}

struct StructureTally {
    std::int64_t elements = 0, claimed = 0, violated = 0, violated_a = 0;
    double worst = 0;
    std::vector<double> sharpness;  ///< (s) over (a)

    void add(const std::vector<double>& observed, const std::vector<bound::ExpectedElement>& by_s,
             const std::vector<bound::ExpectedElement>& by_a, Precision format) {
        ASSERT_EQ(observed.size(), by_s.size());
        const auto disagrees = [&](std::size_t x, const bound::ExpectedElement& e) {
            return std::isfinite(e.bound) &&
                   bound::judge(observed[x], e, format) == bound::Agreement::disagrees;
        };
        for (std::size_t x = 0; x < observed.size(); ++x) {
            ++elements;
            violated_a += disagrees(x, by_a[x]);
            if (!std::isfinite(by_s[x].bound)) continue;
            ++claimed;
            violated += disagrees(x, by_s[x]);
            worst = std::max(worst, bound::error_ratio(observed[x], by_s[x], format));
            if (by_a[x].bound > 0) sharpness.push_back(by_s[x].bound / by_a[x].bound);
        }
    }
    double median() {
        std::sort(sharpness.begin(), sharpness.end());
        return sharpness.empty() ? 1 : sharpness[sharpness.size() / 2];
    }
};

StructureTally structured(std::uint64_t number, BackwardDefect defect, double factor = 1) {
    const RandomCase c = half_gradient_case(number);
    const Problem& p = c.tried.problem;
    TensorSet inputs = make_inputs(c.tried);
    Emulation how;
    how.round_weights = true;
    Numerics numerics = declared(how);
    numerics.gradient_structure = true;
    const Observed forward = emulate(c.tried, c.dialect, inputs, how);
    const Backward seen = emulate_backward(c.tried, c.dialect, inputs, how, defect);
    const auto a = attend_gradients(p, c.dialect, numerics, inputs);
    const auto put = [&](Role role, const std::vector<double>& numbers) {
        Tensor& tensor = inputs.put(role, Tensor(type_of(p, role), shape_of(p, role).value()));
        for (std::size_t at = 0; at < numbers.size(); ++at)
            tensor.set(static_cast<std::int64_t>(at), numbers[at]);
    };
    Problem with_lse = p;
    with_lse.want_lse = true;
    put(Role::o, forward.output);
    inputs.put(Role::lse,
               Tensor(type_of(with_lse, Role::lse), shape_of(with_lse, Role::lse).value()));
    for (std::size_t at = 0; at < forward.lse.size(); ++at)
        inputs[Role::lse].set(static_cast<std::int64_t>(at), forward.lse[at]);
    auto s = attend_gradient_structure(p, c.dialect, numerics, inputs);
    EXPECT_TRUE(s.has_value());
    for (auto* gradient : {&s->d_q, &s->d_k, &s->d_v})
        for (bound::ExpectedElement& e : *gradient) e.bound *= factor;
    StructureTally tally;
    tally.add(seen.d_q, s->d_q, a.d_q, p.format_q);
    tally.add(seen.d_k, s->d_k, a.d_k, p.format_kv);
    tally.add(seen.d_v, s->d_v, a.d_v, p.format_kv);
    if (defect == BackwardDefect::none && factor == 1) {
        EXPECT_EQ(tally.violated, 0) << number << ": " << print(c.tried) << " " << tally.worst;
    }
    return tally;
}

TEST(gradient_structure, no_kernel_of_the_declared_rounding_violates_it) {
    StructureTally total;
    for (std::uint64_t number = 5000; number < 6500; ++number) {
        StructureTally t = structured(number, BackwardDefect::none);
        total.elements += t.elements;
        total.claimed += t.claimed;
        total.worst = std::max(total.worst, t.worst);
        total.sharpness.insert(total.sharpness.end(), t.sharpness.begin(), t.sharpness.end());
    }
    EXPECT_GT(total.claimed, total.elements * 8 / 10);
    EXPECT_GT(total.claimed, 500000);
    EXPECT_LT(total.median(), 0.01);
    std::printf(
        "(s) of gradients: %lld elements, %lld claimed, worst %.3f, median of (s)/(a) %.2g\n",
        static_cast<long long>(total.elements), static_cast<long long>(total.claimed), total.worst,
        total.median());
}

TEST(gradient_structure, a_tenth_of_the_bound_is_violated) {
    std::int64_t violated = 0;
    for (std::uint64_t number = 5000; number < 5300; ++number)
        violated += structured(number, BackwardDefect::none, 0.1).violated;
    EXPECT_GT(violated, 0);
}

TEST(gradient_structure, sees_roundings_that_bound_a_cannot) {
    for (const BackwardDefect defect :
         {BackwardDefect::weights_truncated, BackwardDefect::scores_unrounded}) {
        std::int64_t by_s = 0, by_a = 0;
        for (std::uint64_t number = 5000; number < 5300; ++number) {
            const StructureTally t = structured(number, defect);
            by_s += t.violated > 0;
            by_a += t.violated_a > 0;
        }
        EXPECT_GT(by_s, by_a + 100) << static_cast<int>(defect);
        std::printf("defect %d: (s) %lld, (a) %lld of 300\n", static_cast<int>(defect),
                    static_cast<long long>(by_s), static_cast<long long>(by_a));
    }
}

TEST(gradient_structure, is_not_claimed_where_it_is_not_declared) {
    const RandomCase c = half_gradient_case(5001);
    const TensorSet inputs = make_inputs(c.tried);
    Numerics numerics;
    EXPECT_FALSE(attend_gradient_structure(c.tried.problem, c.dialect, numerics, inputs));
    numerics.gradient_structure = true;
    numerics.gradient_weights = numerics.gradient_scores = NumberFormat::f32;
    EXPECT_FALSE(attend_gradient_structure(c.tried.problem, c.dialect, numerics, inputs));
    numerics.gradient_weights = NumberFormat::same;
    Problem turned = c.tried.problem;
    turned.rope.style = RopeStyle::half;
    EXPECT_FALSE(attend_gradient_structure(turned, c.dialect, numerics, inputs));
}

}  // namespace
}  // namespace attest::oracle
