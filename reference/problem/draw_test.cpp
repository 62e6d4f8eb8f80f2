#include "reference/problem/draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "reference/problem/inputs.hpp"
#include "reference/problem/rows_test.hpp"

namespace attest {
namespace {

class EveryKind : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Kinds, EveryKind, testing::Range(0, value_kind_count),
                         [](const auto& kind) {
                             return std::string(name(static_cast<ValueKind>(kind.param)));
                         });

TEST_P(EveryKind, shrinking_a_length_leaves_every_other_value_alone) {
    const Case large = with_kind(
        parse_case("b3 hq4 hkv2 tq9 tk13 d6 mask additive sink alibi cache 4 grad seed 5"),
        GetParam());
    const TensorSet whole = make_inputs(large);
    for (const char* change : {"batch", "len_q", "len_kv", "heads"}) {
        Case small = large;
        Problem& p = small.problem;
        if (std::string_view("batch") == change) p.batch = 2;
        if (std::string_view("len_q") == change) p.len_q = 7, p.cache.len = 6;
        if (std::string_view("len_kv") == change) p.len_kv = 11, p.cache.len = 2;
        if (std::string_view("heads") == change) p.heads_q = 2, p.heads_kv = 1;
        const TensorSet part = make_inputs(small);
        for (const Role role : {Role::q, Role::k, Role::v, Role::mask, Role::sinks, Role::d_o}) {
            const Shape& s = part[role].shape();
            for (std::int64_t b = 0; b < s[0]; ++b)
                for (std::int64_t h = 0; h < s[1]; ++h)
                    for (std::int64_t t = 0; t < s[2]; ++t)
                        for (std::int64_t c = 0; c < s[3]; ++c)
                            ASSERT_EQ(part[role].at(b, h, t, c), whole[role].at(b, h, t, c))
                                << change << ' ' << name(role);
        }
    }
}

TEST_P(EveryKind, is_finite_in_every_format_with_finite_f16_scores) {
    for (const Precision format : all_formats)
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            Case c = with_kind(parse_case("b1 hq2 hkv1 tq24 tk40"), GetParam());
            c.problem.dim_qk = seed % 2 == 0 ? 1 : 16;
            c.problem.format_q = c.problem.format_kv = c.problem.format_o = format;
            c.values.seed = seed;
            const TensorSet inputs = make_inputs(c);
            for (const Role role : {Role::q, Role::k, Role::v})
                for (const double x : inputs[role].to_doubles()) ASSERT_TRUE(std::isfinite(x));
            double largest = 0, largest_sum = 0;
            for (std::int64_t h = 0; h < 2; ++h)
                for (std::int64_t i = 0; i < 24; ++i)
                    for (std::int64_t j = 0; j < 40; ++j) {
                        const auto q = row(c, inputs, Role::q, 0, h, i),
                                   k = row(c, inputs, Role::k, 0, 0, j);
                        double sum = 0, size = 0;
                        for (std::size_t x = 0; x < q.size(); ++x) {
                            sum += q[x] * k[x];
                            size += std::fabs(q[x] * k[x]);
                        }
                        largest = std::max(largest, effective_scale(c.problem) * std::fabs(sum));
                        largest_sum = std::max(largest_sum, size);
                    }
            // The bounds' own precondition (a quarter of the largest f32), and f16's range.
            ASSERT_LE(largest_sum, traits(Precision::f32).max_finite / 4);
            if (format == Precision::f16) {
                ASSERT_LE(largest, traits(Precision::f16).max_finite);
            }
        }
}

/// Different seeds, heads and batches differ; the kind's own repetitions excepted.
TEST_P(EveryKind, draws_anew_for_every_seed_and_head) {
    Case c = with_kind(parse_case("b2 hq2 hkv2 tq4 tk4 d8"), GetParam());
    const TensorSet first = make_inputs(c);
    c.values.seed = 1;
    const TensorSet second = make_inputs(c);
    for (const Role role : {Role::q, Role::k, Role::v}) {
        EXPECT_NE(first[role], second[role]) << name(role);
        EXPECT_NE(row(c, first, role, 0, 0, 1), row(c, first, role, 0, 1, 1)) << name(role);
        EXPECT_NE(row(c, first, role, 0, 0, 1), row(c, first, role, 1, 0, 1)) << name(role);
    }
}

/// The scores scale q.k of one head, row by row.
std::vector<std::vector<double>> scores(const Case& c) {
    const TensorSet inputs = make_inputs(c);
    std::vector<std::vector<double>> all;
    for (std::int64_t i = 0; i < c.problem.len_q; ++i) {
        const auto q = row(c, inputs, Role::q, 0, 0, i);
        auto& line = all.emplace_back();
        for (std::int64_t j = 0; j < c.problem.len_kv; ++j) {
            const auto k = row(c, inputs, Role::k, 0, 0, j);
            double sum = 0;
            for (std::size_t x = 0; x < q.size(); ++x) sum += q[x] * k[x];
            line.push_back(effective_scale(c.problem) * sum);
        }
    }
    return all;
}

