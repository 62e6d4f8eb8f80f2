// Bound (a) against kernels of every structure: never violated by a correct one, violated by a
// defective one, and not so wide that a tenth of it would do.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/oracle/emulated_kernel.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/oracle/random_problem.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

struct CheckCount {
    std::int64_t elements = 0, claimed = 0, violated = 0, undecided = 0;
    double worst = 0;
    void add(double observed, bound::ExpectedElement expected, Precision format, double factor) {
        ++elements;
        expected.bound *= factor;
        if (!(expected.bound < infinite)) return;
        ++claimed;
        const bound::Agreement agreement = bound::judge(observed, expected, format);
        violated += agreement == bound::Agreement::disagrees ? 1 : 0;
        undecided += agreement == bound::Agreement::undecided ? 1 : 0;
        worst = std::max(worst, bound::error_ratio(observed, expected, format));
    }
};

/// Runs `cases` random kernels; with a defect, how many of them are caught is counted in `caught`.
CheckCount run(std::uint64_t first, std::uint64_t cases, EmulatedDefect defect, double factor,
               std::int64_t* caught = nullptr, bool lse_too = true) {
    CheckCount total;
    for (std::uint64_t number = first; number < first + cases; ++number) {
        const RandomCase c = random_case(number, 200, 64);
        const Emulation how = random_emulation(number);
        const TensorSet inputs = make_inputs(c.tried);
        const Problem& p = c.tried.problem;
        const bound::Expected e = attend(p, c.dialect, declared(how), inputs);
        const Observed seen = emulate(c.tried, c.dialect, inputs, how, defect);
        CheckCount count;
        for (std::size_t x = 0; x < seen.output.size(); ++x)
            count.add(seen.output[x], e.output[x], p.format_o, factor);
        const Precision lse_format = p.format_q == Precision::f64 ? Precision::f64 : Precision::f32;
        for (std::size_t x = 0; lse_too && x < seen.lse.size(); ++x)
            count.add(seen.lse[x], e.lse[x], lse_format, factor);
        if (defect == EmulatedDefect::none && factor == 1) {
            EXPECT_EQ(count.violated, 0) << number << ": " << print(c.tried) << " tile " << how.tile
                                         << " splits " << how.splits << " ratio " << count.worst;
        }
        if (caught != nullptr) *caught += count.violated > 0 ? 1 : 0;
        total.elements += count.elements;
        total.claimed += count.claimed;
        total.violated += count.violated;
        total.undecided += count.undecided;
        total.worst = std::max(total.worst, count.worst);
    }
    return total;
}

TEST(bound_a, no_correct_kernel_violates_it) {
    const CheckCount count = run(0, 3000, EmulatedDefect::none, 1);
    EXPECT_EQ(count.violated, 0);
    EXPECT_GT(count.elements, 150000);
    EXPECT_GT(count.claimed, count.elements * 95 / 100);
    std::printf("elements %lld claimed %lld undecided %lld worst %.3f\n",
                static_cast<long long>(count.elements), static_cast<long long>(count.claimed),
                static_cast<long long>(count.undecided), count.worst);
}

TEST(bound_a, a_tenth_of_it_is_violated) {
    EXPECT_GT(run(0, 1000, EmulatedDefect::none, 0.1).violated, 0);
}

// One large product and many below half its last bit: rounded to nearest each is lost in turn, cut
// off together they cost up to twice as much. The declaration is what makes the difference.
TEST(bound_a, a_matrix_unit_needs_its_own) {
    Case c;
    Problem& p = c.problem;
    p.len_kv = 1;
    p.dim_qk = 256;
    p.dim_v = 1;
    p.scale = 0x1p-10;
    p.splits = 1;
    TensorSet inputs = make_inputs(c);
    for (const Role role : {Role::q, Role::k}) {
        Tensor& x = inputs.put(role, Tensor(ElementType::f32, {1, 1, 1, 256}));
        for (std::int64_t n = 0; n < 256; ++n)
            x.set(n, n == 0 ? 1024.0 : role == Role::q ? 1.0 : 0x1p-3 * (1 - 0x1p-10));
    }
    Emulation how;
    how.unit_block = 16;
    const Observed seen = emulate(c, {}, inputs, how);
    Numerics plain = declared(how);
    plain.matrix_unit = false;
    const auto agreement = [&](const Numerics& numerics) {
        return bound::judge(seen.lse[0], attend(p, {}, numerics, inputs).lse[0], Precision::f32);
    };
    EXPECT_EQ(agreement(declared(how)), bound::Agreement::agrees);
    EXPECT_EQ(agreement(plain), bound::Agreement::disagrees);
}

// f16 ends at 65504: of a value, or a key, that may be twice as far from the mean of all nothing is
// claimed.
TEST(bound_a, nothing_is_claimed_where_what_is_centred_may_overflow) {
    const Case c = parse_case("b1 hq1 hkv1 tq1 tk2 d1 f32 q ones k ones v ones");
    Numerics values, keys;
    values.weights = keys.weights = NumberFormat::f16;
    values.centred_values = keys.centred_keys = true;
    for (const auto& [numerics, role] : {std::pair(values, Role::v), {keys, Role::k}})
        for (const auto& [largest, claimed] : {std::pair(30000.0, true), {40000.0, false}}) {
            TensorSet inputs = make_inputs(c);
            inputs[role].set(0, largest);
            if (role == Role::k) inputs[Role::q].set(0, 0x1p-10);
            EXPECT_EQ(std::isfinite(attend(c.problem, {}, numerics, inputs).output[0].bound),
                      claimed)
                << largest << (role == Role::k ? " key" : " value");
        }
}

