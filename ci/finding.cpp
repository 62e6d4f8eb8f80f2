#include "ci/finding.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "ci/check_screen.hpp"
#include "ci/held_in.hpp"
#include "ci/number.hpp"
#include "properties/law/property.hpp"
#include "reference/problem/digest.hpp"
#include "reference/problem/text.hpp"

namespace attest::ci {

namespace {

bool is_of_path(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_-./+").find(c) != std::string_view::npos;
}

bool is_source(std::string_view file) {
    for (const std::string_view ending :
         {".cu", ".cuh", ".c", ".h", ".cc", ".hh", ".cpp", ".hpp", ".cxx", ".hip", ".py", ".rs"})
        if (file.size() > ending.size() && file.ends_with(ending)) return true;
    return false;
}

/// Every FILE:LINE in a sentence, as sanitizers and the simulated threads tell it.
void places_in(std::string_view text, std::vector<KernelPlace>& into) {
    for (std::size_t colon = text.find(':'); colon != text.npos;
         colon = text.find(':', colon + 1)) {
        std::size_t begin = colon, end = colon + 1;
        while (begin > 0 && is_of_path(text[begin - 1])) --begin;
        while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
        const std::string_view file = text.substr(begin, colon - begin);
        const auto line = parse_integer<std::int64_t>(text.substr(colon + 1, end - colon - 1));
        if (!line || *line < 1 || !is_source(file)) continue;
        into.push_back({std::string(file), *line});
    }
}

std::string base_name(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

/// What the failure itself names, before it the caller's --source, unless that is the same file: a
/// name without its folder that is the caller's gets it from there.
std::vector<KernelPlace> places_of(const RunReport& report,
                                   const diagnosis::CounterexampleReport& one) {
    std::vector<KernelPlace> places;
    if (one.died()) places_in(one.violation().problem, places);
    if (one.example.fault) places_in(one.example.fault->sentence, places);
    for (const diagnosis::SanitizerEntry& entry : one.sanitizer)
        for (const diagnosis::SanitizerFinding& finding : entry.findings)
            places_in(finding.says, places);
    const std::optional<KernelPlace> source = source_of(report);
    if (!source) return places;
    for (KernelPlace& place : places)
        if (place.file == base_name(source->file)) place.file = source->file;
    if (places.empty() || places.front().file != source->file)
        places.insert(places.begin(), *source);
    return places;
}

void say_diagnosis(const diagnosis::CounterexampleReport& one, RunFinding& out) {
    const diagnosis::Diagnosis& d = one.diagnosis;
    if (d.known) {
        out.computes = clean(d.says);
        if (d.of > 0)
            out.agree =
                "all " + count_text(d.of) + " elements are as that predicts, within the bound";
        out.declares = clean(d.declared);
    } else if (!d.skipped.empty()) {
        out.computes = "not analysed; " + clean(d.skipped);
    } else if (d.too_large) {
        out.computes = "not known; every failing case is too large to analyse";
    } else if (d.tried > 0) {
        const std::string tried = count_text(d.tried) + " known deviations tried, none accepted";
        if (d.misread.empty()) {
            out.computes = "not known; " + tried;
        } else {
            out.computes = clean(d.misread);
            out.agree = "why is not known; " + tried;
        }
    } else if (!one.died()) {
        out.computes = one.example.smallest.problem.dropout.p > 0
                           ? "not known; what forward drops is not analysed"
                           : "not known; each answer is within the bounds of the reference";
    }
}

/// An error is neither a pass nor a refusal: who takes fewer problems says so before the call. What
/// simulated threads do wrong ends as an error too, and is nobody's design; nor is what always
/// fails.
void say_remedy(const RunReport& report, const diagnosis::CounterexampleReport& one,
                RunFinding& out) {
    const diagnosis::Boundary& b = one.boundary;
    const bool some_hold = b.inside_failed < b.inside || b.outside_failed < b.outside;
    if (one.example.outcome != worker::Outcome::error || !some_hold ||
        report.run.kernel.manifest.simulated)
        return;
    const bool always = b.found && b.outside_failed == 0;  // "only when ..."
    const std::size_t behind = std::min(b.says.size(), std::string_view("only ").size());
    const std::string when = always ? ": " + clean(b.says.substr(behind)) : "";
    out.declares =
        "that it takes this; by design? say no in supports(), or in takes of its manifest" + when;
}

void say_boundary(const diagnosis::Boundary& b, RunFinding& out) {
    if (b.inside_failed == 0) return;
    out.share = count_text(b.inside_failed) + " of " + counted(b.inside, "case");
    if (b.found && b.outside > 0)
        out.share += "; else " + count_text(b.outside_failed) + " of " + count_text(b.outside);
    out.fails = clean(b.says);
}

}  // namespace

std::optional<KernelPlace> source_of(const RunReport& report) {
    const std::string source = clean(report.run.source);
    if (source.empty()) return std::nullopt;
    const std::size_t colon = source.rfind(':');
    return KernelPlace{source.substr(0, colon),
                       parse_integer<std::int64_t>(source.substr(colon + 1)).value_or(1)};
}

std::string ElementWords::line() const {
    if (empty()) return {};
    return observed + "   expected " + expected + (bound.empty() ? "" : "   " + bound) +
           (times.empty() ? "" : "   " + times);
}

ElementWords element_words(const law::Violation& v) {
    ElementWords words;
    if (v.index.empty()) return words;
    std::tie(words.expected, words.observed) = value_texts(v.expected, v.observed);
    if (std::isnan(v.expected) && std::isnan(v.observed)) {
        // Of two answers that should be one number neither is any.
        words.expected = "a number";
        return words;
    }
    if (v.bound_kind == law::BoundKind::derived) {
        // Of a NaN or an infinity that is expected nothing is within a bound.
        if (std::isfinite(v.expected))
            words.bound = v.bound == 0 ? "bound: exact" : "bound " + bound_text(v.bound);
        // Of a bound of 0 nothing is so many times as large.
        if (v.bound > 0 && v.ratio > 1 && std::isfinite(v.ratio))
            words.times = ratio_text(v.ratio) + " times the bound";
    } else if (v.bound_kind == law::BoundKind::statistic) {
        words.bound = "threshold " + bound_text(v.bound);
    } else if (v.bound_kind == law::BoundKind::bits) {
        words.bound = "bound: to the bit";
    } else if (v.bound_kind == law::BoundKind::exact) {
        words.bound = "bound: exact";
    }
    return words;
}

std::string RunFinding::when() const {
    if (fails.empty()) return {};
    return lead->boundary.found ? fails + " (" + share + ")" : "in " + share + ", " + fails;
}

std::string RunFinding::title() const {
    return laws.front() +
           (laws.size() > 1
                ? " and " + count_text(static_cast<std::int64_t>(laws.size()) - 1) + " more"
                : "");
}

std::string RunFinding::beside() const {
    if (other_numbers.empty()) return {};
    std::string text;
    for (const std::string& law : other_numbers) text += (text.empty() ? "" : ", ") + law;
    return text + ": wrong mostly where this shows, in other numbers than it predicts";
}

RunFinding finding_of(const RunReport& report, const diagnosis::CounterexampleReport& one,
                      const std::string& directory) {
    RunFinding out;
    out.lead = &one;
    out.proven = search::is_proven(one.example.confirmed.how);
    out.laws = {one.example.law};
    out.problem = clean(one.violation().problem);
    out.smallest = clean(print(one.example.smallest));
    out.confirmed = confirmation_text(one.example.confirmed);
    out.replay = replay_line(report.run.kernel, one.example.id, directory, one.example.outcome);
    if (one.example.outcome == worker::Outcome::ok) out.element = element_words(one.violation());
    say_diagnosis(one, out);
    say_boundary(one.boundary, out);
    say_remedy(report, one, out);
    out.held_in = held_in(report.run.kernel, out.problem);
    out.places = places_of(report, one);
    out.fingerprint = sha256_hex(report.run.kernel.manifest.name + "\n" + one.example.law + "\n" +
                                 print(one.example.smallest));
    return out;
}

// A death tells itself; what has no name is told from nothing that has one.
std::vector<std::string> proven_laws(const std::vector<RunFinding>& findings) {
    std::vector<std::string> laws;
    for (const RunFinding& f : findings)
        if (f.proven) laws.insert(laws.end(), f.laws.begin(), f.laws.end());
    return laws;
}

bool told_apart(const RunReport& report, const diagnosis::CauseReport& cause) {
    const diagnosis::CounterexampleReport* lead = report.counterexample(cause.lead);
    if (cause.known || lead == nullptr || lead->died()) return true;
    const auto& causes = report.causes;
    const auto own = std::ranges::find(causes, cause.id, &diagnosis::CauseReport::id);
    return std::none_of(causes.begin(), own, [](const auto& before) { return before.known; });
}

std::string causes_text(const RunReport& report) {
    std::int64_t causes = 0, rest = 0;
    for (const diagnosis::CauseReport& cause : report.causes)
        if (told_apart(report, cause))
            ++causes;
        else
            rest += static_cast<std::int64_t>(cause.laws.size());
    return counted(causes, "cause") + (rest > 0 ? ", " + count_text(rest) + " unexplained" : "");
}

std::vector<RunFinding> findings_of(const RunReport& report, const std::string& directory) {
    std::vector<RunFinding> all;
    for (const diagnosis::CauseReport& cause : report.causes) {
        const diagnosis::CounterexampleReport* lead = report.counterexample(cause.lead);
        if (lead == nullptr) continue;
        all.push_back(finding_of(report, *lead, directory));
        all.back().apart = told_apart(report, cause);
        for (const std::string& law : cause.laws)
            if (law != lead->example.law) all.back().laws.push_back(clean(law));
        for (const std::string& law : cause.other_numbers)
            all.back().other_numbers.push_back(clean(law));
    }
    for (const diagnosis::CounterexampleReport& one : report.counterexamples)
        if (!search::is_proven(one.example.confirmed.how))
            all.push_back(finding_of(report, one, directory));
    return all;
}

std::string reason_text(const search::LawReport& law) {
    std::string words(name(law.verdict.decision));
    std::ranges::replace(words, '_', ' ');
    return words + ": " + clean(law.verdict.reason.text);
}

std::vector<const search::LawReport*> nearest_laws(const RunReport& report, std::size_t most) {
    std::vector<const search::LawReport*> laws;
    for (const search::LawReport& law : report.laws)
        if (law.verdict.decision == law::Decision::holds && !law.verdict.doubt && law.ratios &&
            law.ratios->worst.ratio > 0)
            laws.push_back(&law);
    std::ranges::stable_sort(laws, std::greater(),
                             [](const search::LawReport* law) { return law->ratios->worst.ratio; });
    if (laws.size() > most) laws.resize(most);
    return laws;
}

std::int64_t Family::count(law::Decision decision) const {
    return std::ranges::count_if(
        laws, [&](const search::LawReport* law) { return law->verdict.decision == decision; });
}

std::vector<Family> families_of(const RunReport& report) {
    std::vector<Family> list;
    for (const search::LawReport& law : report.laws) {
        auto at = std::ranges::find(list, law.family(), &Family::name);
        if (at == list.end()) at = list.insert(list.end(), Family{law.family(), {}});
        at->laws.push_back(&law);
    }
    return list;
}

}  // namespace attest::ci
