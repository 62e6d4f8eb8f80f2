// The lists of fields of every report but a counterexample's.

#include "ci/record.hpp"

#include <fstream>

#include "ci/record_law.hpp"
#include "ci/record_reader.hpp"
#include "ci/record_writer.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

template <typename V>
void fields(V& v, KernelReport& kernel) {
    v("id", kernel.id);
    v.added("typed", kernel.typed);
    v("border", kernel.interface);
    v.added("file", OrNull{kernel.file});
    v.added("sha256", OrNull{kernel.sha256});
    v.unless_empty("barriers", kernel.barriers);
    v.unless_empty("options", kernel.options);
    v.unless_empty("libraries", kernel.libraries);
    v.rest(kernel.manifest);
}

template <typename V>
void fields(V& v, RunHeader& run) {
    v("command", run.command);
    v("argv", run.argv);
    v.group("attest", [&](V& attest) {
        attest("version", run.attest_version);
        attest("catalogue", run.catalogue);
        attest("laws", run.catalogue_laws);
    });
    v("started", run.started);
    v("seed", AsDigits{run.seed});
    v.group("shard", [&](V& shard) {
        shard("index", run.shard_index);
        shard("count", run.shard_count);
    });
    v.group("budget", [&](V& budget) {
        budget.added("seconds", run.seconds);
        budget.added("cases", run.cases);
        budget.added("shapes", run.shapes);
    });
    v("profile", run.profile);
    v("kernel", run.kernel);
    v("machine", run.machine);
    v.added("whole", run.whole);
    v.unless_empty("source", run.source);
    v.unless_empty("match", run.match);
    v.unless_empty("all_cases", run.all_cases);
    v.unless_empty("until_first", run.until_first);
    v.unless_empty("recorded", run.recorded);
    v.unless_empty("threads", run.threads);
    v.unless_empty("own_profile", run.own_profile);
}

template <typename V>
void fields(V& v, diagnosis::CauseReport& cause) {
    v("id", cause.id);
    v("title", cause.title);
    v("lead", AsId{cause.lead});
    v("laws", cause.laws);
    v("known", cause.known);
    v.unless_empty("other_numbers", cause.other_numbers);
}

template <typename V>
void fields(V& v, search::CoverageReport& c) {
    v("format", c.format);
    v("cases", c.cases);
    v("features", c.features);
    v("pairs", c.pairs);
    const std::size_t features = c.features.size();
    v.require("pairs", c.pairs.size() == features * (features + 1) / 2, "one count a pair");
    v("impossible", c.impossible);
    v("undrawn", c.undrawn);
    v.require("undrawn", c.impossible.size() + c.undrawn.size() <= c.pairs.size(), "fewer pairs");
    v.added("violated", c.violated);
    v("allowed", c.allowed);
}

template <typename V>
void fields(V& v, RunEnd& end) {
    RunVerdict& verdict = end.verdict;
    v("verdict", verdict.decision);
    v("exit", verdict.exit);
    v.group("laws", [&](V& laws) {
        laws.added("holds", verdict.holds);
        laws.added("violated", verdict.violated);
        laws.added("inconclusive", verdict.inconclusive);
        laws.added("not_applicable", verdict.not_applicable);
        laws.added("not_run", verdict.not_run);
    });
    v("cases", verdict.cases);
    v("elements", verdict.elements);
    v("seconds", AsNumber{end.seconds});
    v.unless_empty("interrupted", end.interrupted);
    v.unless_empty("ended", end.ended);
    v.unless_empty("unread", end.unread);
    v.unless_empty("narrowed", end.narrowed);
    v.unless_empty("shapes_chosen", end.shapes_chosen);
    v.unless_empty("shapes_visited", end.shapes_visited);
    v.unless_empty("oracle", end.oracle);
    v.unless_empty("narrow", end.narrow);
    v.unless_empty("at", end.at);
    v.unless_empty("kernel_sha256", end.kernel_sha256);
    v.unless_empty("libraries", end.libraries);
    v("lines", end.lines);
    v("sha256", end.sha256);
}

std::string profile_text(search::Profile profile) {
    return RecordWriter::line_of("profile", profile);
}

std::string record_line(RunHeader run) {
    return RecordWriter::line_of("run", run);
}
std::string record_line(search::LawReport law) {
    return RecordWriter::line_of("law", law);
}
std::string record_line(search::CaseReport tried) {
    return RecordWriter::line_of("case", tried);
}
std::string record_line(search::DrawReport draws) {
    return RecordWriter::line_of("draw", draws);
}
std::string record_line(diagnosis::CauseReport cause) {
    return RecordWriter::line_of("cause", cause);
}
std::string record_line(search::CoverageReport c) {
    return RecordWriter::line_of("coverage", c);
}
std::string record_line(RunEnd end) {
    return RecordWriter::line_of("end", end);
}

namespace {

template <typename Report>
Report report_in(RecordReader& v) {
    Report report;
    fields(v, report);
    v.finish();
    return report;
}

/// One line of a file. A record stands after the run's, and before its end.
void add_line(const JsonSource& source, std::optional<RunHeader>& run, RunReport& report) {
    const Json value = parse_json(source);
    RecordReader v(source, value);
    const std::string kind = v.kind();
    v.require("record", !report.end, "nothing after the end");
    v.require("record", run.has_value() == (kind != "run"), run ? "one run alone" : "a run first");
    if (kind == "run")
        run = report_in<RunHeader>(v);
    else if (kind == "law")
        report.add(report_in<search::LawReport>(v));
    else if (kind == "case")
        report.add(report_in<search::CaseReport>(v));
    else if (kind == "draw")
        report.add(report_in<search::DrawReport>(v));
    else if (kind == "counterexample")
        report.add(report_in<diagnosis::CounterexampleReport>(v));
    else if (kind == "cause")
        report.add(report_in<diagnosis::CauseReport>(v));
    else if (kind == "coverage")
        report.add(report_in<search::CoverageReport>(v));
    else if (kind == "end")
        report.end = report_in<RunEnd>(v);
    else
        v.require("record", false, "a record of a run");
}

}  // namespace

RunReport read_records(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw BadInput(path + ": cannot be read");
    RunReport report;
    std::optional<RunHeader> run;
    std::string line;
    for (std::int64_t number = 1; std::getline(file, line); ++number) {
        const bool cut = file.eof();  // no newline at its end
        try {
            add_line({line, path, number}, run, report);
        } catch (const BadInput&) {
            if (!cut) throw;
        }
    }
    if (!run) throw BadInput(path + ": has no run record");
    report.run = std::move(*run);
    return report;
}

}  // namespace attest::ci
