// What the strict reader of result.jsonl takes: all that is written, and nothing else.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "ci/golden.hpp"
#include "ci/random_report_test.hpp"
#include "ci/record.hpp"
#include "ci/record_writer.hpp"
#include "ci/records_test.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {
namespace {

using generate::coin;
using generate::whole;
using random_report::lines_of;
using records_test::each_value, records_test::file_of;
using records_test::refusal_by, records_test::tampered;

std::string joined(const std::vector<std::string>& lines) {
    std::string all;
    for (const std::string& line : lines) all += line + "\n";
    return all;
}

// Every value of a record is in its line, so two reports with the same lines are the same.
RC_GTEST_PROP(RecordRead, reads_back_what_was_written, ()) {
    const std::vector<std::string> lines = lines_of(random_report::make());
    const std::vector<std::string> again = lines_of(read_records(file_of(joined(lines))));
    RC_ASSERT(again.size() == lines.size());
    for (std::size_t n = 0; n < lines.size(); ++n) RC_ASSERT(again[n] == lines[n]);
}

std::string refusal_of(const std::string& all) {
    return refusal_by(read_records, all);
}

RC_GTEST_PROP(RecordRead, whatever_bytes_there_are_is_read_or_refused, ()) {
    refusal_of(tampered(joined(lines_of(random_report::make()))));
}

// Every value of every record, in turn left out or replaced by one of another type.
RC_GTEST_PROP(RecordRead, a_value_of_another_type_is_refused, ()) {
    RunReport report = random_report::make();
    report.end = random_report::end();
    std::vector<std::string> lines = lines_of(report);
    const auto line = static_cast<std::size_t>(whole(0, static_cast<int>(lines.size()) - 1));
    Record record = Record::parse(lines[line]);
    std::vector<Record*> values;
    each_value(record, [&](Record& value) { values.push_back(&value); });
    Record& value =
        *values[static_cast<std::size_t>(whole(1, static_cast<int>(values.size()) - 1))];
    static const Record others[] = {nullptr, true, -1, 0.5, "x", Record::array(), {{"x", 1}}};
    const Record& other = others[whole(0, 6)];
    RC_PRE(other.type() != value.type() && !(other.is_number() && value.is_number()));
    const bool may_be = value.is_null() || other.is_null() || value == "inf" || value == "-inf";
    value = other;
    lines[line] = record.dump();
    const std::string refusal = refusal_of(joined(lines));
    if (!may_be) RC_ASSERT(refusal.starts_with(":" + std::to_string(line + 1) + ":"));
}

/// Whether `whole` says all that `part` does.
bool says_all(const Record& whole, const Record& part) {
    if (!part.is_object()) return whole == part;
    for (const auto& [key, value] : part.items())
        if (!whole.contains(key) || !says_all(whole[key], value)) return false;
    return true;
}

/// A sample that an earlier version wrote, of which nothing may be lost.
RunReport earlier_sample(const std::string& name, std::size_t lines) {
    RunReport report = read_records(golden_directory() + "/" + name);
    std::vector<Record> now;
    for (const std::string& line : lines_of(report)) now.push_back(Record::parse(line));
    EXPECT_EQ(now.size(), lines);
    std::istringstream before(read_golden(name));
    for (std::string earlier; std::getline(before, earlier);) {
        const Record said = Record::parse(earlier);
        EXPECT_TRUE(std::ranges::any_of(now, [&](const Record& r) { return says_all(r, said); }))
            << earlier;
    }
    return report;
}

// A statistic of a kernel that gives NaN is no number that JSON has.
TEST(RecordRead, AnInfiniteStatisticIsWrittenAsWhatItIs) {
    search::LawReport law;
    law.law = "reference.probable";
    law.verdict.statistic = law::Statistic{.name = "error", .value = infinite, .threshold = 1};
    EXPECT_NE(record_line(law).find("\"value\":\"inf\""), std::string::npos);
}

TEST(RecordRead, ASampleFromBeforeReasonsHadKinds) {
    const RunReport report = earlier_sample("before_reason_kinds.jsonl", 15);
    EXPECT_EQ(report.law("masking.document")->verdict.reason.kind, law::Reason::Kind::law);
    EXPECT_TRUE(report.counterexample("a6fb4ddb")->diagnosis.known);
    EXPECT_EQ(report.counterexamples.back().example.fault->offset_bytes, 8);
    EXPECT_EQ(verdict_of(report, false).decision, RunDecision::violated);
}

TEST(RecordRead, ASampleOfVersion010WithGradientsAndEachCase) {
    const RunReport report = earlier_sample("before_0_2_0.jsonl", 132);
    EXPECT_EQ(report.law("reference.gradients")->verdict.decision, law::Decision::violated);
    EXPECT_EQ(verdict_of(report, false).decision, RunDecision::violated);
}

void add_keys(const Record& value, const std::string& path, std::set<std::string>& keys) {
    const bool named =
        path.ends_with(".refusals") || path.ends_with(".formats") || path.ends_with(".libraries");
    if (!value.is_structured()) keys.insert(path);
    for (const auto& [key, part] : value.items())
        if (value.is_structured())
            add_keys(part, path + (value.is_array() ? "[]" : named ? ".*" : "." + key), keys);
}

// A field that is left out of its list is neither written nor missed: here it is.
TEST(RecordRead, EveryKeyIsKnown) {
    std::set<std::string> keys;
    ASSERT_TRUE(rc::check([&] {
        for (const std::string& line : lines_of(random_report::make())) {
            Record record = Record::parse(line);
            const std::string kind = record["record"];
            record.erase("case");
            add_keys(record, kind, keys);
        }
    }));
    EXPECT_EQ(golden_difference("record_keys.txt", joined({keys.begin(), keys.end()})), "");
}

TEST(RecordRead, AMistakeIsToldWithItsPlace) {
    const std::string good = read_golden("check_fail.jsonl");
    EXPECT_EQ(refusal_of(good), "");
    const auto changed = [&](const std::string& from, const std::string& to) {
        std::string bad = good;
        bad.replace(bad.find(from), from.size(), to);
        return refusal_of(bad);
    };
    EXPECT_EQ(changed("\"seed\":\"20261120\",\"shard\"", "\"shard\"").substr(0, 5), ":1:1:");
    EXPECT_NE(changed("\"v\":1}", "\"v\":2}").find("expected version 1"), std::string::npos);
    EXPECT_NE(changed("\"cases\":306", "\"cases\":\"306\"").find(":2:"), std::string::npos);
    EXPECT_NE(changed("\"cases\":306", "\"cases\":-306").find("a count"), std::string::npos);
    EXPECT_NE(changed("\"cases\":306", "\"cases\":306,\"cases\":1").find("a second time"),
              std::string::npos);
    EXPECT_NE(changed("\"cases\":306", "\"casse\":306").find("cases is missing"),
              std::string::npos);
    EXPECT_NE(changed("\"undecided\":0", "\"undecided\":0,\"more\":0").find("unknown key more"),
              std::string::npos);
    EXPECT_NE(changed("\"verdict\":\"violated\"", "\"verdict\":\"passed\"").find("passed is not"),
              std::string::npos);
    EXPECT_NE(
        changed("\"record\":\"cause\"", "\"record\":\"reason\"").find("expected a record of a run"),
        std::string::npos);
    EXPECT_NE(changed("tq1 tk2 d1 causal f32\",\"ratio\"", "tq1 tk2 d1 casual f32\",\"ratio\"")
                  .find("casual"),
              std::string::npos);
    const std::string first = good.substr(0, good.find('\n') + 1);
    EXPECT_NE(refusal_of(first + first).find("expected one run alone"), std::string::npos);
    EXPECT_NE(refusal_of(good.substr(first.size())).find("expected a run first"),
              std::string::npos);
    EXPECT_NE(refusal_of(good + "{}\n"), "");
    EXPECT_EQ(refusal_of(""), ": has no run record");
}

TEST(RecordRead, AHalfWrittenLastLineIsARunThatWasCut) {
    const std::string good = read_golden("check_pass.jsonl");
    const std::size_t second = good.find('\n', good.find('\n') + 1);
    const RunReport report = read_records(file_of(good.substr(0, second + 100)));
    EXPECT_FALSE(report.end);
    EXPECT_EQ(report.laws.size(), 1u);
    EXPECT_NE(refusal_of(good.substr(0, second + 100) + "\n"), "");
}

}  // namespace
}  // namespace attest::ci
