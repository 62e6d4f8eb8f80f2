// Gradients against finite differences of the forward pass, across arithmetics, and their bound
// against a backward kernel in float.

#include "reference/oracle/gradients.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/oracle/emulated_backward.hpp"
#include "reference/oracle/random_problem.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

/// sum over rows of dO.O + dLSE LSE, in exact arithmetic; an LSE of -inf has no gradient.
double objective(const RandomCase& c, const TensorSet& inputs) {
    const bound::Expected e =
        attend(c.tried.problem, c.dialect, {}, inputs, Arithmetic::double_double);
    double total = 0;
    for (std::size_t x = 0; x < e.output.size(); ++x)
        total += inputs[Role::d_o].get(static_cast<std::int64_t>(x)) * e.output[x].value;
    for (std::size_t x = 0; inputs.has(Role::d_lse) && x < e.lse.size(); ++x)
        if (std::isfinite(e.lse[x].value))
            total += inputs[Role::d_lse].get(static_cast<std::int64_t>(x)) * e.lse[x].value;
    return total;
}

void expect_difference(const RandomCase& c, TensorSet& inputs, Role role,
                       const std::vector<bound::ExpectedElement>& gradient) {
    if (gradient.empty()) return;
    const std::string line = print(c.tried) + " " + std::string(name(role));
    const double step = 0x1p-13;  // truncation step^2, rounding 2^-53 / step: both near 1e-8
    for (std::int64_t flat = 0; flat < inputs[role].size(); flat += 1 + inputs[role].size() / 3) {
        const double x = inputs[role].get(flat);
        if (!std::isfinite(x)) continue;
        inputs[role].set(flat, x + step);
        const double up = inputs[role].get(flat), above = objective(c, inputs);
        inputs[role].set(flat, x - step);
        const double down = inputs[role].get(flat), below = objective(c, inputs);
        inputs[role].set(flat, x);
        const double difference = (above - below) / (up - down);
        const double value = gradient[static_cast<std::size_t>(flat)].value;
        EXPECT_NEAR(value, difference, 3e-5 * (1 + std::abs(value))) << line << " " << flat;
    }
}

TEST(gradients, are_the_slopes_of_the_forward_pass) {
    int compared = 0, slopes = 0, lses = 0;
    for (std::uint64_t number = 0; number < 250; ++number) {
        RandomCase c = random_gradient_case(number, 12, 8);
        Problem& p = c.tried.problem;
        p.format_q = p.format_kv = p.format_o = Precision::f64;
        c.tried.values.kind = ValueKind::normal;
        if (p.scale && std::abs(*p.scale) > 0.5) p.scale = 0.5;
        TensorSet inputs = make_inputs(c.tried);
        const bound::ExpectedGradients g = attend_gradients(p, c.dialect, {}, inputs);
        expect_difference(c, inputs, Role::q, g.d_q);
        expect_difference(c, inputs, Role::k, g.d_k);
        expect_difference(c, inputs, Role::v, g.d_v);
        expect_difference(c, inputs, Role::mask, g.d_mask);
        expect_difference(c, inputs, Role::alibi_slopes, g.d_slopes);
        // Sinks are stored in f32: their own step is checked through the sum below.
        compared += g.d_mask.empty() ? 0 : 1;
        slopes += g.d_slopes.empty() ? 0 : 1;
        lses += inputs.has(Role::d_lse) ? 1 : 0;
    }
    EXPECT_GT(compared, 10);
    EXPECT_GT(slopes, 10);
    EXPECT_GT(lses, 80);
}

TEST(gradients, of_a_sink_is_the_slope_of_its_share) {
    // Two keys and a sink, all of score 0: O = (v0 + v1) / 3, dO/dsink = -(v0 + v1)/9.
    RandomCase c;
    Problem& p = c.tried.problem;
    p.len_kv = 2;
    p.sink = p.want_grad = true;
    p.format_q = p.format_kv = p.format_o = Precision::f64;
    TensorSet inputs = make_inputs(c.tried);
    inputs[Role::q].set(0, 0);
    inputs[Role::v].set(0, 4);
    inputs[Role::v].set(1, 5);
    inputs[Role::d_o].set(0, 1);
    inputs[Role::sinks].set(0, 0);
    const bound::ExpectedGradients g = attend_gradients(p, {}, {}, inputs);
    EXPECT_NEAR(g.d_sinks[0].value, -1, 1e-15);
    EXPECT_NEAR(g.d_v[0].value, 1.0 / 3, 1e-15);
}

