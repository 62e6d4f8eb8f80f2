#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reference/problem/digest.hpp"
#include "reference/problem/generators_test.hpp"
#include "reference/problem/given_inputs.hpp"
#include "reference/problem/inputs.hpp"
#include "reference/problem/refusal_test.hpp"
#include "reference/problem/rows_test.hpp"

namespace attest {
namespace {

RC_GTEST_PROP(InputsLaw, have_the_shapes_and_types_of_the_problem, ()) {
    const Case c = *any_case();
    const TensorSet inputs = make_inputs(c);
    const std::set<Role> outputs = {Role::o,     Role::lse,    Role::d_q,     Role::d_k,
                                    Role::d_v,   Role::d_mask, Role::d_sinks, Role::dropout_keep,
                                    Role::k_new, Role::v_new,  Role::d_slopes};
    for (std::size_t i = 0; i < role_count; ++i) {
        const auto role = static_cast<Role>(i);
        const auto shape = shape_of(c.problem, role);
        RC_ASSERT(inputs.has(role) == (shape.has_value() && outputs.count(role) == 0));
        if (!inputs.has(role)) continue;
        RC_ASSERT(inputs[role].shape() == *shape);
        RC_ASSERT(inputs[role].type() == type_of(c.problem, role));
    }
    RC_ASSERT(make_inputs(c) == inputs);
}

/// Paging changes no value: it names pages, each for one sequence; keys nobody may read are NaN.
RC_GTEST_PROP(InputsLaw, paged_and_contiguous_caches_hold_the_same_rows, ()) {
    Case paged = *any_case();
    RC_PRE(paged.problem.cache.page_size > 0);
    Case flat = paged;
    flat.problem.cache.page_size = 0;
    const TensorSet in_pages = make_inputs(paged), in_line = make_inputs(flat);
    RC_ASSERT(in_pages[Role::q] == in_line[Role::q]);
    const Problem& p = flat.problem;
    const std::int64_t size = paged.problem.cache.page_size;
    std::int64_t named = 0;
    std::set<double> physical;
    for (std::int64_t b = 0; b < p.batch; ++b) {
        const std::int64_t keys =
            p.mask.lens_kv.empty() ? p.len_kv : p.mask.lens_kv[static_cast<std::size_t>(b)];
        for (std::int64_t page = 0; page * size < p.len_kv; ++page) {
            const double at = in_pages[Role::block_table].at(b, page, 0, 0);
            RC_ASSERT((at >= 0) == (page * size < keys));
            if (at >= 0) ++named, physical.insert(at);
        }
        for (std::int64_t h = 0; h < p.heads_kv; ++h)
            for (std::int64_t t = 0; t < p.len_kv; ++t) {
                const auto line = row(flat, in_line, Role::k, b, h, t);
                for (const double x : line) RC_ASSERT(std::isnan(x) == (t >= keys));
                if (t < keys) RC_ASSERT(row(paged, in_pages, Role::k, b, h, t) == line);
            }
    }
    RC_ASSERT(static_cast<std::int64_t>(physical.size()) == named);
    const auto shape = *cache_shape_of(paged.problem, Role::k);
    RC_ASSERT(shape[0] >= named + 2);
}

TEST(Fills, are_simple_numbers) {
    const Case c = parse_case("hq2 hkv2 tq3 tk9 d2 f16 q zeros k ones v index");
    const TensorSet inputs = make_inputs(c);
    for (const double x : inputs[Role::q].to_doubles()) EXPECT_EQ(x, 0);
    for (const double x : inputs[Role::k].to_doubles()) EXPECT_EQ(x, 1);
    EXPECT_EQ(row(c, inputs, Role::v, 0, 0, 0), (std::vector<double>{1, 4}));
    EXPECT_EQ(row(c, inputs, Role::v, 0, 0, 7), (std::vector<double>{8, 3}));
    EXPECT_EQ(row(c, inputs, Role::v, 0, 1, 0), (std::vector<double>{6, 1}));
    const Case a = parse_case("tk2 d2 k alternating v [1,2,3,-4]");
    EXPECT_EQ(make_inputs(a)[Role::k].to_doubles(), (std::vector<double>{1, -1, -1, 1}));
    EXPECT_EQ(make_inputs(a)[Role::v].to_doubles(), (std::vector<double>{1, 2, 3, -4}));
}

TEST(Given, stand_where_they_are_and_the_rest_is_drawn) {
    const Case own = parse_case("b2 hq2 hkv2 tq5 tk5 d4 mask bool alibi sink seed 1");
    const Case other = parse_case("b2 hq2 hkv2 tq5 tk5 d4 mask bool alibi sink seed 2");
    const TensorSet drawn = make_inputs(own), all = make_inputs(other);
    EXPECT_EQ(make_inputs(own, {}), drawn);
    for (const Role role :
         {Role::q, Role::k, Role::v, Role::mask, Role::alibi_slopes, Role::sinks}) {
        TensorSet given, expected = drawn;
        Tensor tensor = all[role];
        tensor.set(0, tensor.get(0) == 0 ? 1 : 0);
        given.put(role, tensor);
        expected[role] = tensor;
        EXPECT_EQ(make_inputs(own, given), expected) << name(role);
        given.put(role, Tensor(tensor.type(), {2, 2, 3, 7}));
        EXPECT_ANY_THROW(make_inputs(own, given)) << name(role);
    }
    TensorSet foreign;
    foreign.put(Role::block_table, Tensor(ElementType::i32, {2, 1, 1, 1}));
    EXPECT_EQ(make_inputs(own, foreign), drawn);  // the problem has none
}

TEST(Masks, leave_about_seven_of_ten_visible) {
    const Case c = parse_case("b2 hq4 hkv4 tq64 tk64 mask bool seed 2");
    double visible = 0;
    for (const double x : make_inputs(c)[Role::mask].to_doubles()) visible += x;
    // 32768 draws, deviation 0.0025: 0.02 is 8 deviations.
    EXPECT_NEAR(visible / (8 * 64 * 64), 0.7, 0.02);
    const Case additive = parse_case("tq64 tk64 mask additive shared batch,heads f16");
    double hidden = 0;
    for (const double x : make_inputs(additive)[Role::mask].to_doubles()) hidden += std::isinf(x);
    EXPECT_NEAR(hidden / (64 * 64), 0.2, 0.05);
}

TEST(Masks, have_a_finite_floor_on_one_seed_in_four) {
    int floored = 0, rows = 0;
    for (int seed = 0; seed < 400; ++seed) {
        const std::string line = "tq4 tk6 mask additive f16 seed " + std::to_string(seed);
        const std::vector<double> biases = make_inputs(parse_case(line))[Role::mask].to_doubles();
        const double lowest = *std::min_element(biases.begin(), biases.end());
        if (lowest != -1e4 && lowest != -65504) continue;
        ++floored;
        for (auto row = biases.begin(); row != biases.end(); row += 6)
            rows += std::count(row, row + 6, lowest) == 6;
    }
    // 400 draws, deviation 8.7; 400 rows of a half each, deviation 10 and that of their number.
    EXPECT_NEAR(floored, 100, 50);
    EXPECT_NEAR(rows, 200, 130);
}

TEST(Extras, follow_their_formulas) {
    const TensorSet inputs =
        make_inputs(parse_case("hq4 hkv1 tq5 tk5 d2 alibi docs_q 2,3 docs_kv 2,3"));
    EXPECT_EQ(inputs[Role::alibi_slopes].to_doubles(),
              (std::vector<double>{0x1p-2, 0x1p-4, 0x1p-6, 0x1p-8}));
    EXPECT_EQ(inputs[Role::cu_seqlens_q].to_doubles(), (std::vector<double>{0, 2, 5}));
    const TensorSet cached =
        make_inputs(parse_case("b2 tq2 tk5 d2 cache 3 lens_q 2,1 lens_kv 4,5"));
    EXPECT_EQ(cached[Role::positions].to_doubles(), (std::vector<double>{2, 3, 4, 5}));
    EXPECT_EQ(cached[Role::lens_kv].to_doubles(), (std::vector<double>{4, 5}));
    double largest = 0;
    for (int seed = 0; seed < 30; ++seed)
        for (const double x :
             make_inputs(parse_case("hq4 hkv4 sink seed " + std::to_string(seed)))[Role::sinks]
                 .to_doubles())
            largest = std::max(largest, std::fabs(x));
    EXPECT_GT(largest, 8);
}

TEST(OutputGradients, are_dense_sparse_a_number_alone_or_one_number_everywhere) {
    std::map<std::string, int> seen;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        Case c = parse_case("b2 hq2 hkv1 tq8 tk8 d8 grad");
        c.values.seed = seed;
        const std::vector<double> all = make_inputs(c)[Role::d_o].to_doubles();
        const auto size = static_cast<std::int64_t>(all.size());
        const auto zeros = std::ranges::count(all, 0.0), ones = std::ranges::count(all, 1.0);
        ++seen[ones == size        ? "one number"
               : zeros == size - 1 ? "alone"
               : zeros > size / 2  ? "sparse"
                                   : "dense"];
    }
    // Five deviations of 400 draws.
    EXPECT_NEAR(seen["dense"], 240, 50);
    EXPECT_NEAR(seen["one number"], 80, 40);
    EXPECT_NEAR(seen["sparse"], 40, 30);
    EXPECT_NEAR(seen["alone"], 40, 30);
}

TEST(Inputs, refuse_what_cannot_be) {
    Case c = parse_case("tk3");
    c.values.tensors[Role::v] = {Fill::explicit_values, {1, 2}};
    EXPECT_EQ(refusal([&] { make_inputs(c); }),
              "this is not a case: v has 2 values\n"
              "b1 hq1 hkv1 tq1 tk3 d1 f32 v [1,2]\n"
              "                           ^^^^^^^\n"
              "its shape [1, 1, 3, 1] has 3");
    c.values.tensors = {{Role::o, {Fill::ones, {}}}};
    EXPECT_NE(refusal([&] { make_inputs(c); }), "");
    c = parse_case("hq2 hkv2");
    c.problem.heads_kv = 3;
    EXPECT_NE(refusal([&] { make_inputs(c); }), "");
}

/// Frozen, as the generator is: one number of each kind under one seed.
TEST(Inputs, are_the_same_on_every_machine) {
    std::string all;
    for (int kind = 0; kind < value_kind_count; ++kind)
        for (const Precision format : all_formats) {
            Case c = with_kind(
                parse_case("b2 hq2 hkv1 tq5 tk7 d6 mask additive sink alibi cache 2 page 3 "
                           "lens_kv 6,7 grad seed 9"),
                kind);
            c.problem.format_q = c.problem.format_kv = c.problem.format_o = format;
            const TensorSet inputs = make_inputs(c);
            for (std::size_t i = 0; i < role_count; ++i) {
                const auto role = static_cast<Role>(i);
                if (!inputs.has(role)) continue;
                const auto bytes = inputs[role].bytes();
                all += sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
            }
        }
    EXPECT_EQ(sha256_hex(all), "f1551809e52e90119ed6c86ed98939714704ec8e15256cb6f7a5c9fc1afa1077");
}

}  // namespace
}  // namespace attest
