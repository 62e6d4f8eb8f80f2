// Records as they are written: each fits the schema, says what the run was, and reads back.

#include "ci/record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "ci/cause.hpp"
#include "ci/counterexample_record.hpp"
#include "ci/coverage.hpp"
#include "ci/golden.hpp"
#include "ci/journal.hpp"
#include "ci/law_record.hpp"
#include "ci/schema_check.hpp"

namespace attest {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

Property law_of(const std::string& id, Compares compares) {
    Property law;
    law.id = id;
    law.statement = law.statement_short = "a law of the test";
    law.compares = compares;
    law.file = "properties/test.cpp";
    return law;
}

CaseRecord tried(std::int64_t number, double ratio, const std::string& line) {
    CaseRecord record;
    record.number = number;
    record.subject = parse_case(line);
    record.verdict = holds(10, ratio);
    if (!(ratio <= 1)) {
        Violation v;
        v.problem = "output of query 0 is wrong";
        v.index = {0, 0, 0, 0};
        v.element_name = "output of query 0";
        v.expected = 0.5;
        v.observed = 0.25;
        v.bound = 1e-6;
        v.ratio = ratio;
        record.verdict = violated(v, 10);
    }
    return record;
}

LawResult result_of(const Property& law, std::vector<double> ratios) {
    LawResult result;
    result.property = &law;
    std::int64_t number = 0;
    for (const double ratio : ratios) {
        const std::string tq = std::to_string(number + 2);
        result.records.push_back(
            tried(number++, ratio, "b1 hq2 hkv1 tq" + tq + " tk3 d4 causal f32"));
        result.violated += result.records.back().verdict.decision == Decision::violated;
        result.verdict = number == 1 ? result.records.back().verdict
                                     : merge(result.verdict, result.records.back().verdict);
    }
    result.cases = number;
    for (const CaseRecord& record : result.records) {
        if (record.verdict.decision != Decision::violated) continue;
        Counterexample c;
        c.law = law.id;
        c.smallest = parse_case("b1 hq2 hkv1 tq2 tk1 d1 causal f32");
        c.id = failure_id(c.smallest, law.id);
        c.verdict = record.verdict;
        c.found = record;
        c.steps.assign(100, ShrinkStep{3, "floor", "Tq 5 -> 2", "b1 hq1 hkv1 tq2 tk1 d1 f32", 2});
        result.counterexample = c;
        break;
    }
    return result;
}

void expect_valid(const Record& record) {
    static const Record schema = result_schema();
    EXPECT_EQ(schema_fault(record, schema, schema), "") << record_line(record).substr(0, 400);
}

TEST(Record, LawsFitTheSchemaAndAddUp) {
    const Property law = law_of("test.bound", Compares::bound);
    const Record record = law_record(
        result_of(law, {0, 0.00001, 0.001, 0.5, 0.5, 0.9, 7, infinite, 99.9, 100.0, 1e9}));
    expect_valid(record);
    const Record& h = record.at("histogram");
    std::int64_t sum = h.at("zero").get<std::int64_t>() + h.at("above").get<std::int64_t>();
    for (const Record& count : h.at("counts")) sum += count.get<std::int64_t>();
    EXPECT_EQ(sum, 11);
    EXPECT_EQ(h.at("zero"), 1);
    EXPECT_EQ(h.at("above"), 3);       // inf, 100, 1e9
    EXPECT_EQ(h.at("counts")[0], 1);   // below the first bin goes into it
    EXPECT_EQ(h.at("counts")[8], 1);   // 10^-3 begins bin 8
    EXPECT_EQ(h.at("counts")[47], 1);  // 99.9
    EXPECT_EQ(record.at("worst").at("ratio"), "inf");
    EXPECT_EQ(record.at("formats").at("f32").at("cases"), 11);
    EXPECT_EQ(record.at("formats").at("f32").at("median"), 0.9);
    EXPECT_EQ(record.at("nearest").size(), 3u);
    EXPECT_EQ(record.at("violated"), 5);
}

TEST(Record, LawsToTheBitHaveNoRatio) {
    const Property law = law_of("test.bits", Compares::bits);
    const Record record = law_record(result_of(law, {0, 0, infinite}));
    expect_valid(record);
    EXPECT_FALSE(record.contains("histogram"));
    EXPECT_FALSE(record.contains("worst"));
    LawResult none;
    none.property = &law;
    none.verdict = not_applicable("kernel has no backward");
    expect_valid(law_record(none));
    EXPECT_EQ(law_record(none).at("reason"), "kernel has no backward");
}

TEST(Record, EveryWordFitsTheSchema) {
    const Property law = law_of("test.bits", Compares::bits);
    for (int kind = 1; kind <= static_cast<int>(Reason::Kind::slow_once); ++kind) {
        LawResult none;
        none.property = &law;
        none.verdict = not_run({static_cast<Reason::Kind>(kind), "anything"});
        expect_valid(law_record(none));
    }
    CaseRecord record = tried(1, 0.5, "b1 hq1 hkv1 tq2 tk1 d1 f32");
    for (int kind = 0; kind <= static_cast<int>(Fault::Kind::outside_all); ++kind)
        for (int access = 0; access <= static_cast<int>(Fault::Access::write); ++access) {
            record.fault = Fault{};
            record.fault->kind = static_cast<Fault::Kind>(kind);
            record.fault->stray = static_cast<Fault::Access>(access);
            expect_valid(case_record("test.bound", Compares::bound, record));
        }
}

TEST(Record, CasesFitTheSchema) {
    CaseRecord record = tried(-1, 0.5, "b1 hq1 hkv1 tq2 tk1 d1 f32");
    expect_valid(case_record("test.bound", Compares::bound, record));
    EXPECT_TRUE(case_record("test.bound", Compares::bound, record).at("stored"));
    record.outcome = Outcome::crash;
    record.fault = Fault{};
    record.fault->tensor = Role::k;
    record.fault->signal = "SIGSEGV";
    const Record crash = case_record("test.bound", Compares::bound, record);
    expect_valid(crash);
    EXPECT_TRUE(crash.at("ratio").is_null());
    EXPECT_EQ(crash.at("fault").at("tensor"), "k");
}

TEST(Record, CounterexamplesFitTheSchema) {
    const Property law = law_of("test.bound", Compares::bound);
    Record record = counterexample_record(result_of(law, {0.1, 0.2, 7, infinite}), nullptr);
    expect_valid(record);
    EXPECT_EQ(record.at("shrink").at("steps").size(), 64u);
    EXPECT_EQ(record.at("observed").at("decimal"), "0.25");
    EXPECT_EQ(record.at("expected").at("hex"), "0x1p-1");
    EXPECT_EQ(record.at("ulps"), ulps_between(0.5, 0.25, Precision::f32));
    EXPECT_EQ(print(case_from_json(record.at("case").dump(), "record")),
              record.at("line").get<std::string>());
    std::vector<Record> all{record};
    const std::vector<Record> causes = group_causes(all);
    ASSERT_EQ(causes.size(), 1u);
    expect_valid(causes[0]);
    EXPECT_EQ(all[0].at("cause"), "c1");
    EXPECT_EQ(causes[0].at("title"), "Output of query 0 is wrong");
}

TEST(Coverage, CountsPairsAndKnowsTheImpossible) {
    const Property law = law_of("test.bound", Compares::bound);
    CampaignResult result;
    result.manifest.formats = {Precision::f32};
    result.manifest.features_declared = true;
    result.manifest.features =
        FeatureSet(Feature::causal, Feature::gqa, Feature::mask_bool, Feature::mask_additive);
    result.laws.push_back(result_of(law, {0.1, 0.2, 0.3}));
    const std::vector<Record> records = coverage_records(result, 4, nullptr, {});
    ASSERT_EQ(records.size(), 1u);
    expect_valid(records[0]);
    const Record& features = records[0].at("features");
    const auto place = [&](const char* name) {
        return static_cast<std::size_t>(std::find(features.begin(), features.end(), name) -
                                        features.begin());
    };
    EXPECT_EQ(records[0].at("pairs").size(), features.size() * (features.size() + 1) / 2);
    const std::size_t causal = place("causal"), gqa = place("gqa");
    EXPECT_EQ(records[0].at("pairs")[causal * (causal + 1) / 2 + causal], 3);
    EXPECT_EQ(records[0].at("pairs")[gqa * (gqa + 1) / 2 + causal], 3);
    // A problem has one mask tensor.
    const Record both{place("mask_additive"), place("mask_bool")};
    const Record& impossible = records[0].at("impossible");
    EXPECT_NE(std::find(impossible.begin(), impossible.end(), both), impossible.end());
    const CoverageSummary sum = summarise(records);
    EXPECT_EQ(sum.undrawn, sum.possible - sum.drawn);
    EXPECT_GT(sum.drawn, 2);
    const Record twice = coverage_records(result, 4, nullptr, records)[0];
    EXPECT_EQ(twice.at("cases"), 6);
}

TEST(Journal, AppendsWholeLinesAndDigestsThem) {
    const std::string folder = testing::TempDir() + "attest_journal";
    std::filesystem::remove_all(folder);
    {
        Journal journal(folder, {{{"record", "run"}, {"v", 1}}});
        journal.append({{"record", "law"}, {"v", 1}, {"law", "a.b"}});
        journal.finish({{"record", "end"}, {"v", 1}});
    }
    const Records records = read_records(folder + "/result.jsonl");
    EXPECT_EQ(records.laws.size(), 1u);
    EXPECT_EQ(records.end.at("lines"), 3);
    std::ifstream file(folder + "/result.jsonl");
    std::string first, second;
    std::getline(file, first);
    std::getline(file, second);
    EXPECT_EQ(records.end.at("sha256"), sha256_hex(first + "\n" + second + "\n"));
}

TEST(Journal, AHalfWrittenLastLineIsARunThatWasCut) {
    const std::string path = testing::TempDir() + "attest_cut.jsonl";
    std::ofstream(path) << "{\"record\":\"run\",\"v\":1}\n{\"record\":\"law\",\"v\":1,\"la";
    const Records records = read_records(path);
    EXPECT_TRUE(records.end.is_null());
    EXPECT_TRUE(records.laws.empty());
    std::ofstream(path) << "{\"record\":\"run\",\"v\":1}\nnot json\n{\"record\":\"end\",\"v\":1}\n";
    EXPECT_THROW(read_records(path), BadInput);
}

TEST(Schema, TheCheckIsNotBlind) {
    const Record schema = result_schema();
    const Property law = law_of("test.bound", Compares::bound);
    const Record good = law_record(result_of(law, {0.5}));
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
        const Records records = read_records(golden_directory() + "/" + name);
        for (const auto* kind : {&records.laws, &records.cases, &records.counterexamples,
                                 &records.causes, &records.coverage})
            for (const Record& record : *kind) expect_valid(record);
        expect_valid(records.run);
        expect_valid(records.end);
    }
}

}  // namespace
}  // namespace attest