double deviation(const Case& c) {
    double square = 0, count = 0;
    for (const auto& line : scores(c))
        for (const double s : line) square += s * s, count += 1;
    return std::sqrt(square / count);
}

TEST(Kinds, logits_have_their_size) {
    const std::map<std::string, double> sizes = {
        {"normal", 1}, {"logit50", 50}, {"logit1e3", 1e3}, {"logit1e4", 1e4}};
    for (const auto& [kind, size] : sizes)
        for (const char* d : {"d8", "d128"}) {
            // 64 rows of nearly independent squares of deviation sqrt(2): 0.15 is 4 deviations
            // of their root mean square; the seed is fixed, so it holds always or never.
            const Case c = parse_case("tq64 tk64 " + std::string(d) + " bf16 values " + kind);
            EXPECT_NEAR(deviation(c) / size, 1, 0.15) << kind << d;
        }
}

TEST(Kinds, are_what_their_names_say) {
    const auto at = [](const char* kind, const char* rest) {
        return parse_case("tq16 tk16 d8 " + std::string(rest) + " values " + kind + " seed 3");
    };
    for (const auto& line : scores(at("negative_logits", "f16")))
        for (const double s : line) EXPECT_LT(s, -10);
    for (const auto& line : scores(at("one_hot", "f32"))) {
        int dominant = 0;
        for (const double s : line) dominant += s > 15;
        EXPECT_LE(dominant, 16);
    }
    const Case constant = at("const_v", "bf16");
    const TensorSet inputs = make_inputs(constant);
    for (std::int64_t t = 1; t < 16; ++t)
        EXPECT_EQ(row(constant, inputs, Role::v, 0, 0, t), row(constant, inputs, Role::v, 0, 0, 0));
    const Case ties = at("ties", "f16");
    const TensorSet tied = make_inputs(ties);
    std::set<std::vector<double>> distinct;
    for (std::int64_t t = 0; t < 16; ++t) distinct.insert(row(ties, tied, Role::k, 0, 0, t));
    EXPECT_LE(distinct.size(), 4u);
    for (const double x : make_inputs(at("small_int", "f16"))[Role::k].to_doubles()) {
        EXPECT_EQ(x, std::round(x));
        EXPECT_LE(std::fabs(x), 3);
    }
}

/// One_hot: on some seed the query's own key wins, on others a displaced one; never all the same.
TEST(Kinds, one_hot_displaces_the_winning_key) {
    std::set<std::size_t> winners;
    for (int seed = 0; seed < 20; ++seed) {
        const auto all =
            scores(parse_case("tq32 tk32 d32 values one_hot seed " + std::to_string(seed)));
        const auto& line = all[5];
        winners.insert(
            static_cast<std::size_t>(std::max_element(line.begin(), line.end()) - line.begin()));
    }
    EXPECT_GE(winners.size(), 3u);
}

TEST(Kinds, ramps_climb_in_channel_zero) {
    for (const char* kind : {"ascending", "descending"}) {
        const Case c = parse_case("tq2 tk40 d4 values " + std::string(kind));
        const TensorSet inputs = make_inputs(c);
        const double sign = kind[0] == 'a' ? 1 : -1;
        for (std::int64_t t = 1; t < 40; ++t)
            EXPECT_GT(sign * row(c, inputs, Role::k, 0, 0, t)[0],
                      sign * row(c, inputs, Role::k, 0, 0, t - 1)[0]);
        EXPECT_GT(row(c, inputs, Role::q, 0, 0, 0)[0], 0);
    }
}

TEST(Kinds, tiny_reaches_subnormals_of_every_format_and_is_not_all_zero) {
    for (const Precision format : all_formats) {
        bool subnormal = false;
        for (std::uint64_t seed = 0; seed < 30; ++seed) {
            Case c = parse_case("tq4 tk4 d8 values tiny");
            c.problem.format_q = c.problem.format_kv = format;
            c.values.seed = seed;
            double largest = 0;
            for (const double x : make_inputs(c)[Role::v].to_doubles())
                largest = std::max(largest, std::fabs(x));
            EXPECT_GT(largest, 0);
            subnormal = subnormal || largest < std::ldexp(1.0, traits(format).exponent_min);
        }
        EXPECT_TRUE(subnormal) << name(format);
    }
}

}  // namespace
}  // namespace attest
