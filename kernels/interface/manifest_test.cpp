// Manifests are read strictly, and say where they are wrong.

#include "kernels/interface/manifest.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "reference/problem/errors.hpp"

namespace attest::kernel {
namespace {

Manifest parse(const std::string& json) {
    return parse_manifest(json, "./libmine.so");
}

std::string error_of(const std::string& json) {
    try {
        parse(json);
    } catch (const BadInput& error) {
        std::string text = error.what();
        if (!error.details().empty()) text += " | " + error.details().back();
        return text;
    }
    return "";
}

/// The required members and one more.
std::string with(const std::string& member) {
    return R"({"name":"mine","version":"2.1","formats":["f32"],)" + member + "}";
}

TEST(Manifest, DefaultsAreTheFirstWords) {
    const Manifest m = parse(R"({"name": "mine", "version": "2.1", "formats": ["f16", "bf16"]})");
    EXPECT_EQ(m.name, "mine");
    EXPECT_EQ(m.version, "2.1");
    EXPECT_EQ(m.formats, (std::vector<Formats>{Precision::f16, Precision::bf16}));
    EXPECT_EQ(m.memory, Memory::host);
    EXPECT_FALSE(m.simulated);
    EXPECT_EQ(m.dialect, Dialect{});
    EXPECT_EQ(m.numerics, Numerics{});
    EXPECT_EQ(m.takes, Takes{});
}

TEST(Manifest, EveryWordIsRead) {
    const Manifest m = parse(with(
        R"("memory":"cuda","simulated":true,"features":["causal","gqa","lse"],)"
        R"("dialect":{"causal":"top_left","empty_row":"refuse","softcap":"after_bias",)"
        R"("window_ends":"exclusive","lse_base":2,"nonfinite":"unspecified","empty_lse":"inf"},)"
        R"("numerics":{"accumulate":"f64","weights":"bf16","output":"same","exp_ulp":0.98,)"
        R"("tile":64,"sum_chunk":32,"sum_weights":"rounded",)"
        R"("deterministic":true,"batch_invariant":true,)"
        R"("gradient_weights":"bf16","gradient_scores":"f16",)"
        R"("gradient_structure":true,"deterministic_backward":true,)"
        R"("flush_subnormals":true,"matrix_unit":true},"gradients":["v","k","q"])"));
    EXPECT_EQ(m.gradients, (std::vector{Role::d_v, Role::d_k, Role::d_q}));
    EXPECT_EQ(m.memory, Memory::cuda);
    EXPECT_TRUE(m.simulated);
    EXPECT_EQ(m.features, FeatureSet(Feature::causal, Feature::gqa, Feature::lse));
    const Dialect dialect{CausalAlignment::top_left, EmptyRow::refuse, SoftcapPlace::after_bias,
                          WindowEnds::exclusive,     LseBase::two,     Nonfinite::unspecified,
                          EmptyLse::infinity};
    EXPECT_EQ(m.dialect, dialect);
    const Numerics numerics{.accumulate = NumberFormat::f64,
                            .weights = NumberFormat::bf16,
                            .output = NumberFormat::same,
                            .exp_ulp = 0.98,
                            .tile = 64,
                            .sum_chunk = 32,
                            .sum_weights = SumWeights::rounded,
                            .deterministic = true,
                            .batch_invariant = true,
                            .gradient_weights = NumberFormat::bf16,
                            .gradient_scores = NumberFormat::f16,
                            .gradient_structure = true,
                            .deterministic_backward = true,
                            .flush_subnormals = true,
                            .matrix_unit = true};
    EXPECT_EQ(m.numerics, numerics);
    const Manifest again = parse(to_json(m));
    EXPECT_EQ(to_json(again), to_json(m));
    EXPECT_EQ(again.numerics, m.numerics);
    EXPECT_EQ(again.dialect, m.dialect);
}

TEST(Manifest, NothingIsAlwaysThereThatIsNeverAskedFor) {
    const auto always = [](const std::string& takes) {
        return error_of(R"({"name":"x","version":"1","formats":["f32"],"takes":)" + takes + "}");
    };
    EXPECT_NE(always(R"({"always":["causal"]})").find("takes.always names causal, which features"),
              std::string::npos);
    EXPECT_EQ(always(R"({"always":["layout"],"orders":["bthd"]})"), "");
    EXPECT_EQ(always(R"({"always":["gqa"],"group":[2,4]})"), "");
    EXPECT_EQ(always(R"({"always":["dim_v"],"dims":[[192,128]]})"), "");
}

TEST(Manifest, OneFormatAloneIsNotMixed) {
    const auto listing = [](const char* formats) {
        return std::string(R"({"name":"x","version":"1","features":["mixed_formats"],"formats":)") +
               formats + R"(,"takes":{"always":["mixed_formats"]}})";
    };
    EXPECT_NE(error_of(listing(R"(["f32"])")).find("one format alone is listed"),
              std::string::npos);
    EXPECT_EQ(error_of(listing(R"(["f32","f16"])")), "");
    EXPECT_EQ(error_of(listing(R"(["f32 kv f16"])")), "");
}

TEST(Manifest, GradientsAreListed) {
    EXPECT_EQ(parse(with(R"("gradients":["q","mask","sinks","slopes"])")).gradients,
              (std::vector{Role::d_q, Role::d_mask, Role::d_sinks, Role::d_slopes}));
    EXPECT_NE(error_of(with(R"("gradients":["q","q"])")).find("twice"), std::string::npos);
    EXPECT_NE(
        error_of(with(R"("gradients":["alibi"])")).find("one of q, k, v, mask, sinks, slopes"),
        std::string::npos);
    const std::string d_lse = R"("features":["lse","d_lse"])";
    EXPECT_NE(error_of(with(d_lse)).find("d_lse without lse, or without gradients"),
              std::string::npos);
    EXPECT_NE(error_of(with(R"("features":["d_lse"],"gradients":["q"])")).find("name all three"),
              std::string::npos);
    Problem given;
    given.want_grad = given.lse_grad = true;
    EXPECT_FALSE(refusal(parse(with(d_lse + R"(,"gradients":["q"])")), given));
    EXPECT_EQ(refusal(parse(with(R"("features":["lse"],"gradients":["q"])")), given),
              "its manifest does not list the feature d_lse");
    Problem p;
    p.want_grad = true;
    EXPECT_TRUE(refusal(parse(with(R"("features":["lse"])")), p));
    EXPECT_FALSE(refusal(parse(with(R"("features":["lse"],"gradients":["v"])")), p));
}

TEST(Manifest, TheLseBaseMayBeWrittenAsANumberOrAText) {
    EXPECT_EQ(parse(with(R"("dialect":{"lse_base":"2"})")).dialect.lse_base, LseBase::two);
    EXPECT_EQ(parse(with(R"("dialect":{"lse_base":"e"})")).dialect.lse_base, LseBase::e);
}

TEST(Manifest, WhatBeginsWithXIsItsAuthorsOwn) {
    const Manifest m = parse(
        with(R"("features":["causal","x_telepathy"],"x_note":[1,{}],"dialect":{"x_mood":"calm"})"));
    EXPECT_EQ(m.features, FeatureSet(Feature::causal));
}

TEST(Manifest, SourcesAreNamesAndDigests) {
    const std::string digest(64, 'a');
    const Manifest m = parse(with(R"("sources":{"a.cubin":")" + digest + R"("})"));
    EXPECT_EQ(m.sources, (std::map<std::string, std::string>{{"a.cubin", digest}}));
    const std::string longer = "\"" + digest + "a\"", other = "\"" + std::string(64, 'G') + "\"";
    for (const std::string& wrong : {longer, other, std::string("7")})
        EXPECT_THROW(parse(with(R"("sources":{"a.cubin":)" + wrong + "}")), BadInput) << wrong;
}

TEST(Manifest, WhatIsNotListedIsRefused) {
    Problem p{.len_kv = 2, .want_lse = false};
    const Manifest bare = parse(R"({"name": "x", "version": "1", "formats": ["f32"]})");
    EXPECT_EQ(refusal(bare, p), std::nullopt);
    EXPECT_EQ(bare.features, FeatureSet{});
    const auto refused = [&](const Problem& asked) { return refusal(bare, asked).value_or(""); };
    Problem other = p;
    other.want_lse = true;
    EXPECT_EQ(refused(other), "its manifest does not list the feature lse");
    other = p;
    other.layout_k.order = AxisOrder::bthd;
    EXPECT_EQ(refused(other), "its manifest does not list the feature layout");
    other = p;
    other.scale = 0.5;
    EXPECT_EQ(refused(other), "its manifest does not list the feature scale");
    other = p;
    other.dim_v = 3;
    EXPECT_EQ(refused(other), "its manifest does not list the feature dim_v");
    other = p;
    other.cache = {.present = true, .len = 1};
    EXPECT_EQ(refused(other), "its manifest does not list the feature cache");
    other = p;
    other.format_q = other.format_kv = other.format_o = Precision::f16;
    EXPECT_EQ(refused(other), "its manifest does not list the format f16");
}

TEST(Manifest, RowsFarApartAreNotCopiedToADevice) {
    Problem far;
    far.len_kv = 2;
    far.want_lse = false;
    far.layout_k.row_pad = std::int64_t{1} << 31;
    EXPECT_EQ(refusal(parse(with(R"("features":["layout"])")), far), std::nullopt);
    const auto no = refusal(parse(with(R"("features":["layout"],"memory":"cuda")")), far);
    EXPECT_NE(no.value_or("").find("device"), std::string::npos);
}

TEST(Manifest, TheManualNamesEveryFeature) {
    std::string words = "list:";
    for (int f = 0; f < feature_count; ++f) words.append(" ").append(name(static_cast<Feature>(f)));
    std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "README.md");
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(page.find("| `features` | " + words + " |"), page.npos) << words;
}

TEST(Manifest, ErrorsPointAtThePlace) {
    try {
        parse("{\"name\": \"mine\",\n \"version\": \"1\", \"formats\": [\"f33\"]}");
        FAIL();
    } catch (const BadInput& error) {
        EXPECT_STREQ(error.what(),
                     "./libmine.so: manifest:2:30: formats is \"f33\"; did you mean f32?");
        ASSERT_EQ(error.details().size(), 3u);
        EXPECT_EQ(error.details()[1].find('^'), error.details()[0].find("\"f33\""));
        EXPECT_EQ(error.details()[2], "one of f64, f32, f16, bf16");
    }
}

TEST(Manifest, WhatIsWrongIsSaid) {
    const std::string at = "./libmine.so: manifest:1:50: ";
    EXPECT_EQ(error_of(with(R"("memry":"host")")),
              at + "no key memry is known; did you mean memory? | one of name, version, formats, "
                   "memory, simulated, features, gradients, takes, dialect, numerics, sources");
    EXPECT_EQ(error_of(with(R"("memory":"gpu")")),
              "./libmine.so: manifest:1:59: memory is \"gpu\" | one of host, cuda");
    EXPECT_EQ(
        error_of(with(R"("features":["casual"])")),
        "./libmine.so: manifest:1:62: features is \"casual\"; did you mean causal? | one "
        "of causal, window, lens_q, lens_kv, mask_bool, mask_additive, documents, softcap, sink, "
        "alibi, rope, dropout, gqa, dim_v, scale, cache, paged, splits, layout, lse, "
        "mixed_formats, keys_rotated, d_lse, ring, negative_scale");
    EXPECT_EQ(error_of(with(R"("features":["cache","ring"])")),
              "./libmine.so: manifest:1:61: features names ring without cache, or without window | "
              "a ring is a cache of the keys that a window reaches: name all three");
    EXPECT_EQ(error_of(with(R"("features":["paged"])")),
              "./libmine.so: manifest:1:61: features names paged without cache | pages are a kind "
              "of cache: name both");
    EXPECT_EQ(error_of(with(R"("takes":{"batch":[2,0]})")),
              "./libmine.so: manifest:1:67: no problem has 0 of these | from 1 to 2147483648");
    EXPECT_EQ(error_of(with(R"("takes":{"dim_qk":{"most":0}})")),
              "./libmine.so: manifest:1:68: no problem has 0 of these | from 1 to 65536");
    EXPECT_EQ(error_of(with(R"("takes":{"dims":[[64,0]]})")),
              "./libmine.so: manifest:1:67: no problem has 0 of these | from 1 to 65536");
    EXPECT_EQ(error_of(with(R"("takes":{"batch":100000000})")),
              "./libmine.so: manifest:1:58: the smallest problem of these has 1e+08 scores | fewer "
              "sequences, heads, queries or keys: attest makes none so large");
    EXPECT_EQ(
        error_of(with(R"("numerics":{"tile":-1})")),
        "./libmine.so: manifest:1:69: numerics.tile is -1 | a whole number, 0 where nothing is "
        "declared");
    EXPECT_EQ(error_of(with(R"("numerics":{"exp_ulp":0})")),
              "./libmine.so: manifest:1:72: numerics.exp_ulp is 0 | a number above 0, such as 2 or "
              "0.98");
    EXPECT_NE(error_of(with(R"("numerics":{"exp_ulp":1e300})")).find("at most 4194304"),
              std::string::npos);
    EXPECT_NE(error_of(with(R"("numerics":{"epsilon":2})")).find("at most 1"), std::string::npos);
    EXPECT_EQ(error_of(with(R"("numerics":{"deterministic":"yes"})")),
              "./libmine.so: manifest:1:78: numerics.deterministic is \"yes\" | true or false");
    EXPECT_EQ(
        error_of(with(R"("dialect":{"cusal":"top_left"})")),
        "./libmine.so: manifest:1:61: no key dialect.cusal is known; did you mean causal? | one "
        "of causal, empty_row, softcap, window_ends, lse_base, nonfinite, empty_lse");
    EXPECT_EQ(
        error_of(R"({"version":"1","formats":["f32"]})"),
        "./libmine.so: manifest:1:1: name is missing | name, version and formats are required");
    EXPECT_EQ(
        error_of(R"({"name":"x","version":"1"})"),
        "./libmine.so: manifest:1:1: formats is missing | at least one of f64, f32, f16, bf16");
    EXPECT_EQ(error_of(R"({"name":"x","version":"1","formats":["f32","f32"]})"),
              "./libmine.so: manifest:1:44: formats names this twice | remove one of the two");
}

TEST(Manifest, WhatIsNotJsonIsRefused) {
    for (const char* text : {"", "{", "[]", "null", R"({"name":"x","name":"y"})", "{}}", "{'a':1}",
                             "\xff\xfe", R"({"name":"x","version":"1","formats":{}})"}) {
        EXPECT_THROW(parse(text), BadInput) << text;
    }
}

}  // namespace
}  // namespace attest::kernel
