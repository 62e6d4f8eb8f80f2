// Records as they are written: each fits the schema and says what the run was.

#include "ci/record.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "ci/golden.hpp"
#include "ci/journal.hpp"
#include "ci/schema_check.hpp"
#include "properties/search/store.hpp"
#include "reference/problem/digest.hpp"

namespace attest::ci {
namespace {

law::Property law_of(const std::string& id, law::Compares compares) {
    law::Property law;
    law.id = id;
    law.statement = law.statement_short = "a law of the test";
    law.compares = compares;
    law.file = "properties/test.cpp";
    return law;
}

search::CaseRecord tried(std::int64_t number, double ratio, const std::string& line) {
    search::CaseRecord record;
    record.number = number;
    record.tried = parse_case(line);
    record.verdict = law::holds(10, ratio);
    if (!(ratio <= 1)) {
        law::Violation v;
        v.problem = "output of query 0 is wrong";
        v.index = {0, 0, 0, 0};
        v.element_name = "output of query 0";
        v.expected = 0.5;
        v.observed = 0.25;
        v.bound = 1e-6;
        v.ratio = ratio;
        record.verdict = law::violated(v, 10);
    }
    return record;
}

search::LawResult result_of(const law::Property& law, std::vector<double> ratios) {
    search::LawResult result;
    result.property = &law;
    std::int64_t number = 0;
    for (const double ratio : ratios) {
        const std::string tq = std::to_string(number + 2);
        result.records.push_back(
            tried(number++, ratio, "b1 hq2 hkv1 tq" + tq + " tk3 d4 causal f32"));
        result.violated += result.records.back().verdict.decision == law::Decision::violated;
        result.verdict = number == 1 ? result.records.back().verdict
                                     : merge(result.verdict, result.records.back().verdict);
    }
    result.cases = number;
    for (const search::CaseRecord& record : result.records) {
        if (record.verdict.decision != law::Decision::violated) continue;
        search::Counterexample c;
        c.law = law.id;
        c.smallest = parse_case("b1 hq2 hkv1 tq2 tk1 d1 causal f32");
        c.id = search::failure_id(c.smallest, law.id);
        c.verdict = record.verdict;
        c.found = record;
        c.steps.assign(
            100, search::ShrinkStep{3, "floor", "Tq 5 -> 2", "b1 hq1 hkv1 tq2 tk1 d1 f32", 2});
        result.counterexample = c;
        break;
    }
    return result;
}

Record valid(const std::string& line) {
    static const Record schema = schema_named("result");
    const Record record = Record::parse(line);
    EXPECT_EQ(schema_fault(record, schema, schema), "") << line.substr(0, 400);
    return record;
}

TEST(Record, LawsFitTheSchemaAndAddUp) {
    const law::Property law = law_of("test.bound", law::Compares::bound);
    const search::LawReport report = search::law_report(
        result_of(law, {0, 0.00001, 0.001, 0.5, 0.5, 0.9, 7, infinite, 99.9, 100.0, 1e9}));
    const search::RatioHistogram& h = report.ratios->histogram;
    EXPECT_EQ(std::accumulate(h.counts.begin(), h.counts.end(), h.zero + h.above), 11);
    EXPECT_EQ(h.zero, 1);
    EXPECT_EQ(h.above, 3);       // inf, 100, 1e9
    EXPECT_EQ(h.counts[0], 1);   // below the first bin goes into it
    EXPECT_EQ(h.counts[8], 1);   // 10^-3 begins bin 8
    EXPECT_EQ(h.counts[47], 1);  // 99.9
    EXPECT_EQ(report.ratios->formats.at("f32").cases, 11);
    EXPECT_EQ(report.ratios->formats.at("f32").median, 0.9);
    EXPECT_EQ(report.ratios->nearest.size(), 3u);
    EXPECT_EQ(report.violated, 5);
    EXPECT_EQ(valid(record_line(report)).at("worst").at("ratio"), "inf");
}

TEST(Record, LawsToTheBitHaveNoRatio) {
    const law::Property law = law_of("test.bits", law::Compares::bits);
    const Record record = valid(record_line(search::law_report(result_of(law, {0, 0, infinite}))));
    EXPECT_FALSE(record.contains("histogram"));
    EXPECT_FALSE(record.contains("worst"));
    search::LawResult none;
    none.property = &law;
    none.verdict = law::not_applicable("kernel has no backward");
    EXPECT_EQ(valid(record_line(search::law_report(none))).at("reason"), "kernel has no backward");
}

TEST(Record, EveryWordFitsTheSchema) {
    const law::Property law = law_of("test.bits", law::Compares::bits);
    for (int kind = 1; kind <= static_cast<int>(law::Reason::Kind::flaky); ++kind) {
        search::LawResult none;
        none.property = &law;
        none.verdict = law::not_run({static_cast<law::Reason::Kind>(kind), "anything"});
        valid(record_line(search::law_report(none)));
    }
    search::CaseRecord record = tried(1, 0.5, "b1 hq1 hkv1 tq2 tk1 d1 f32");
    for (int kind = 0; kind <= static_cast<int>(worker::Fault::Kind::outside_all); ++kind)
        for (int access = 0; access <= static_cast<int>(worker::Fault::Access::write); ++access) {
            record.fault = worker::Fault{};
            record.fault->kind = static_cast<worker::Fault::Kind>(kind);
            record.fault->stray = static_cast<worker::Fault::Access>(access);
            valid(record_line(search::case_report(law, record)));
        }
}

TEST(Record, CasesFitTheSchema) {
    const law::Property law = law_of("test.bound", law::Compares::bound);
    search::CaseRecord record = tried(-1, 0.5, "b1 hq1 hkv1 tq2 tk1 d1 f32");
    EXPECT_TRUE(valid(record_line(search::case_report(law, record))).at("stored"));
    record.outcome = worker::Outcome::crash;
    record.fault = worker::Fault{};
    record.fault->tensor = Role::k;
    record.fault->signal = "SIGSEGV";
    const Record crash = valid(record_line(search::case_report(law, record)));
    EXPECT_TRUE(crash.at("ratio").is_null());
    EXPECT_EQ(crash.at("fault").at("tensor"), "k");
}

diagnosis::CounterexampleReport found_out() {
    static const law::Property law = law_of("test.bound", law::Compares::bound);
    return diagnosis::counterexample_report(result_of(law, {0.1, 0.2, 7, infinite}), nullptr);
}

TEST(Record, CounterexamplesFitTheSchema) {
    std::vector<diagnosis::CounterexampleReport> all{found_out()};
    all[0].sanitizer.assign(
        4, {"racecheck", diagnosis::SanitizerEntry::Verdict::not_run, "no GPU", {}, {}});
    all[0].sanitizer[0] = {
        "memcheck", diagnosis::SanitizerEntry::Verdict::found, "", 2, {{"a race", ""}}};
    const std::vector<diagnosis::CauseReport> causes = diagnosis::group_causes(all);
    const Record record = valid(record_line(all[0]));
    EXPECT_EQ(record.at("shrink").at("steps").size(), 64u);
    EXPECT_EQ(record.at("observed").at("decimal"), "0.25");
    EXPECT_EQ(record.at("expected").at("hex"), "0x1p-1");
    EXPECT_EQ(record.at("ulps"), ulps_between(0.5, 0.25, Precision::f32));
    EXPECT_EQ(print(case_from_json(record.at("case").dump(), "record")),
              record.at("line").get<std::string>());
    ASSERT_EQ(causes.size(), 1u);
    EXPECT_EQ(record.at("cause"), "c1");
    EXPECT_EQ(valid(record_line(causes[0])).at("title"), "Output of query 0 is wrong");
}

TEST(Record, ALongCounterexampleLosesWhatTellsLeast) {
    diagnosis::CounterexampleReport report = found_out();
    report.weights = diagnosis::HeadWeights{{{0.5}}, {{0.25}}};
    report.boundary.points.assign(400, {1, 2, 1});
    report.map = diagnosis::ErrorMap{0, 0, std::vector<std::string>(128, std::string(128, '6'))};
    EXPECT_FALSE(valid(record_line(report)).at("map").is_null());
    report.example.steps.assign(64, search::ShrinkStep{3, "floor", std::string(800, 'x'), "b1", 2});
    const Record record = valid(record_line(report));
    EXPECT_TRUE(record.at("map").is_null());
    EXPECT_FALSE(record.at("weights").is_null());
    EXPECT_EQ(record.at("boundary").at("points").size(), 400u);
}

TEST(Journal, AppendsWholeLinesAndDigestsThem) {
    const std::string folder = testing::TempDir() + "attest_journal_" + std::to_string(::getpid());
    std::filesystem::remove_all(folder);
    RunEnd end;
    {
        Journal journal(folder, {"first"}, "write again");
        journal.append("second");
        journal.finish(end);
    }
    std::ifstream file(folder + "/result.jsonl");
    std::string lines[3];
    for (std::string& line : lines) ASSERT_TRUE(std::getline(file, line));
    EXPECT_EQ(valid(lines[2]).at("lines"), 3);
    EXPECT_EQ(end.lines, 3);
    EXPECT_EQ(end.sha256, sha256_hex("first\nsecond\n"));
    EXPECT_EQ(lines[2], record_line(end));
}

// Pages draw what lies right of one as wrong.
TEST(Record, AnErrorAsLargeAsItsBoundIsCountedAsWithinIt) {
    const law::Property law = law_of("test.bound", law::Compares::bound);
    const search::LawReport report = search::law_report(result_of(law, {1.0, 0.99, 1.01}));
    const auto& counts = report.ratios->histogram.counts;
    EXPECT_EQ(counts[31], 2);
    EXPECT_EQ(counts[32], 1);
}

TEST(Schema, TheCheckIsNotBlind) {
    const Record schema = schema_named("result");
    const law::Property law = law_of("test.bound", law::Compares::bound);
    const Record good = Record::parse(record_line(search::law_report(result_of(law, {0.5}))));
    for (const char* key : {"law", "verdict", "cases", "reason"}) {
        Record bad = good;
        bad.erase(key);
        EXPECT_NE(schema_fault(bad, schema, schema), "") << key;
    }
    Record bad = good;
    bad["verdict"] = "passed";
    EXPECT_NE(schema_fault(bad, schema, schema), "");
    bad = good;
    bad["histogram"]["counts"].push_back(1);
    EXPECT_NE(schema_fault(bad, schema, schema), "");
    bad = good;
    bad["cases"] = -1;
    EXPECT_NE(schema_fault(bad, schema, schema), "");
}

TEST(Schema, GoldenRecordsFit) {
    for (const char* name : {"check_pass.jsonl", "check_fail.jsonl"}) {
        std::istringstream file(read_golden(name));
        for (std::string line; std::getline(file, line);) valid(line);
    }
}

}  // namespace
}  // namespace attest::ci
