#include <gtest/gtest.h>

#include "reference/problem/fields.hpp"
#include "reference/problem/generators_test.hpp"
#include "reference/problem/json.hpp"
#include "reference/problem/refusal_test.hpp"
#include "reference/problem/text.hpp"

namespace attest {
namespace {

TEST(CaseJson, holds_only_what_differs_with_keys_sorted) {
    EXPECT_EQ(to_json(Case{}), "{}");
    EXPECT_EQ(
        to_json(parse_case("tq2 causal q zeros k zeros v ones")),
        R"({"problem":{"causal":true,"len_q":2},"values":{"k":"zeros","q":"zeros","v":"ones"}})");
    EXPECT_EQ(to_json(parse_case(
                  "d4 scale 0.125 f16 kv f32 out f32 dropout 0.5 seed 12 window 3 -1 values "
                  "ties seed 7")),
              R"({"problem":{"dim_qk":4,"dropout":{"p":"0x1p-1","seed":"12"},"format_q":"f16",)"
              R"("scale":"0x1p-3","window":[3,-1]},"values":{"kind":"ties","seed":"7"}})");
    EXPECT_EQ(to_json(parse_case("v [0.375]")), R"({"values":{"v":["0x1.8p-2"]}})");
}

RC_GTEST_PROP(CaseJsonLaw, a_case_reads_back, ()) {
    const Case c = *any_case();
    RC_ASSERT(case_from_json(to_json(c), "a") == c);
}

RC_GTEST_PROP(CaseJsonLaw, equal_problems_have_one_text, ()) {
    const Problem p = *any_problem();
    RC_ASSERT(to_json({p, {}}) == to_json({canonical(p), {}}));
}

RC_GTEST_PROP(CaseJsonLaw, line_and_json_tell_the_same_case, ()) {
    const Case c = *any_case();
    RC_ASSERT(to_json(parse_case(print(c))) == to_json(c));
}

TEST(CaseJson, reads_members_in_any_order_and_on_many_lines) {
    const char* text =
        "{\n  \"values\": {\"seed\": \"7\"},\n  \"problem\": {\n"
        "    \"len_q\": 2, \"causal\": true\n  }\n}\n";
    EXPECT_EQ(case_from_json(text, "a"), parse_case("tq2 causal seed 7"));
    EXPECT_EQ(case_from_json(R"({"problem":{"dim_v":1,"len_q":1},"values":{"q":"drawn"}})", "a"),
              Case{})
        << "defaults written out";
}

struct JsonRefusal {
    const char* text;
    std::string says;
};

std::string known_keys() {
    std::string keys;
    for (const auto group : field_groups())
        keys.append(keys.empty() ? "" : ", ").append(group.front().head());
    return keys;
}

TEST(CaseJsonErrors, name_line_column_and_remedy) {
    const JsonRefusal refusals[] = {
        {"{\"problem\": {\n    \"scale\": 0.125\n}}",
         "cases/a.json:2:14: real numbers are hex strings, such as \"0x1.8p+1\"\n"
         "2 |     \"scale\": 0.125\n"
         "  |              ^^^^^\n"
         "write \"0x1p-3\""},
        {R"({"problem":{"scale":"0x1.80p+1"}})",
         "cases/a.json:1:21: real numbers are hex strings, such as \"0x1.8p+1\"\n"
         "1 | {\"problem\":{\"scale\":\"0x1.80p+1\"}}\n"
         "  |                     ^^^^^^^^^^^\n"
         "C99 hex floats, lower case, without trailing zeros"},
        {R"({"problem":{"casual":true}})",
         std::string("cases/a.json:1:13: unknown key casual; did you mean causal?\n"
                     "1 | {\"problem\":{\"casual\":true}}\n"
                     "  |             ^^^^^^^^\n"
                     "one of ") +
             known_keys()},
        {R"({"values":{"seed":"1","seed":"2"}})",
         "cases/a.json:1:23: seed is here a second time\n"
         "1 | {\"values\":{\"seed\":\"1\",\"seed\":\"2\"}}\n"
         "  |                       ^^^^^^\n"
         "keep one of them"},
        {R"({"values":{"seed":7}})",
         "cases/a.json:1:19: 64-bit numbers are decimal strings, such as \"7\"\n"
         "1 | {\"values\":{\"seed\":7}}\n"
         "  |                   ^\n"
         "write \"7\""},
        {R"({"problem":{"heads_q":8,"heads_kv":3}})",
         "cases/a.json:1:36: hkv3 does not divide hq8\n"
         "1 | {\"problem\":{\"heads_q\":8,\"heads_kv\":3}}\n"
         "  |                                    ^\n"
         "heads_q must be a multiple of heads_kv: 1, 2, 4 or 8"},
        {R"({"problem":{"len_q":2.5}})",
         "cases/a.json:1:21: expected a whole number\n"
         "1 | {\"problem\":{\"len_q\":2.5}}\n"
         "  |                     ^^^\n"
         "without fraction or exponent, within 64 bits"},
    };
    for (const JsonRefusal& r : refusals)
        EXPECT_EQ(refusal([&] { case_from_json(r.text, "cases/a.json"); }), r.says);
}

TEST(CaseJsonErrors, everything_else_is_refused_too) {
    for (const char* text : {"",
                             " ",
                             "[]",
                             "1",
                             "null",
                             "{",
                             "{}x",
                             "{\"problem\":1}",
                             "{\"problem\":{\"len_q\":01}}",
                             "{\"problem\":{\"len_q\":-0}}",
                             "{\"problem\":{\"len_q\":1e1}}",
                             "{\"problem\":{,}}",
                             "{\"problem\":{\"len_q\":1,}}",
                             "{'problem':{}}",
                             "{\"problem\":{\"causal\":1}}",
                             "{\"problem\":{\"causal\":True}}",
                             "{\"problem\":{\"window\":[1]}}",
                             "{\"problem\":{\"mask\":{\"kind\":\"bool\"}}}",
                             "{\"values\":{\"kind\":\"gaussian\"}}",
                             "{\"values\":{\"q\":\"explicit_values\"}}",
                             "{\"values\":{\"q\":[1]}}",
                             "{\"values\":{\"q\":[\"nan\"]}}",
                             "{\"values\":{\"q\":[\"0x1p+0\",\"0x1p+0\"]}}",
                             "{\"values\":{\"seed\":\"01\"}}",
                             "{\"values\":{\"seed\":\"-1\"}}",
                             "{\"values\":{\"seed\":\"18446744073709551616\"}}",
                             "{\"values\":{\"seed\":\"\\u00\"}}",
                             "{\"a\\ud800\":1}",
                             "{\"problem\":{\"scale\":\"0X1P+0\"}}",
                             "{\"problem\":{\"scale\":\"0x1p+1024\"}}",
                             "{\"problem\":{\"scale\":\"inf\"}}"})
        EXPECT_NE(refusal([&] { case_from_json(text, "a"); }), "") << text;
}

TEST(CaseJsonErrors, no_depth_is_too_great_to_be_refused) {
    for (const char* opening : {"[", "{\"problem\":"}) {
        std::string text;
        for (int depth = 0; depth < 200'000; ++depth) text += opening;
        const std::string said = refusal([&] { case_from_json(text, "a"); });
        EXPECT_NE(said.find("nested too deep"), said.npos) << said;
    }
}

TEST(Json, is_read_by_the_letter) {
    for (const char* text : {"1e",
                             "1.",
                             "-",
                             "01",
                             "-01",
                             ".5",
                             "+1",
                             "1e+",
                             "\"\t\"",
                             "\"\\x\"",
                             "\"\\ud800\"",
                             "\"\\udc00\"",
                             "\"\\u12g4\"",
                             "[1,]",
                             "[1 2]",
                             "nul",
                             "{\"a\" 1}",
                             "1 2",
                             "\"open",
                             "[",
                             "{\"a\":1,}",
                             "[1] // one",
                             "\"\xff\"",
                             "1e999",
                             "\xef\xbb\xbf"
                             "1"})
        EXPECT_NE(refusal([&] { parse_json({text, "a"}); }), "") << text;
    EXPECT_NE(refusal([] { parse_json({std::string_view("1\0 2", 4), "a"}); }), "");
    EXPECT_EQ(refusal([] {
                  parse_json({"{\n  \"a\": [1, tru]\n}", "a.json"});
              }),
              "a.json:2:15: this is not JSON: invalid literal\n"
              "2 |   \"a\": [1, tru]\n"
              "  |               ^\n"
              "JSON as RFC 8259 has it, without comments or trailing commas");
    const Json value =
        parse_json({R"( ["\u00e9\ud83d\ude00\n", -0.5e-3, {"a": null}, false] )", "a"});
    EXPECT_EQ(value.items.at(0).text, "\xc3\xa9\xf0\x9f\x98\x80\n");
    EXPECT_EQ(value.items.at(1).text, "-0.5e-3");
    EXPECT_EQ(value.items.at(2).members.at(0).key, "a");
    EXPECT_FALSE(value.items.at(3).boolean);
}

TEST(HexReal, is_c99_lower_case_without_trailing_zeros) {
    EXPECT_EQ(hex_real(1.5), "0x1.8p+0");
    EXPECT_EQ(hex_real(-0.0), "-0x0p+0");
    EXPECT_EQ(hex_real(0x1.62e43p-1), "0x1.62e43p-1");
    EXPECT_EQ(hex_real(5e-324), "0x1p-1074");
    EXPECT_EQ(hex_real(0x1.8p-1073), "0x1.8p-1073");
    EXPECT_EQ(hex_real(std::numeric_limits<double>::max()), "0x1.fffffffffffffp+1023");
    for (const char* text :
         {"0x1", "1p+0", "0x1.p+0", "0x2p+0", "0x0.8p+0", "0x1p0", "0x1p+00", "+0x1p+0",
          "0x1.8p+1 ", "0x1..8p+1", "0x1p-1075", "0xp+0", "0x", "nan"})
        EXPECT_EQ(parse_hex_real(text), std::nullopt) << text;
}

}  // namespace
}  // namespace attest
