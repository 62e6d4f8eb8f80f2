// The list of fields of a counterexample.

#include <algorithm>

#include "ci/number.hpp"
#include "ci/record.hpp"
#include "ci/record_reader.hpp"
#include "ci/record_writer.hpp"

namespace attest::ci {

namespace {

constexpr std::size_t line_max = 64 * 1024;  // of bytes: readers of result.jsonl may rely on it
constexpr std::size_t steps_max = 64;        // of the shrinker that are kept

/// A real to the bit, and as people read it.
template <typename V>
void value_fields(V& v, const char* key, double& value, const std::string& decimal) {
    v.group(key, [&](V& both) {
        both("hex", AsHex{value});
        both.told("decimal", decimal);
    });
}

template <typename V>
void violation_fields(V& v, law::Violation& violation) {
    v("problem", violation.problem);
    v.group("at", [&](V& at) {
        at("tensor", violation.tensor);
        at("index", violation.index);
        at("name", violation.element_name);
    });
    const auto [expected, observed] = value_texts(violation.expected, violation.observed);
    value_fields(v, "expected", violation.expected, expected);
    value_fields(v, "observed", violation.observed, observed);
    v.group("bound", [&](V& bound) {
        bound("kind", violation.bound_kind);
        bound("hex", AsHex{violation.bound});
        bound.told("decimal", bound_text(violation.bound));
    });
    v("ratio", violation.ratio);
}

}  // namespace

template <typename V>
void fields(V& v, search::CaseRecord& found) {
    std::int64_t number = std::max<std::int64_t>(0, found.number);
    bool stored = found.number < 0;
    v("case_number", number);
    v.added("stored", stored);
    found.number = stored ? -1 : number;
    v("line", found.tried);
    v("seconds", AsNumber{found.seconds});
}

template <typename V>
void fields(V& v, search::ShrinkStep& step) {
    v("evaluation", step.evaluation);
    v("pass", step.pass);
    v("change", step.change);
    v("line", step.line);
    v("scores", step.scores);
}

template <typename V>
void fields(V& v, search::Replays& replays) {
    v("failed", replays.failed);
    v("of", replays.of);
}

template <typename V>
void fields(V& v, search::EarlierCase& earlier) {
    bool odd = earlier.placement == search::PlacementOrder::odd;
    v("law", earlier.law);
    v("line", earlier.tried);
    v("odd", odd);
    earlier.placement = odd ? search::PlacementOrder::odd : search::PlacementOrder::even;
}

template <typename V>
void fields(V& v, search::Confirmed& confirmed) {
    v("how", confirmed.how);
    v("alone", confirmed.alone);
    v("one_processor", confirmed.one_processor);
    v.unless_empty("before", confirmed.before);
}

template <typename V>
void fields(V& v, diagnosis::Boundary& b) {
    v("says", b.says);
    v.added("found", b.found);
    v.group("inside", [&](V& inside) {
        inside("failed", b.inside_failed);
        inside("of", b.inside);
    });
    v.group("outside", [&](V& outside) {
        outside("failed", b.outside_failed);
        outside("of", b.outside);
    });
    v("axes", b.axes);
    v("points", b.points);
}

/// The second best explanation.
struct NextBest {
    std::string id;
    std::int64_t agree = 0;
};

template <typename V>
void fields(V& v, NextBest& next) {
    v("id", next.id);
    v("agree", next.agree);
}

template <typename V>
void fields(V& v, diagnosis::Diagnosis& d) {
    std::optional<law::Tells> tells;
    std::optional<NextBest> next;
    if (d.tells != law::Tells::nothing) tells = d.tells;
    if (!d.next_id.empty()) next = {d.next_id, d.next_agree};
    v("known", d.known);
    v.unless_empty("id", d.id);
    v.unless_empty("says", d.says);
    v.unless_empty("declared", d.declared);
    v.unless_empty("tells", tells);
    v("agree", d.agree);
    v("of", d.of);
    v("cases", d.cases);
    v.added("tried", d.tried);
    v.added("too_large", d.too_large);
    v.unless_empty("skipped", d.skipped);
    v.unless_empty("misread", d.misread);
    v("next", next);
    if constexpr (V::reading) {
        d.tells = tells.value_or(law::Tells::nothing);
        d.next_id = next.value_or(NextBest{}).id;
        d.next_agree = next.value_or(NextBest{}).agree;
    }
}

/// Rows of digits, each as wide as the first.
template <typename V>
void row_fields(V& v, const char* key, std::vector<std::string>& rows, const std::string& digits) {
    v(key, rows);
    const std::size_t columns = rows.empty() ? 0 : rows.front().size();
    v.told("rows", rows.size());
    v.told("cols", columns);
    v.require(key,
              std::ranges::all_of(rows,
                                  [&](const std::string& row) {
                                      return row.size() == columns &&
                                             row.find_first_not_of(digits) == row.npos;
                                  }),
              "rows as wide as each other, of the digits " + digits);
}

template <typename V>
void fields(V& v, diagnosis::Picture& picture) {
    v("line", picture.line);
    row_fields(v, "may", picture.may, "01");
    row_fields(v, "reads", picture.reads, "01");
    v.require("reads", picture.reads.size() == picture.may.size(), "as many rows as may");
}

template <typename V>
void fields(V& v, diagnosis::ErrorMap& map) {
    v("batch", map.batch);
    v("head", map.head);
    row_fields(v, "levels", map.levels, "0123456");
}

template <typename V>
void fields(V& v, diagnosis::HeadWeights& weights) {
    v("expected", AsHexRows{weights.expected});
    v("observed", AsHexRows{weights.observed});
    const auto alike = [](const auto& a, const auto& b) { return a.size() == b.size(); };
    v.require("observed", std::ranges::equal(weights.expected, weights.observed, alike),
              "as many weights as expected");
}

template <typename V>
void fields(V& v, diagnosis::SanitizerFinding& finding) {
    v("says", finding.says);
    v("kernel", OrNull{finding.kernel});
}

template <typename V>
void fields(V& v, diagnosis::SanitizerEntry& entry) {
    v("tool", entry.tool);
    v("verdict", entry.verdict);
    v("reason", OrNull{entry.reason});
    v("errors", entry.errors);
    v("findings", entry.findings);
    v.require("findings",
              entry.verdict != diagnosis::SanitizerEntry::Verdict::found || !entry.findings.empty(),
              "what was found");
}

template <typename V>
void counterexample_fields(V& v, diagnosis::CounterexampleReport& report) {
    search::Counterexample& c = report.example;
    v("id", AsId{c.id});
    v("law", c.law);
    v("cause", report.cause);
    v("line", c.smallest);
    v.same_case("case", c.smallest);
    v("outcome", c.outcome);
    v("fault", c.fault);
    v.unless_empty("printed", c.printed);
    violation_fields(v, V::reading ? c.verdict.violation.emplace() : *c.verdict.violation);
    v("ulps", report.ulps);
    v("found", c.found);
    v.group("shrink", [&](V& shrink) {
        shrink("evaluations", c.evaluations);
        shrink("accepted", c.accepted);
        shrink("seconds", AsNumber{c.shrink_seconds});
        bool proven = search::is_proven(c.confirmed.how);
        shrink("confirmed", proven);
        if (V::reading && proven) c.confirmed.how = search::Confirmation::alone;
        shrink("steps", c.steps);
    });
    v.added("confirmation", c.confirmed);
    v("boundary", report.boundary);
    v("diagnosis", report.diagnosis);
    v("picture", report.pictures);
    v.added("map", report.map);
    v.added("weights", report.weights);
    v.unless_empty("sanitizer", report.sanitizer);
}

void fields(RecordReader& v, diagnosis::CounterexampleReport& report) {
    report.example.verdict.decision = law::Decision::violated;
    counterexample_fields(v, report);
}

void fields(RecordWriter& v, diagnosis::CounterexampleReport& report) {
    counterexample_fields(v, report);
}

std::string record_line(diagnosis::CounterexampleReport report) {
    search::Counterexample& c = report.example;
    c.id = search::short_id(c.id);
    if (c.steps.size() > steps_max)  // the last are the telling ones
        c.steps.erase(c.steps.begin(), c.steps.end() - steps_max);
    for (int shorter = 0;; ++shorter) {  // the least telling goes first
        std::string line = RecordWriter::line_of("counterexample", report);
        if (line.size() < line_max || shorter == 4) return line;
        if (shorter == 0) report.map.reset();
        if (shorter == 1) report.weights.reset();
        if (shorter == 2) report.pictures.clear();
        if (shorter == 3) report.boundary.points.clear();
    }
}

}  // namespace attest::ci
