#pragma once
// Random reports of a run, with every field that a record has, and texts as hostile as any
// kernel's. Include gtest before.

#include <array>
#include <limits>

#include "ci/record.hpp"
#include "ci/recounted.hpp"
#include "reference/problem/digest.hpp"
#include "reference/problem/generators_test.hpp"

namespace attest::ci {
namespace random_report {

using generate::coin;
using generate::one_of;
using generate::real;
using generate::whole;

inline std::int64_t count() {
    return whole(0, 1'000'000);
}
inline std::string text() {
    static const std::vector<std::string> texts{
        "",         "only when Tq ≠ Tk", "a \"quoted\" \\ line\n", "\x1b[2J\x07",
        "\xff\xc2", "not selected"};
    return texts[static_cast<std::size_t>(whole(0, 5))];
}
inline std::string id() {
    return sha256_hex(std::to_string(count())).substr(0, 8);
}
inline double ratio() {
    return coin() ? std::abs(real()) : coin() ? infinite : 0;
}
inline Case a_case() {
    return *any_case();
}
template <typename Make>
auto list(std::int64_t most, Make make) {
    std::vector<decltype(make())> out(static_cast<std::size_t>(whole(0, most)));
    for (auto& item : out) item = make();
    return out;
}
inline std::vector<std::string> texts() {
    return list(3, text);
}

inline search::Sizes sizes() {
    search::Sizes out;
    for (int n = 0; n < search::size_axis_count; ++n)
        out[static_cast<search::SizeAxis>(n)] = count();
    return out;
}
inline std::optional<worker::Fault> fault() {
    if (coin()) return std::nullopt;
    worker::Fault f;
    f.kind = one_of<worker::Fault::Kind>(static_cast<int>(worker::Fault::Kind::outside_all) + 1);
    f.stray = one_of<worker::Fault::Access>(3);
    f.workspace = coin();
    if (!f.workspace && coin()) f.tensor = one_of<Role>(role_count);
    f.offset_bytes = whole(-1000, 1000);
    f.before = coin();
    f.signal = text();
    f.sentence = text();
    return f;
}

inline RunHeader header() {
    RunHeader run{text(),  texts(), text(), text(), count(), text(), generate::seed(),
                  count(), count(), {},     {},     {},      {},     {},
                  {},      coin(),  text()};
    if (coin()) run.seconds = real();
    if (coin()) run.cases = count();
    if (coin()) run.shapes = count();
    run.profile.name = text();
    run.profile.version = count();
    run.profile.cases_per_law = count();
    run.profile.reach = sizes();
    run.profile.discard_max = real();
    run.profile.refuse_max = real();
    run.profile.undrawn_pairs_max = count();
    kernel::Manifest& m = run.kernel.manifest;
    m = kernel::parse_manifest(R"({"name": "n", "version": "1", "formats": ["bf16", "f64"]})",
                               "test");
    m.memory = one_of<kernel::Memory>(2);
    m.features = coin() ? FeatureSet::all() : FeatureSet(Feature::causal, Feature::gqa);
    m.takes.queries = one_of<kernel::Queries>(3);
    if (coin()) m.takes.orders = {AxisOrder::bthd};
    m.takes.lse_order = one_of<kernel::LseOrder>(2);
    m.gradients = {Role::d_q, Role::d_sinks, Role::d_slopes};
    m.numerics.tile = count();
    m.dialect.lse_base = one_of<LseBase>(2);
    run.kernel.id = run.kernel.typed = text();
    run.kernel.interface = one_of<kernel::KernelInterface>(4);
    run.kernel.sha256 = text();
    if (coin()) run.kernel.libraries = {{"libm.so.6", id()}, {text(), text()}};
    run.match = texts();
    run.all_cases = coin();
    run.until_first = coin();
    run.recorded = coin();
    run.threads = count();
    run.own_profile = text();
    run.profile.len_min = count();
    run.profile.laws = texts();
    run.profile.laws_excluded = texts();
    run.profile.backward = coin();
    run.profile.fails = texts();
    run.machine = {text(), text(), text(), text(), count(), count(), text()};
    return run;
}

inline search::LawReport law() {
    search::LawReport law;
    law.law = "family." + id();
    law.statement = text();
    law.compares = one_of<law::Compares>(4);
    law::Verdict& v = law.verdict;
    v.decision = one_of<law::Decision>(5);
    if (v.decision != law::Decision::holds && v.decision != law::Decision::violated)
        v.reason = {one_of<law::Reason::Kind>(15), text()};
    v.elements = count();
    v.undecided = count();
    if (coin()) v.statistic = {text(), real(), real(), real(), count()};
    if (coin()) v.pooled = {text(), real(), real(), real(), count()};
    if (coin()) {
        v.doubt.emplace().violation_class = one_of<law::ViolationClass>(3);
        v.doubt->problem = text();
        if (coin()) law.doubted = search::Doubted{count(), a_case()};
    }
    for (std::int64_t* n : {&law.cases, &law.discarded, &law.refused, &law.violated}) *n = count();
    law.seconds = real();
    if (coin()) law.largest = sizes();
    if (coin()) law.promised = sizes();
    if (coin()) law.refusals = {{"head dim 64 only", count()}, {text(), count()}};
    if (law.compares == law::Compares::bound && coin()) {
        search::Ratios& r = law.ratios.emplace();
        r.worst = {ratio(), id(), a_case()};
        for (std::int64_t& n : r.histogram.counts) n = whole(0, 9);
        r.histogram.zero = count();
        r.histogram.above = count();
        r.formats["f16"] = {count(), std::abs(real()), std::abs(real()), ratio()};
        r.nearest = list(3, id);
    }
    if (coin()) law.counterexample = id();
    if (coin()) law.cause = "c1";
    return law;
}

inline search::CaseReport tried() {
    search::CaseReport report{id(), "family.law", {}, {}};
    report.record = {whole(-9, 9), a_case(), {},      one_of<worker::Outcome>(8),
                     fault(),      real(),   sizes(), {},
                     {},           {}};
    report.record.outputs = coin() ? generate::seed() : 0;
    law::Verdict& v = report.record.verdict;
    v.decision = one_of<law::Decision>(5);
    v.elements = coin() ? count() : 0;
    v.undecided = count();
    if (coin()) v.reason = {one_of<law::Reason::Kind>(15), text()};
    if (coin()) v.statistic = {text(), real(), real(), real(), count()};
    if (v.statistic && coin()) v.statistic->pool = {{real(), real(), real(), count()}};
    if (coin()) v.doubt.emplace().problem = text();
    if (coin()) report.ratio = report.record.verdict.worst_ratio = ratio();
    return report;
}

inline search::DrawReport drawn() {
    search::DrawReport report{"family.law", whole(-9, 9), count(), count(), {}, {}, coin()};
    if (coin()) report.refusals = {{text(), count()}};
    if (coin()) report.nothing = {one_of<law::Reason::Kind>(15), text()};
    return report;
}

inline std::vector<std::string> digits(std::int64_t rows, std::int64_t columns, char last) {
    std::vector<std::string> out(static_cast<std::size_t>(rows),
                                 std::string(static_cast<std::size_t>(columns), '0'));
    for (std::string& row : out)
        for (char& c : row) c = static_cast<char>(whole('0', last));
    return out;
}

inline diagnosis::CounterexampleReport counterexample() {
    diagnosis::CounterexampleReport report;
    search::Counterexample& c = report.example;
    c.id = id();
    c.law = "family.law";
    c.smallest = a_case();
    c.outcome = one_of<worker::Outcome>(8);
    c.fault = fault();
    c.printed = text();
    c.verdict.violation = {text(),
                           one_of<Role>(role_count),
                           list(4, count),
                           text(),
                           real(),
                           real(),
                           coin() ? real() : std::numeric_limits<double>::quiet_NaN(),
                           one_of<law::BoundKind>(5),
                           law::ViolationClass::violation,
                           ratio()};
    c.found = {coin() ? -1 : count(), a_case(), {}, {}, {}, real(), {}, {}, {}, {}};
    c.evaluations = count();
    c.accepted = count();
    c.shrink_seconds = real();
    c.confirmed = {one_of<search::Confirmation>(7), {count(), count()}, {count(), count()}, {}};
    c.confirmed.before = list(2, [] {
        return search::EarlierCase{text(), a_case(), one_of<search::PlacementOrder>(2)};
    });
    c.steps = list(3, [] { return search::ShrinkStep{count(), text(), text(), text(), count()}; });
    if (coin()) report.ulps = count();
    report.boundary = {coin(), text(), count(), count(), count(), count(), texts(), {}};
    report.boundary.points = list(3, [] {
        return std::array<std::int64_t, 3>{count(), count(), whole(0, 1)};
    });
    diagnosis::Diagnosis& d = report.diagnosis;
    d.known = coin();
    d.too_large = coin();
    for (std::string* each : {&d.id, &d.says, &d.declared, &d.next_id, &d.skipped, &d.misread})
        *each = text();
    d.tells = one_of<law::Tells>(6);
    for (std::int64_t* n : {&d.agree, &d.of, &d.cases, &d.tried}) *n = count();
    if (!d.next_id.empty()) d.next_agree = count();
    report.pictures = list(3, [] {
        return diagnosis::Picture{text(), digits(3, 2, '1'), digits(3, 2, '1')};
    });
    if (coin()) report.weights = diagnosis::HeadWeights{{{real(), real()}}, {{real(), -INFINITY}}};
    if (coin()) report.map = diagnosis::ErrorMap{count(), count(), digits(whole(0, 3), 4, '6')};
    report.sanitizer = list(4, [] {
        diagnosis::SanitizerEntry entry{
            text(), one_of<diagnosis::SanitizerEntry::Verdict>(3), text(), {}, {}};
        if (coin()) entry.errors = count();
        entry.findings = {{text(), text()}};
        return entry;
    });
    report.cause = text();
    return report;
}

inline search::CoverageReport coverage() {
    search::CoverageReport c{
        one_of<Precision>(4), count(), {text(), text()}, {}, {}, {}, {}, count()};
    c.pairs = {count(), count(), count()};
    c.impossible = {{1, 0}};
    c.undrawn = {{1, 1}};
    if (coin()) c.violated = {{0, 0}, {1, 1}};
    return c;
}

inline RunEnd end() {
    RunEnd end;
    RunVerdict& v = end.verdict;
    v.decision = one_of<RunDecision>(4);
    v.exit = static_cast<int>(whole(0, 4));
    for (std::int64_t* n : {&v.holds, &v.violated, &v.inconclusive, &v.not_applicable, &v.not_run,
                            &v.cases, &v.elements, &end.lines})
        *n = count();
    end.seconds = real();
    end.interrupted = coin();
    end.narrowed = texts();
    end.shapes_chosen = texts();
    end.shapes_visited = texts();
    end.ended = text();
    end.unread = texts();
    end.oracle = text();
    end.narrow = coin();
    end.at = text();
    end.kernel_sha256 = text();
    if (coin()) end.libraries = {{text(), id()}};
    end.sha256 = id();
    return end;
}

inline std::vector<std::string> lines_of(const RunReport& report) {
    std::vector<std::string> lines = record_lines(report);
    if (report.end) lines.push_back(record_line(*report.end));
    return lines;
}

inline RunReport make() {
    RunReport report;
    report.run = header();
    report.laws = list(3, law);
    report.cases = list(3, tried);
    report.draws = list(2, drawn);
    report.counterexamples = list(2, counterexample);
    report.causes = list(2, [] {
        return diagnosis::CauseReport{id(), text(), id(), texts(), coin(), texts()};
    });
    report.coverage = list(2, coverage);
    if (coin()) report.end = end();
    return report;
}

}  // namespace random_report
}  // namespace attest::ci