TEST(gradients, beside_an_open_row_nothing_is_claimed_of_its_keys) {
    // Two heads of two queries and a key, hidden from the last query of the first: what a softmax
    // of nothing is, NaN among it, is added to the key's sums of that head alone.
    RandomCase c;
    Problem& p = c.tried.problem;
    p.heads_q = p.heads_kv = 2;
    p.len_q = 2;
    p.want_grad = true;
    p.mask.tensor.kind = MaskKind::additive;
    TensorSet inputs = make_inputs(c.tried);
    for (std::int64_t x = 0; x < 4; ++x) inputs[Role::mask].set(x, x == 1 ? -INFINITY : 0);
    for (const EmptyRow policy : {EmptyRow::zeros, EmptyRow::nan, EmptyRow::refuse}) {
        const auto g = attend_gradients(p, {.empty_row = policy}, {}, inputs);
        const bool open = policy != EmptyRow::zeros;
        for (const auto* gradient : {&g.d_q, &g.d_k, &g.d_v, &g.d_mask}) {
            const std::size_t half = gradient->size() / 2;
            EXPECT_EQ(std::isinf((*gradient)[half - 1].bound), open);
            for (std::size_t x = half; x < 2 * half; ++x)
                EXPECT_TRUE(std::isfinite((*gradient)[x].bound));
        }
    }
}

struct GradientTally {
    std::int64_t elements = 0, certified = 0, violated = 0, claimed = 0;
    double worst = 0;
};

void agree(const std::vector<bound::ExpectedElement>& exact,
           const std::vector<bound::ExpectedElement>& other, const std::string& line,
           GradientTally& tally) {
    ASSERT_EQ(exact.size(), other.size());
    for (std::size_t x = 0; x < exact.size(); ++x) {
        ++tally.elements;
        if (!std::isfinite(exact[x].error) || !std::isfinite(other[x].error)) continue;
        ++tally.certified;
        const double distance = std::abs(exact[x].value - other[x].value);
        ASSERT_LE(distance, exact[x].error + other[x].error) << line << " " << x;
        if (distance > 0)
            tally.worst = std::max(tally.worst, distance / (exact[x].error + other[x].error));
    }
}

GradientTally against_exact(Arithmetic arithmetic, std::uint64_t first) {
    GradientTally tally;
    for (std::uint64_t number = first; number < first + 200; ++number) {
        const RandomCase c = random_gradient_case(number, 20, 16);
        const TensorSet inputs = make_inputs(c.tried);
        const Problem& p = c.tried.problem;
        const auto exact = attend_gradients(p, c.dialect, {}, inputs, Arithmetic::exact);
        const auto other = attend_gradients(p, c.dialect, {}, inputs, arithmetic);
        const std::string line = print(c.tried);
        agree(exact.d_q, other.d_q, line + " dq", tally);
        agree(exact.d_k, other.d_k, line + " dk", tally);
        agree(exact.d_v, other.d_v, line + " dv", tally);
        agree(exact.d_mask, other.d_mask, line + " dmask", tally);
        agree(exact.d_sinks, other.d_sinks, line + " dsinks", tally);
        agree(exact.d_slopes, other.d_slopes, line + " dslopes", tally);
        if (testing::Test::HasFatalFailure()) break;
    }
    return tally;
}

TEST(gradients, arithmetics_agree_within_their_errors) {
    for (const Arithmetic a :
         {Arithmetic::plain_double, Arithmetic::double_double, Arithmetic::filtered}) {
        const GradientTally t = against_exact(a, 100);
        EXPECT_GT(t.certified, t.elements * 8 / 10);
        std::printf("gradients: %lld elements, %lld certified, worst %.3g\n",
                    static_cast<long long>(t.elements), static_cast<long long>(t.certified),
                    t.worst);
    }
}

void judge_all(const std::vector<double>& observed,
               const std::vector<bound::ExpectedElement>& expected, Precision format, double factor,
               GradientTally& tally) {
    for (std::size_t x = 0; x < observed.size(); ++x) {
        ++tally.elements;
        bound::ExpectedElement e = expected[x];
        e.bound *= factor;
        if (!std::isfinite(e.bound)) continue;
        ++tally.claimed;
        tally.violated +=
            bound::judge(observed[x], e, format) == bound::Agreement::disagrees ? 1 : 0;
        tally.worst = std::max(tally.worst, bound::error_ratio(observed[x], e, format));
    }
}

GradientTally kernels(std::uint64_t cases, BackwardDefect defect, double factor,
                      std::int64_t* caught) {
    GradientTally total;
    for (std::uint64_t number = 3000; number < 3000 + cases; ++number) {
        RandomCase c = random_gradient_case(number, 60, 32);
        Problem& p = c.tried.problem;
        if (p.format_q == Precision::f64) p.format_q = p.format_kv = p.format_o = Precision::f32;
        TensorSet inputs = make_inputs(c.tried);
        // Of a large dLSE the errors are large, and all others small beside them.
        if (inputs.has(Role::d_lse) && number % 4 == 1)
            for (std::int64_t at = 0; at < inputs[Role::d_lse].size(); ++at)
                inputs[Role::d_lse].set(at, 1000 * inputs[Role::d_lse].get(at));
        Emulation how;
        how.round_weights = number % 2 == 0;
        how.rounded_ds = number % 4 == 0;
        constexpr Operands operands[] = {Operands::tf32, Operands::bf16, Operands::f16};
        if (number % 3 == 0) how.operands = operands[number / 3 % 3];
        how.cut = number % 2 == 0;
        constexpr NumberFormat heads[] = {NumberFormat::bf16, NumberFormat::f16};
        if (number % 5 == 0) how.gradient_heads = heads[number / 5 % 2];
        const Backward seen = emulate_backward(c.tried, c.dialect, inputs, how, defect);
        const auto g = attend_gradients(p, c.dialect, declared(how), inputs);
        GradientTally t;
        judge_all(seen.d_q, g.d_q, p.format_q, factor, t);
        judge_all(seen.d_k, g.d_k, p.format_kv, factor, t);
        judge_all(seen.d_v, g.d_v, p.format_kv, factor, t);
        judge_all(seen.d_mask, g.d_mask, p.format_q, factor, t);
        judge_all(seen.d_slopes, g.d_slopes, Precision::f32, factor, t);
        judge_all(seen.d_sinks, g.d_sinks, Precision::f32, factor, t);
        if (defect == BackwardDefect::none && factor == 1) {
            EXPECT_EQ(t.violated, 0) << print(c.tried) << " ratio " << t.worst;
        }
        if (caught != nullptr) *caught += t.violated > 0 ? 1 : 0;
        total.elements += t.elements;
        total.claimed += t.claimed;
        total.violated += t.violated;
        total.worst = std::max(total.worst, t.worst);
    }
    return total;
}

