#include "ci/profile.hpp"

#include <gtest/gtest.h>

#include "reference/problem/errors.hpp"

namespace attest::ci {
namespace {

std::string profile_complaint(const std::string& json) {
    try {
        parse_profile(json, "p.json");
    } catch (const BadInput& error) {
        std::string all = error.what();
        for (const std::string& line : error.details()) all += "\n" + line;
        return all;
    }
    return "";
}

TEST(Profile, BuiltInOnesAreReadable) {
    const auto all = builtin_profiles();
    ASSERT_EQ(all.size(), 5u);
    EXPECT_EQ(all.front().profile.name, "quick");
    EXPECT_EQ(all.front().profile.reach, search::Profile().reach);
    for (const auto& [profile, summary] : all) {
        EXPECT_FALSE(summary.empty());
        EXPECT_FALSE(profile.reach.empty()) << profile.name;
        EXPECT_EQ(load_profile(profile.name).cases_per_law, profile.cases_per_law);
    }
}

TEST(Profile, MistakesPointAtThePlace) {
    EXPECT_EQ(profile_complaint(R"({"name":"x","version":1,"cases_per_law":10})"), "");
    EXPECT_NE(
        profile_complaint(R"({"name":"x","version":1})").find("needs the key \"cases_per_law\""),
        std::string::npos);
    const std::string zero = profile_complaint(R"({"name":"x","version":1,"cases_per_law":0})");
    EXPECT_TRUE(
        zero.starts_with("p.json:1:41: \"cases_per_law\" must be a whole number, at least 1"))
        << zero;
    EXPECT_NE(zero.find('^'), std::string::npos);
    for (const char* bad : {R"({"name":"x","version":1,"cases_per_law":1.5})",
                            R"({"name":"x","version":1,"cases_per_law":1,"len_mx":3})",
                            R"({"name":"x","version":1,"cases_per_law":1,"fails":["all"]})",
                            R"({"name":"x","name":"y","version":1,"cases_per_law":1})",
                            R"({"name":"x","version":1,"cases_per_law":1,"discard_max":2})",
                            R"({"name":"x","version":1,"cases_per_law":1,"reach":{"len_k":9}})",
                            R"({"name":"x","version":1,"cases_per_law":1,"reach":9})",
                            R"({"name":"x","version":1,"cases_per_law":1,"laws":["maskin.*"]})",
                            R"({"name":"x","version":1,"cases_per_law":1,"laws_excluded":["a.b"]})",
                            "{ \"name\": }", "[]", ""})
        EXPECT_TRUE(profile_complaint(bad).starts_with("p.json:1:"))
            << bad << ": " << profile_complaint(bad);
}

TEST(Profile, UnknownNamesAreSuggested) {
    try {
        load_profile("quik");
        FAIL();
    } catch (const BadInput& error) {
        EXPECT_STREQ(error.what(), "--profile quik: no such profile; did you mean quick?");
    }
}

}  // namespace
}  // namespace attest::ci
