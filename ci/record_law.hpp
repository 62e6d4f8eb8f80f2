#pragma once
// The lists of fields of what a run says of one law and of one case (record_form.hpp).

#include <algorithm>
#include <cstdlib>

#include "ci/record_form.hpp"

namespace attest::ci {

template <typename V>
void fields(V& v, search::RatioHistogram& h) {
    v("counts", h.counts);
    v("zero", h.zero);
    v("above", h.above);
    v.told("log10_min", h.log10_min);
    v.told("per_decade", h.per_decade);
}

template <typename V>
void fields(V& v, search::FormatRatios& of) {
    v("cases", of.cases);
    v("median", of.median);
    v("p999", of.p999);
    v("worst", of.worst);
}

template <typename V>
void fields(V& v, search::WorstCase& worst) {
    v("ratio", worst.ratio);
    v("case", AsId{worst.id});
    v("line", worst.tried);
    v.told("format", name(worst.tried.problem.format_q));
}

template <typename V>
void fields(V& v, law::Statistic& s) {
    v("name", s.name);
    v("value", s.value);
    v("threshold", s.threshold);
    v("false_positive_rate", s.false_positive_rate);
    v("samples", s.samples);
    v.unless_empty("pool", s.pool);
}

/// Of a violation that is a doubt; that of a counterexample has more.
template <typename V>
void fields(V& v, law::Violation& doubt) {
    v("class", doubt.violation_class);
    v("says", doubt.problem);
}

template <typename V>
void fields(V& v, search::LawReport& law) {
    law::Verdict& verdict = law.verdict;
    v("law", law.law);
    v.told("family", law.family());
    v("statement", law.statement);
    v("compares", law.compares);
    v("verdict", verdict.decision);
    const bool decided =
        verdict.decision == law::Decision::holds || verdict.decision == law::Decision::violated;
    if (decided) verdict.reason = law::Reason();
    v("reason", OrNull{verdict.reason.text});
    // Without a kind, as earlier versions wrote it, a law that did not run is tried again.
    if (!decided && V::reading) verdict.reason.kind = law::Reason::Kind::law;
    if (!decided) v.added("reason_kind", verdict.reason.kind);
    v("cases", law.cases);
    v("discarded", law.discarded);
    v("refused", law.refused);
    v("violated", law.violated);
    v("elements", verdict.elements);
    v("undecided", verdict.undecided);
    v("seconds", AsNumber{law.seconds});
    v.unless_empty("refusals", law.refusals);
    v.unless_empty("largest", law.largest);
    v.unless_empty("promised", law.promised);
    if (law.compares == law::Compares::bound) {
        std::optional<search::WorstCase> worst;
        if (law.ratios) worst = law.ratios->worst;
        v.added("worst", worst);
        if (V::reading && worst) law.ratios.emplace().worst = *worst;
    }
    if (law.ratios) {
        v.added("histogram", law.ratios->histogram);
        v.added("formats", law.ratios->formats);
        v.added("nearest", law.ratios->nearest);
    }
    v.unless_empty("statistic", verdict.statistic);
    v.unless_empty("pooled", verdict.pooled);
    v.unless_empty("doubt", verdict.doubt);
    v.unless_empty("doubted", law.doubted);
    v.unless_empty("counterexample", law.counterexample);
    v.unless_empty("cause", law.cause);
}

/// Of a case known before, which no number makes again: its place among them, from the last on.
template <typename V>
void number_fields(V& v, std::int64_t& number) {
    std::int64_t counted = std::abs(number);
    bool stored = number < 0;
    v("number", counted);
    v.unless_empty("stored", stored);
    number = stored ? -std::max<std::int64_t>(1, counted) : counted;
}

template <typename V>
void fields(V& v, search::CaseReport& report) {
    search::CaseRecord& record = report.record;
    law::Verdict& verdict = record.verdict;
    v("id", AsId{report.id});
    v("law", report.law);
    v("line", record.tried);
    number_fields(v, record.number);
    v("verdict", verdict.decision);
    v.unless_empty("reason", verdict.reason.text);
    if (V::reading && !verdict.reason.text.empty()) verdict.reason.kind = law::Reason::Kind::law;
    if (!verdict.reason.text.empty()) v.added("reason_kind", verdict.reason.kind);
    v("ratio", report.ratio);
    v.unless_empty("elements", verdict.elements);
    v.unless_empty("undecided", verdict.undecided);
    v.unless_empty("statistic", verdict.statistic);
    v.unless_empty("doubt", verdict.doubt);
    v.unless_empty("largest", record.largest);
    v.unless_empty("outputs", AsHash{record.outputs});
    v("outcome", record.outcome);
    v("seconds", AsNumber{record.seconds});
    v.unless_empty("fault", record.fault);
    record.verdict.worst_ratio = report.ratio.value_or(0);
}

template <typename V>
void fields(V& v, search::DrawReport& report) {
    v("law", report.law);
    number_fields(v, report.number);
    v("discarded", report.discarded);
    v("refused", report.refused);
    v.unless_empty("refusals", report.refusals);
    v.unless_empty("nothing", report.nothing.text);
    if (V::reading && !report.nothing.text.empty()) report.nothing.kind = law::Reason::Kind::law;
    if (!report.nothing.text.empty()) v("nothing_kind", report.nothing.kind);
    v.unless_empty("inapplicable", report.inapplicable);
}

}  // namespace attest::ci
