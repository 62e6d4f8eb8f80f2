#include <fmt/format.h>

#include <algorithm>

#include "ci/ci_formats.hpp"
#include "ci/doubt.hpp"
#include "ci/escape.hpp"

namespace attest::ci {

namespace {

std::string attribute(const char* name, const std::string& value) {
    return std::string(" ") + name + "=\"" + xml_escaped(value) + "\"";
}

std::string seconds(double value) {
    return fmt::format("{:.3f}", value);
}

/// The times of JUnit have no zone; ours are UTC.
std::string timestamp(const std::string& started) {
    return started.ends_with("Z") ? started.substr(0, started.size() - 1) : started;
}

// A line each of what is known of a failure.
std::string facts(const RunFinding& f) {
    std::string text;
    const auto line = [&](const char* key, const std::string& value) {
        if (!value.empty()) text += std::string(key) + ": " + xml_escaped(value) + "\n";
    };
    line("observed", f.element.line());
    line("it computes", f.computes);
    line("it declares", f.declares);
    line("held in", f.held_in);
    line("fails", f.when());
    line("smallest case", f.smallest);
    line("confirmed", f.confirmed);
    for (const KernelPlace& place : f.places)
        line("source", place.file + ":" + std::to_string(place.line));
    line("replay", f.replay);
    return text;
}

std::string failure(const RunReport& report, const search::LawReport& law,
                    const std::string& directory, std::string& source) {
    const diagnosis::CounterexampleReport* one = report.counterexample(law.counterexample);
    if (one == nullptr) return "<failure message=\"violated\" type=\"violated\"/>";
    RunFinding f = finding_of(report, *one, directory);
    const auto cause = std::ranges::find(report.causes, law.cause, &diagnosis::CauseReport::id);
    std::string shared;
    if (cause != report.causes.end() && cause->laws.size() > 1 && told_apart(report, *cause))
        shared = "cause: " + xml_escaped(cause->title) + ", which breaks " +
                 std::to_string(cause->laws.size()) + " laws\n";
    if (!f.places.empty())
        source = attribute("file", f.places.front().file) +
                 attribute("line", std::to_string(f.places.front().line));
    return "<failure" + attribute("message", f.problem) + " type=\"violated\">" + shared +
           facts(f) + "</failure>";
}

// Of what fails no test.
std::string doubt_text(const RunDoubt& doubt) {
    const std::string problem = decision_text(*doubt.law) + ": " + doubt.problem;
    std::string text = xml_escaped(problem, 1000) + "\n";
    if (!doubt.tried.empty())
        text += xml_escaped("case, " + doubt.share + ": " + doubt.tried, 5000) + "\n";
    if (!doubt.replay.empty()) text += "replay: " + xml_escaped(doubt.replay, 5000) + "\n";
    return "<system-out>" + text + "</system-out>";
}

std::string test_case(const RunReport& report, const search::LawReport& law,
                      const std::string& directory, const std::string& excuse) {
    std::string inside, source;
    if (!excuse.empty())
        inside = "<skipped" + attribute("message", "violated, " + excuse) + "/>";
    else if (law.verdict.decision == law::Decision::violated)
        inside = failure(report, law, directory, source);
    else if (law.verdict.decision != law::Decision::holds)
        inside = "<skipped" + attribute("message", reason_text(law)) + "/>";
    for (const RunDoubt& doubt : doubts_of(report))
        if (doubt.law == &law) inside += doubt_text(doubt);
    std::string text = "  <testcase" + attribute("classname", "attest." + law.family()) +
                       attribute("name", law.law.substr(law.law.find('.') + 1)) +
                       attribute("time", seconds(law.seconds)) + source;
    return text + (inside.empty() ? "/>\n" : ">" + inside + "</testcase>\n");
}

struct TestCounts {
    std::int64_t tests = 0, failures = 0, errors = 0, skipped = 0;
    double time = 0;
    void add(const TestCounts& other) {
        tests += other.tests;
        failures += other.failures;
        errors += other.errors;
        skipped += other.skipped;
        time += other.time;
    }
    std::string text() const {
        return attribute("tests", std::to_string(tests)) +
               attribute("failures", std::to_string(failures)) +
               attribute("errors", std::to_string(errors)) +
               attribute("skipped", std::to_string(skipped)) + attribute("time", seconds(time));
    }
};

std::string suite(const RunReport& report, const Family& family, const std::string& directory,
                  const GateReport* gate, TestCounts& all) {
    TestCounts counts;
    std::string cases;
    for (const search::LawReport* law : family.laws) {
        const bool violated = law->verdict.decision == law::Decision::violated;
        const std::string excuse = gate && violated ? gate->excuse_of({law->law}) : "";
        cases += test_case(report, *law, directory, excuse);
        const bool fails = violated && excuse.empty();
        counts.add(
            {1, fails, 0, !fails && law->verdict.decision != law::Decision::holds, law->seconds});
    }
    all.add(counts);
    return " <testsuite" + attribute("name", family.name) + counts.text() +
           attribute("timestamp", timestamp(report.run.started)) + ">\n" + cases +
           " </testsuite>\n";
}

// A run that neither holds nor is violated is no green one, though no test of it failed.
std::string undecided(const RunReport& report, TestCounts& all) {
    const RunVerdict& v = report.end->verdict;
    if (v.decision == RunDecision::holds || v.decision == RunDecision::violated) return {};
    const TestCounts counts{1, 0, 1, 0, 0};
    all.add(counts);
    return " <testsuite name=\"run\"" + counts.text() +
           attribute("timestamp", timestamp(report.run.started)) +
           ">\n  <testcase classname=\"attest\" name=\"verdict\" time=\"0.000\"><error" +
           attribute("message", headline(report)) +
           attribute("type", std::string(name(v.decision))) + "/></testcase>\n </testsuite>\n";
}

// What a gate holds against the candidate, which no law need have broken; what is waived is shown
// as that.
std::string gate_suite(const RunReport& report, const GateReport& gate, TestCounts& all) {
    TestCounts counts;
    std::string cases;
    const auto test = [&](const std::string& name, const std::string& inside) {
        cases += "  <testcase classname=\"attest.gate\"" + attribute("name", name) +
                 " time=\"0.000\"" + (inside.empty() ? "/>\n" : ">" + inside + "</testcase>\n");
        ++counts.tests;
    };
    for (const GateChange& change : gate.changes) {
        const std::string what = change.baseline + " → " + change.candidate;
        if (change.kind == GateChange::Kind::worse) {
            ++counts.failures;
            test(change.subject, "<failure" + attribute("message", what) + " type=\"worse\">" +
                                     xml_escaped(change.says) + "</failure>");
        } else if (change.kind == GateChange::Kind::waived) {
            ++counts.skipped;
            test(change.subject,
                 "<skipped" + attribute("message", what + ", waived: " + change.waiver) + "/>");
        }
    }
    if (counts.failures == 0) test("nothing worse", "");
    all.add(counts);
    return " <testsuite name=\"gate\"" + counts.text() +
           attribute("timestamp", timestamp(report.run.started)) + ">\n" + cases +
           " </testsuite>\n";
}

}  // namespace

std::string draw_junit(const RunReport& report, const std::string& directory,
                       const GateReport* gate) {
    TestCounts all;
    std::string suites;
    for (const Family& family : families_of(report))
        suites += suite(report, family, directory, gate, all);
    if (gate != nullptr) suites += gate_suite(report, *gate, all);
    suites += undecided(report, all);
    all.time = report.end->seconds;
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
           attribute("name",
                     "attest " + report.run.command + " " + report.run.kernel.manifest.name) +
           all.text() + ">\n" + suites + "</testsuites>\n";
}

}  // namespace attest::ci