// A step that is rounded coarser, and not declared, is beyond the bound; declared it is within it;
// coarser than declared it is beyond again. (no_correct_kernel_violates_it draws such kernels too.)
TEST(bound_a, a_step_of_its_own_needs_its_word) {
    using enum NumberFormat;
    Emulation steps[10], beyond[10];
    steps[0].scores = steps[1].query = steps[2].rotation = steps[3].bias = f16;
    beyond[0].scores = beyond[1].query = beyond[2].rotation = beyond[3].bias = bf16;
    steps[4].epsilon = 1e-3;
    beyond[4].epsilon = 1e-2;
    for (Emulation* how : {steps, beyond}) how[5].centred_keys = how[6].centred_values = true;
    for (int n : {5, 6}) steps[n].round_weights = beyond[n].round_weights = true;
    beyond[5].query = beyond[6].scores = bf16;
    steps[7].operands = steps[8].operands = Operands::tf32;
    steps[7].cut = true;
    beyond[7].operands = beyond[8].operands = Operands::bf16;
    for (Emulation* how : {steps, beyond}) how[9].splits = 3;
    steps[9].partials = f16;
    beyond[9].partials = bf16;
    for (std::size_t step = 0; step < std::size(steps); ++step) {
        std::int64_t undeclared = 0, more = 0;
        for (std::uint64_t number = 9000; number < 9300; ++number) {
            const RandomCase c = random_case(number, 60, 16);
            const Problem& p = c.tried.problem;
            if (p.format_q == Precision::f64 || p.format_kv == Precision::f64) continue;
            const TensorSet inputs = make_inputs(c.tried);
            const Numerics word = declared(steps[step]);
            Numerics plain = word;
            plain.scores = plain.query = plain.rotation = plain.bias = unrounded;
            plain.partials = unrounded;
            plain.operands = Operands::unrounded;
            plain.epsilon = 0;
            plain.centred_keys = plain.centred_values = false;
            const bound::Expected e = attend(p, c.dialect, word, inputs);
            const bound::Expected bare = attend(p, c.dialect, plain, inputs);
            const auto count = [&](const Emulation& how, const bound::Expected& allowed) {
                const Observed seen = emulate(c.tried, c.dialect, inputs, how);
                CheckCount all;
                for (std::size_t x = 0; x < seen.output.size(); ++x)
                    all.add(seen.output[x], allowed.output[x], p.format_o, 1);
                for (std::size_t x = 0; x < seen.lse.size(); ++x)
                    all.add(seen.lse[x], allowed.lse[x], Precision::f32, 1);
                return all;
            };
            const CheckCount with = count(steps[step], e);
            EXPECT_EQ(with.violated, 0) << step << ": " << print(c.tried) << " " << with.worst;
            undeclared += count(steps[step], bare).violated > 0;
            more += count(beyond[step], e).violated > 0;
        }
        EXPECT_GE(undeclared, 5) << step;
        EXPECT_GE(more, 5) << step;
        std::printf("step %zu: undeclared caught in %lld of 300, coarser than declared in %lld\n",
                    step, static_cast<long long>(undeclared), static_cast<long long>(more));
    }
}

// Keys that a finite number hides, a format's lowest number too, leave the others' bounds as they
// are.
TEST(bound_a, keys_far_below_cost_nothing) {
    for (const char* floor : {"-10000", "-1e+30", "-3.4028234663852886e+38"}) {
        const Case c = parse_case(std::string("b1 hq1 hkv1 tq4 tk16 d8 mask additive pattern "
                                              "left_pad tile 4 floor ") +
                                  floor + " f32 seed 5");
        const TensorSet inputs = make_inputs(c);
        Case hidden = c;
        hidden.problem.mask.tensor.floor = 0;
        const bound::Expected far = attend(c.problem, {}, {}, inputs);
        const bound::Expected none = attend(hidden.problem, {}, {}, make_inputs(hidden));
        const Observed seen = emulate(c, {}, inputs, {});
        for (std::size_t x = 0; x < seen.output.size(); ++x) {
            EXPECT_LT(far.output[x].bound, 4 * none.output[x].bound) << floor;
            EXPECT_EQ(bound::judge(seen.output[x], far.output[x], Precision::f32),
                      bound::Agreement::agrees)
                << floor;
        }
    }
}

TEST(bound_a, defects_violate_it) {
    struct Expectation {
        EmulatedDefect defect;
        std::int64_t least;  // of 400 cases
    };
    for (const auto& [defect, least] :
         {Expectation{EmulatedDefect::scale_off, 20},
          Expectation{EmulatedDefect::last_key_lost, 150},
          Expectation{EmulatedDefect::sum_in_bf16, 40}, Expectation{EmulatedDefect::exp_off, 20},
          Expectation{EmulatedDefect::rescale_lost, 40},
          Expectation{EmulatedDefect::truncated, 20}}) {
        std::int64_t caught = 0;
        run(5000, 400, defect, 1, &caught);
        EXPECT_GE(caught, least) << static_cast<int>(defect);
        std::printf("defect %d caught in %lld of 400\n", static_cast<int>(defect),
                    static_cast<long long>(caught));
    }
}

}  // namespace
}  // namespace attest::oracle