/// Cases in which ALiBi may reach keys ahead of a query.
std::int64_t slopes_ahead(std::uint64_t cases) {
    std::int64_t count = 0;
    for (std::uint64_t number = 3000; number < 3000 + cases; ++number) {
        const Problem p = random_gradient_case(number, 60, 32).tried.problem;
        count += p.alibi && !p.mask.causal && p.len_kv > 1 && p.mask.window.right != 0;
    }
    EXPECT_GT(count, 0);
    return count;
}

TEST(gradients, no_correct_kernel_violates_the_bound) {
    const GradientTally t = kernels(1000, BackwardDefect::none, 1, nullptr);
    EXPECT_EQ(t.violated, 0);
    EXPECT_GT(t.claimed, t.elements * 8 / 10);
    std::printf("backward: %lld elements, %lld claimed, worst %.3f\n",
                static_cast<long long>(t.elements), static_cast<long long>(t.claimed), t.worst);
}

TEST(gradients, a_tenth_of_the_bound_is_violated) {
    EXPECT_GT(kernels(300, BackwardDefect::none, 0.1, nullptr).violated, 0);
}

TEST(gradients, defects_violate_the_bound) {
    for (const BackwardDefect defect :
         {BackwardDefect::d_omitted, BackwardDefect::k_unscaled, BackwardDefect::q_scaled_twice,
          BackwardDefect::d_of_next_row, BackwardDefect::cap_slope_omitted,
          BackwardDefect::distance_signed, BackwardDefect::lse_ignored, BackwardDefect::lse_negated,
          BackwardDefect::lse_of_other_base}) {
        std::int64_t caught = 0;
        kernels(300, defect, 1, &caught);
        // Few cases have ALiBi, and fewer keys ahead of a query; of those a mask hides some, and
        // equal values leave no gradient.
        const bool rare = defect == BackwardDefect::distance_signed;
        EXPECT_GE(caught, rare ? slopes_ahead(300) / 4 : 30) << static_cast<int>(defect);
        std::printf("backward defect %d caught in %lld of 300\n", static_cast<int>(defect),
                    static_cast<long long>(caught));
    }
}

TEST(gradients, what_nothing_reaches_is_exactly_zero) {
    RandomCase c;
    Problem& p = c.tried.problem;
    p.len_q = 2;
    p.len_kv = 3;
    p.want_grad = true;
    p.mask.lens_kv = {0};
    bound::ExpectedGradients g = attend_gradients(p, {}, {}, make_inputs(c.tried));
    for (const bound::ExpectedElement& e : g.d_q)
        EXPECT_EQ(bound::judge(0, e, Precision::f32), bound::Agreement::agrees);
    for (const bound::ExpectedElement& e : g.d_k) {
        EXPECT_EQ(e.bound, 0);
        EXPECT_EQ(e.value, 0);
    }
}

// exp2(fma(S, log2 e, -round(L log2 e))) of S = L = -1e30 is 2^(4e22), and that times a dO of 0
// NaN.
TEST(gradients, claim_nothing_of_a_row_with_nothing_but_a_low_floor) {
    for (const char* d_o : {"", " d_o zeros"})
        for (const auto& [floor, promised] : {std::pair{"-65504", true}, {"-1e+30", false}}) {
            const Case c = parse_case(std::string("b1 hq1 hkv1 tq1 tk1 d1 mask additive floor ") +
                                      floor + " f32 grad seed 2 q zeros k zeros v ones" + d_o);
            TensorSet inputs = make_inputs(c);
            inputs[Role::mask].set(0, std::stod(floor));
            const auto g = attend_gradients(c.problem, {}, {}, inputs);
            for (const auto* gradient : {&g.d_q, &g.d_k, &g.d_v, &g.d_mask})
                EXPECT_EQ(gradient->at(0).bound < infinite, promised) << floor << d_o;
        }
}

}  // namespace
}  // namespace attest::oracle
