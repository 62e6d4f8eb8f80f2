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
    EXPECT_EQ(m.formats, (std::vector{Precision::f16, Precision::bf16}));
    EXPECT_EQ(m.memory, Memory::host);
    EXPECT_FALSE(m.simulated);
    EXPECT_FALSE(m.features_declared);
    EXPECT_EQ(m.dialect, Dialect{});
    EXPECT_EQ(m.numerics, Numerics{});
    EXPECT_EQ(m.limits, Limits{});
}

TEST(Manifest, EveryWordIsRead) {
    const Manifest m = parse(
        with(R"("memory":"cuda","simulated":true,"features":["causal","gqa","lse"],)"
             R"("limits":{"dim_max":256,"len_max":9},)"
             R"("dialect":{"causal":"top_left","empty_row":"refuse","softcap":"after_bias",)"
             R"("window_ends":"exclusive","lse_base":2,"nonfinite":"unspecified"},)"
             R"("numerics":{"accumulate":"f64","weights":"bf16","output":"same","exp_ulp":0.98,)"
             R"("tile":64,"sum_chunk":32,"sum_weights":"rounded",)"
             R"("deterministic":true,"batch_invariant":true,)"
             R"("flush_subnormals":true,"matrix_unit":true})"));
    EXPECT_EQ(m.memory, Memory::cuda);
    EXPECT_TRUE(m.simulated);
    EXPECT_TRUE(m.features_declared);
    EXPECT_EQ(m.features, FeatureSet(Feature::causal, Feature::gqa, Feature::lse));
    EXPECT_EQ(m.limits, (Limits{.dim_max = 256, .len_max = 9}));
    const Dialect dialect{CausalAlignment::top_left, EmptyRow::refuse, SoftcapPlace::after_bias,
                          WindowEnds::exclusive,     LseBase::two,     Nonfinite::unspecified};
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
                            .flush_subnormals = true,
                            .matrix_unit = true};
    EXPECT_EQ(m.numerics, numerics);
    const Manifest again = parse(to_json(m));
    EXPECT_EQ(to_json(again), to_json(m));
    EXPECT_EQ(again.numerics, m.numerics);
    EXPECT_EQ(again.dialect, m.dialect);
}

TEST(Manifest, TheLseBaseMayBeWrittenAsANumberOrAText) {
    EXPECT_EQ(parse(with(R"("dialect":{"lse_base":"2"})")).dialect.lse_base, LseBase::two);
    EXPECT_EQ(parse(with(R"("dialect":{"lse_base":"e"})")).dialect.lse_base, LseBase::e);
}

TEST(Manifest, FeaturesOfALaterVersionAreKept) {
    const Manifest m = parse(with(R"("features":["causal","telepathy"])"));
    EXPECT_EQ(m.features, FeatureSet(Feature::causal));
    EXPECT_EQ(m.features_unknown, std::vector<std::string>{"telepathy"});
    EXPECT_NE(to_json(m).find("telepathy"), std::string::npos);
}

TEST(Manifest, TheManualNamesEveryFeature) {
    std::string words = "list:";
    for (int f = 0; f < feature_count; ++f)
        words.append(" ").append(name(static_cast<Feature>(f)));
    std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "README.md");
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(page.find("| `features` | " + words + " |"), page.npos) << words;
}

TEST(Manifest, ErrorsPointAtThePlace) {
    try {
        parse("{\"name\": \"mine\",\n \"version\": \"1\", \"formats\": [\"f33\"]}");
        FAIL();
    } catch (const BadInput& error) {
        EXPECT_STREQ(error.what(), "./libmine.so: manifest:2:30: formats is \"f33\"");
        ASSERT_EQ(error.details().size(), 3u);
        EXPECT_EQ(error.details()[1].find('^'), error.details()[0].find("\"f33\""));
        EXPECT_EQ(error.details()[2], "one of f64, f32, f16, bf16");
    }
}

TEST(Manifest, WhatIsWrongIsSaid) {
    const std::string at = "./libmine.so: manifest:1:50: ";
    EXPECT_EQ(error_of(with(R"("memry":"host")")),
              at + "no key memry is known; did you mean memory? | one of name, version, formats, "
                   "memory, simulated, features, limits, dialect, numerics");
    EXPECT_EQ(error_of(with(R"("memory":"gpu")")),
              "./libmine.so: manifest:1:59: memory is \"gpu\" | one of host, cuda");
    EXPECT_EQ(
        error_of(with(R"("numerics":{"tile":-1})")),
        "./libmine.so: manifest:1:69: numerics.tile is -1 | a whole number, 0 where nothing is "
        "declared");
    EXPECT_EQ(error_of(with(R"("numerics":{"exp_ulp":0})")),
              "./libmine.so: manifest:1:72: numerics.exp_ulp is 0 | a number above 0, such as 2 or "
              "0.98");
    EXPECT_EQ(error_of(with(R"("numerics":{"deterministic":"yes"})")),
              "./libmine.so: manifest:1:78: numerics.deterministic is \"yes\" | true or false");
    EXPECT_EQ(
        error_of(with(R"("dialect":{"cusal":"top_left"})")),
        "./libmine.so: manifest:1:61: no key dialect.cusal is known; did you mean causal? | one "
        "of causal, empty_row, softcap, window_ends, lse_base, nonfinite");
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
