#include <gtest/gtest.h>

#include <set>

#include "reference/problem/counter.hpp"
#include "reference/problem/feature.hpp"
#include "reference/problem/generators_test.hpp"
#include "reference/problem/refusal_test.hpp"
#include "reference/problem/text.hpp"

namespace attest {
namespace {

TEST(Line, prints_what_differs_from_the_defaults) {
    Problem p;
    EXPECT_EQ(print(p), "b1 hq1 hkv1 tq1 tk1 d1 f32");
    p = {.batch = 2, .heads_q = 8, .heads_kv = 2, .len_q = 128, .len_kv = 160, .dim_qk = 64};
    p.mask.causal = true;
    p.format_q = p.format_kv = p.format_o = Precision::f16;
    EXPECT_EQ(print(p), "b2 hq8 hkv2 tq128 tk160 d64 causal f16");
}

TEST(Line, prints_every_field) {
    const std::string lines[] = {
        "b2 hq4 hkv2 tq4 tk9 d8 dv16 causal window 3 -1 mask bool shared batch,queries lens_q 3,4 "
        "lens_kv 7,9 scale 0.21 softcap 30 sink alibi rope half base 5e+05 dims 4 offset 7 "
        "dropout 0.1 seed 7 cache 5 page 2 rotated splits 3 layout_q bthd pad 3 offset 5 layout_o "
        "bhdt f16 kv bf16 out f32 no_lse grad",
        "b1 hq1 hkv1 tq5 tk6 d2 mask additive shared heads docs_q 2,3 docs_kv 0,6 f64",
        "b2 hq1 hkv1 tq2 tk3 d2 mask additive shared batch,queries,keys f32",
    };
    EXPECT_EQ(print(parse_problem(lines[2])), lines[2]);
    EXPECT_EQ(print(parse_problem(lines[1])),
              "b1 hq1 hkv1 tq5 tk6 d2 mask additive docs_q 2,3 docs_kv 0,6 f64");
    EXPECT_EQ(print(parse_problem(lines[0])), lines[0]);
    EXPECT_EQ(print(parse_problem("d2 rope half offset 1")),
              "b1 hq1 hkv1 tq1 tk1 d2 rope half offset 1 f32");
    EXPECT_EQ(print(parse_problem("b3 tq2 tk5 d2 cache 3 ring f32")),
              "b3 hq1 hkv1 tq2 tk5 d2 cache 3 ring f32");
}

TEST(Line, reads_fields_in_any_order_and_defaults_left_out) {
    EXPECT_EQ(parse_problem("f16 causal d64 tk160 tq128 hkv2 hq8 b2"),
              parse_problem("b2 hq8 hkv2 tq128 tk160 d64 causal f16"));
    EXPECT_EQ(parse_problem("causal"), parse_problem("b1 hq1 hkv1 tq1 tk1 d1 causal f32"));
    EXPECT_EQ(parse_problem(" \t tq2   tk3 "), parse_problem("tq2 tk3"));
    EXPECT_EQ(parse_problem("d4 scale 0.5"), parse_problem("d4")) << "1/sqrt(4) is the default";
    EXPECT_EQ(parse_problem("d4 dv4 dropout 0 seed 9"), parse_problem("d4"));
    EXPECT_EQ(parse_problem("d4 rope half dims 4"), parse_problem("d4 rope half"));
    EXPECT_EQ(parse_problem("mask bool shared batch,heads,queries,keys"),
              parse_problem("mask bool"));
    EXPECT_EQ(parse_problem("b2 tq3 tk4 lens_q 3,3 lens_kv 4,4"), parse_problem("b2 tq3 tk4"));
}

TEST(Line, carries_the_values_of_a_case) {
    const std::string line =
        "b1 hq1 hkv1 tq2 tk2 d1 f32 values ties seed 18446744073709551615 q zeros k ones v "
        "[1,-0.5]";
    const Case c = parse_case(line);
    EXPECT_EQ(print(c), line);
    EXPECT_EQ(c.values.kind, ValueKind::ties);
    EXPECT_EQ(c.values.tensors.at(Role::v).values, (std::vector<double>{1, -0.5}));
    EXPECT_EQ(parse_case("tq2 tk2 v [ 1, -0.5 ] q drawn"), parse_case("tq2 tk2 v [1,-0.5]"));
    EXPECT_EQ(print(parse_case("tk0 k []")), "b1 hq1 hkv1 tq1 tk0 d1 f32 k []");
    EXPECT_EQ(parse_case("causal values normal seed 0"), parse_case("causal"));
}

RC_GTEST_PROP(LineLaw, a_canonical_problem_reads_back, ()) {
    const Problem p = *canonical_problem();
    RC_ASSERT(parse_problem(print(p)) == p);
}

RC_GTEST_PROP(LineLaw, canonical_is_idempotent_and_keeps_the_line, ()) {
    const Problem p = *any_problem();
    RC_ASSERT(!find_contradiction(p));
    RC_ASSERT(canonical(canonical(p)) == canonical(p));
    RC_ASSERT(print(p) == print(canonical(p)));
    RC_ASSERT(!find_contradiction(canonical(p)));
    // Folding changes no tensor, but that lengths which are all full are not handed over.
    const std::set<Role> lengths = {Role::lens_q, Role::lens_kv, Role::positions};
    for (std::size_t i = 0; i < role_count; ++i) {
        const auto role = static_cast<Role>(i);
        if (lengths.count(role) != 0) continue;
        RC_ASSERT(shape_of(p, role) == shape_of(canonical(p), role));
    }
    RC_ASSERT(effective_scale(p) == effective_scale(canonical(p)));
}

RC_GTEST_PROP(LineLaw, a_case_reads_back, ()) {
    const Case c = *any_case();
    RC_ASSERT(parse_case(print(c)) == c);
}

RC_GTEST_PROP(LineLaw, a_decimal_reads_back, (std::uint64_t bits)) {
    for (const double x :
         {std::bit_cast<double>(bits),
          std::ldexp(1.0 + counter_uniform(bits, 0, 0), static_cast<int>(bits % 2099) - 1074)}) {
        if (std::isnan(x)) continue;
        RC_ASSERT(parse_decimal(decimal(x)) == x);
        RC_ASSERT(parse_hex_real(hex_real(x)) == x);
    }
}

struct LineRefusal {
    const char* line;
    const char* says;
};

TEST(LineErrors, name_the_place_and_the_remedy) {
    const LineRefusal refusals[] = {
        {"b1 hq8 hkv3 tq128 d64 causal f16",
         "this is not a problem: hkv3 does not divide hq8\n"
         "b1 hq8 hkv3 tq128 d64 causal f16\n"
         "       ^^^^\n"
         "heads_q must be a multiple of heads_kv: 1, 2, 4 or 8"},
        {"tq4 causl f16",
         "this is not a problem: unknown word causl; did you mean causal?\n"
         "tq4 causl f16\n"
         "    ^^^^^\n"
         "such as: b2 hq8 hkv2 tq128 tk160 d64 causal f16"},
        {"tq4 scale fast",
         "this is not a problem: fast is not a number\n"
         "tq4 scale fast\n"
         "          ^^^^\n"
         "a decimal number, such as 0.125"},
        {"tq4 scale",
         "this is not a problem: scale lacks its value\n"
         "tq4 scale\n"
         "    ^^^^^\n"
         "a decimal number follows, such as 0.125"},
        {"tq4 tq5",
         "this is not a problem: tq5 comes after another len_q\n"
         "tq4 tq5\n"
         "    ^^^\n"
         "say it once"},
        {"b2 lens_q 1,2,3",
         "this is not a problem: lens_q has 3 lengths for b2\n"
         "b2 lens_q 1,2,3\n"
         "   ^^^^^^^^^^^^\n"
         "write one length a sequence, separated by commas"},
        {"b2 rope halff",
         "this is not a problem: halff is not known; did you mean half?\n"
         "b2 rope halff\n"
         "        ^^^^^\n"
         "one of interleaved, half"},
        {"d4 q zeros", nullptr},
        {"",
         "this is not a problem: the line is empty\n\n^\n"
         "such as: b2 hq8 hkv2 tq128 tk160 d64 causal f16"},
        {"b99999999999999999999", nullptr},
        {"mask none", nullptr},
        {"rope none", nullptr},
    };
    for (const LineRefusal& r : refusals) {
        const std::string said = refusal([&] { parse_problem(r.line); });
        EXPECT_NE(said, "") << r.line;
        if (r.says != nullptr) {
            EXPECT_EQ(said, r.says);
        }
    }
}

TEST(LineErrors, values_must_fit_their_tensor_and_format) {
    EXPECT_EQ(refusal([] { parse_case("tk3 v [1,2]"); }),
              "this is not a case: v has 2 values\n"
              "tk3 v [1,2]\n"
              "    ^^^^^^^\n"
              "its shape [1, 1, 3, 1] has 3");
    EXPECT_EQ(refusal([] { parse_case("f16 q [0.1]"); }),
              "this is not a case: 0.1 in q is not a number of f16\n"
              "f16 q [0.1]\n"
              "    ^^^^^^^\n"
              "the nearest is 0.0999755859375");
    EXPECT_NE(refusal([] { parse_case("q [nan]"); }), "");
    EXPECT_NE(refusal([] { parse_case("q [1"); }), "");
    EXPECT_NE(refusal([] { parse_case("q explicit_values"); }), "");
}

TEST(LineErrors, long_lines_are_shown_around_the_place) {
    const std::string line = "v [" + std::string(500, '1') + ",x]";
    const std::string said = refusal([&] { parse_case(line); });
    EXPECT_LT(said.size(), 400u);
    EXPECT_NE(said.find("..."), said.npos);
    EXPECT_EQ(refusal([] { parse_case("b\x1b[31m"); }).find('\x1b'), std::string::npos);
}

TEST(RequireValid, shows_the_printed_line) {
    Problem p = parse_problem("hq8 hkv2");
    p.heads_kv = 3;
    EXPECT_EQ(refusal([&] { require_valid(p); }),
              "this is not a problem: hkv3 does not divide hq8\n"
              "b1 hq8 hkv3 tq1 tk1 d1 f32\n"
              "       ^^^^\n"
              "heads_q must be a multiple of heads_kv: 1, 2, 4 or 8");
}

TEST(Features, are_those_in_use) {
    EXPECT_EQ(features_of(Problem{}), FeatureSet(Feature::lse));
    const Problem p = parse_problem(
        "b2 hq4 hkv2 tq4 tk9 d8 dv16 causal window 3 -1 mask additive lens_q 3,4 lens_kv 7,9 scale "
        "0.21 softcap 30 sink alibi rope half dropout 0.1 cache 5 page 2 rotated splits 3 layout_q "
        "bthd "
        "f16 "
        "kv bf16 grad lse_grad");
    using enum Feature;
    EXPECT_EQ(features_of(p),
              FeatureSet(causal, window, lens_q, lens_kv, mask_additive, softcap, sink, alibi, rope,
                         dropout, gqa, dim_v, scale, cache, paged, splits, layout, lse,
                         mixed_formats, keys_rotated, d_lse));
    for (int i = 0; i < feature_count; ++i) {
        const auto feature = static_cast<Feature>(i);
        EXPECT_EQ(parse_feature(name(feature)), feature);
    }
    EXPECT_EQ(parse_feature("speed"), std::nullopt);
}

}  // namespace
}  // namespace attest
