// What a bench measured: its screen, its records and the strict reader of these.

#include "ci/bench.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "ci/golden.hpp"
#include "ci/random_report_test.hpp"
#include "ci/record_writer.hpp"
#include "ci/records_test.hpp"
#include "ci/schema_check.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {
namespace {

using generate::coin;
using generate::real;
using generate::whole;
using random_report::count;
using random_report::text;
using records_test::file_of, records_test::joined_records, records_test::records_of;
using records_test::refusal_by, records_test::retype_one, records_test::tampered;

BoundCount bound_count() {
    const std::int64_t violated = count(), undecided = count();
    return {violated + undecided + count(), violated, undecided};
}

double seconds() {
    return static_cast<double>(whole(1, 1'000'000)) / 1024;
}

UsedError used() {
    const std::int64_t violated = count(), infinite = count();
    const double most = coin() ? infinite : std::abs(real());
    return {violated + infinite + count(), violated, infinite, seconds(), seconds(), most};
}

DeviceSpeed device() {
    if (coin()) return {.name = {}, .not_run = "no " + text()};
    return {"H " + text(), "", whole(1, 99), whole(1, 99), whole(1, 99), seconds(), seconds()};
}

BenchReport make_bench() {
    BenchReport report;
    report.attest = text();
    report.started = text();
    report.instructions = text();
    report.seed = generate::seed();
    report.seconds = seconds();
    report.machine = {text(), text(), text(), text(), count(), count(), text()};
    for (UsedError& error : report.certified) error = used();
    for (auto& format : report.forward.bounds)
        for (BoundCount& one : format) one = bound_count();
    for (auto& kind : report.forward.alone)
        for (Escalation& e : kind) {
            e = {0, count(), 0, count()};
            e.elements = e.undecided + count();
            e.rows = e.again + count();
        }
    for (BoundCount& one : report.backward) one = bound_count();
    report.speed.dim = whole(1, 256);
    for (std::int64_t n = whole(1, 5); n > 0; --n)
        report.speed.rows.push_back({whole(1, 4096), seconds(), seconds(), seconds(), seconds()});
    report.long_context = {whole(1, 99), whole(1, 99), whole(1, 99), whole(1, 99),
                           seconds(),    seconds(),    seconds()};
    report.device = device();
    return report;
}

std::string bench_refusal(const std::string& all) {
    return refusal_by(read_bench, all);
}

std::string screen_of(const BenchReport& report) {
    std::string all = bench_text(report) + bench_text(report.certified) +
                      bench_text(report.forward) + bench_text(report.backward) +
                      bench_text(report.speed);
    for (const SpeedRow& row : report.speed.rows) all += bench_text(row, report.speed.dim);
    return all + bench_text(report.long_context) + bench_text(report.device);
}

// Every value is in its line, so two benches with the same lines are the same.
RC_GTEST_PROP(Bench, reads_back_what_was_written, ()) {
    const BenchReport report = make_bench();
    const std::string all = bench_records(report);
    const BenchReport again = read_bench(file_of(all));
    RC_ASSERT(bench_records(again) == all);
    RC_ASSERT(again.violated() == report.violated());
}

RC_GTEST_PROP(Bench, every_record_fits_the_schema, ()) {
    static const Record schema = schema_named("bench");
    for (const Record& record : records_of(bench_records(make_bench())))
        RC_ASSERT(schema_fault(record, schema, schema) == "");
}

RC_GTEST_PROP(Bench, whatever_bytes_there_are_is_read_or_refused, ()) {
    bench_refusal(tampered(bench_records(make_bench())));
}

// Every value of every record, in turn replaced by one of another type, is refused by the reader,
// and by the schema.
RC_GTEST_PROP(Bench, a_value_of_another_type_is_refused, ()) {
    static const Record schema = schema_named("bench");
    std::vector<Record> records = records_of(bench_records(make_bench()));
    const auto line = static_cast<std::size_t>(whole(0, static_cast<int>(records.size()) - 1));
    const bool may_be = retype_one(records[line]);  // a name, or none
    const std::string refusal = bench_refusal(joined_records(records));
    if (may_be && refusal.empty()) return;
    RC_ASSERT(refusal.starts_with(":" + std::to_string(line + 1) + ":"));
    if (!may_be) RC_ASSERT(schema_fault(records[line], schema, schema) != "");
}

void add_paths(const Record& value, const std::string& path, std::string& all) {
    if (!value.is_structured()) all += path + "\n";
    for (const auto& [key, part] : value.items())
        if (value.is_structured())
            add_paths(part, path + (value.is_array() ? "[]" : "." + key), all);
}

/// A number of its own for each figure.
BenchReport counted_through() {
    std::int64_t next = 101;
    const auto number = [&] { return next++; };
    const auto real_number = [&] { return static_cast<double>(next++) / 8; };
    BenchReport r;
    r.attest = "0.2.0";
    r.started = "2026-11-23T08:00:00Z";
    r.instructions = "AVX2";
    r.seed = 7;
    r.seconds = 20;
    r.machine = {"a cpu", "avx2", "an os", "a compiler", number(), number(), "a gpu"};
    for (UsedError& u : r.certified) {
        u = {1000 * number(), number(), number(), real_number(), real_number(), real_number()};
    }
    for (auto& format : r.forward.bounds)
        for (BoundCount& b : format) b = {1000 * number(), number(), number()};
    for (auto& kind : r.forward.alone)
        for (Escalation& e : kind) e = {1000 * number(), number(), 1000 * number(), number()};
    for (BoundCount& b : r.backward) b = {1000 * number(), number(), number()};
    const auto times = [&](double of) { return of * static_cast<double>(next++) / (1 << 20); };
    for (const std::int64_t len : {64, 128})
        r.speed.rows.push_back({len, times(1), times(4), times(32), times(4096)});
    r.long_context = {number(),      number(),      number(),     number(),
                      real_number(), real_number(), real_number()};
    r.device = {"a device", "", 1000 * number(), number(), number(), real_number(), real_number()};
    return r;
}

// A figure that is left out of its list, its table or the screen is missing here.
TEST(Bench, EveryFigureIsRecordedAndOnTheScreen) {
    const BenchReport report = counted_through();
    std::string all = bench_records(report), paths;
    EXPECT_EQ(golden_difference("bench.jsonl", all), "");
    for (const Record& record : records_of(all))
        add_paths(record, record["record"].get<std::string>(), paths);
    EXPECT_EQ(golden_difference("bench_keys.txt", paths), "");
    EXPECT_EQ(golden_difference("bench.txt", screen_of(report)), "");
    std::istringstream lines(screen_of(report));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
    EXPECT_EQ(screen_of(read_bench(file_of(all))), screen_of(report));
    BenchReport without = report;
    without.device = {.name = {}, .not_run = "there is none"};
    EXPECT_TRUE(screen_of(without).ends_with("\nevery row on a GPU: not run: there is none\n"));
}

// (b) is no proof.
TEST(Bench, WhatIsProvenIsCounted) {
    BenchReport report;
    EXPECT_EQ(report.violated(), 0);
    report.forward.bounds[1][4].violated = 5;
    EXPECT_EQ(report.violated(), 0);
    report.certified[2].violated = 1;
    report.forward.bounds[3][3].violated = 10;
    report.backward[2].violated = 100;
    EXPECT_EQ(report.violated(), 111);
}

TEST(Bench, AMistakeIsToldWithItsPlace) {
    const std::string good = read_golden("bench.jsonl");
    EXPECT_EQ(bench_refusal(good), "");
    const auto says = [&](std::size_t line, const std::function<void(Record&)>& change) {
        std::vector<Record> records = records_of(good);
        change(records[line]);
        return bench_refusal(joined_records(records));
    };
    EXPECT_NE(says(0, [](Record& r) { r["v"] = 2; }).find("expected version 1"), std::string::npos);
    EXPECT_NE(says(1, [](Record& r) { r["filtered"].erase("p999"); }).find("p999 is missing"),
              std::string::npos);
    EXPECT_NE(says(1, [](Record& r) { r["filtered"]["violated"] = 1e9; }).find(":2:"),
              std::string::npos);
    EXPECT_NE(says(2, [](Record& r) { r["f32"]["(c)"] = 1; }).find("unknown key (c)"),
              std::string::npos);
    EXPECT_NE(says(4, [](Record& r) { r.erase("bf16"); }).find("bf16 is missing"),
              std::string::npos);
    EXPECT_NE(says(5, [](Record& r) { r["rows"][1]["plain"] = 0; }).find("more than none"),
              std::string::npos);
    EXPECT_NE(says(5, [](Record& r) { r["rows"].clear(); }).find("a row at least"),
              std::string::npos);
    EXPECT_NE(says(7, [](Record& r) { r["not_run"] = "why"; }).find("a device, or why not"),
              std::string::npos);
    std::vector<Record> records = records_of(good);
    for (std::size_t gone = 0; gone < records.size(); ++gone) {
        std::vector<Record> fewer = records;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(gone));
        EXPECT_NE(bench_refusal(joined_records(fewer)), "") << gone;
    }
    EXPECT_EQ(bench_refusal(good + "{}\n"), ":9:1: expected nothing more");
    EXPECT_EQ(bench_refusal(""), ": has no bench record");
}

}  // namespace
}  // namespace attest::ci
