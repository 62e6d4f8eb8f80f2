#include "properties/diagnosis/diagnose.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "properties/diagnosis/agreement.hpp"
#include "properties/diagnosis/coarser_step.hpp"
#include "properties/diagnosis/contradiction.hpp"
#include "properties/diagnosis/diagnose_backward.hpp"
#include "properties/diagnosis/diagonal.hpp"
#include "properties/diagnosis/dropped_forward.hpp"
#include "properties/diagnosis/each_alone.hpp"
#include "properties/diagnosis/experiment.hpp"
#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/narrow_output.hpp"
#include "properties/diagnosis/own_temperature.hpp"
#include "properties/diagnosis/relatives.hpp"
#include "properties/diagnosis/scope.hpp"
#include "properties/diagnosis/some_rows.hpp"
#include "properties/diagnosis/step_experiment.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

// What only the evidence can tell, where nothing else explains it. And a small case has several
// diagonals, or ways to count a tail: those of other cases decide.
std::vector<Deviation> further_deviations(const std::vector<Explanation>& accepted,
                                          const AllEvidence& evidence) {
    const auto some_of = [&accepted](const char* family) {
        return std::ranges::any_of(
            accepted, [family](const Explanation& e) { return e.id.starts_with(family); });
    };
    if (std::ranges::all_of(accepted, &Explanation::refuted)) return fitted_deviations(evidence);
    if (some_of("causal_")) return diagonal_candidates(evidence.wrong);
    if (some_of("tail_padded_")) {
        std::vector<Deviation> list = tile_candidates();
        std::ranges::move(counted_without_keys(evidence.paged()), std::back_inserter(list));
        return list;
    }
    return {};
}

Diagnosis known(const Explanation& explanation, Diagnosis rest) {
    static_cast<Explanation&>(rest) = explanation;
    rest.known = true;
    return rest;
}

// A step of the sums shows in the output. What follows the scores is no error of a step.
std::vector<Explanation> steps_left(const std::vector<Evidence>& wrong,
                                    const std::function<bool(const std::string& id)>& refuted) {
    if (auto scaled = temperatures_of_calls(wrong)) return {*std::move(scaled)};
    std::vector<Explanation> steps = coarser_steps(wrong);
    if (refuted) std::erase_if(steps, [&](const Explanation& e) { return refuted(e.id); });
    return steps;
}

void add_what_says_less(std::vector<Explanation>& accepted, const AllEvidence& evidence,
                        const std::function<bool(const std::string& id)>& refuted) {
    if (accepted.empty()) accepted = narrower_outputs(evidence);
    if (auto beside = not_finite(evidence.wrong)) {
        tell_unwritten(*beside, evidence.wrong);
        accepted.push_back(std::move(*beside));
    }
    if (accepted.empty()) accepted = steps_left(evidence.wrong, refuted);
}

// Something predicts every call, within bounds that admit the truth as well: numbers taken for 0
// show in smaller ones, and others in larger ones.
bool fits_untold(const Diagnosis& found) {
    return !found.known && found.of > 0 && found.agree == found.of;
}

/// Of what does not explain it all, what comes nearest.
void tell_next(std::span<const DeviationScore> others, bool first, Diagnosis& found) {
    const auto agree = [](const DeviationScore& s) { return s.count.agree; };
    const auto next = std::ranges::max_element(others, {}, agree);
    if (next == others.end()) return;
    found.next_id = next->deviation->id;
    found.next_agree = next->count.agree;
    if (!first) return;
    found.agree = next->count.agree;
    found.of = next->count.of;
}

/// It holds in the calls in which it was said to hold.
bool said(const NamedDeviations& named, const Explanation& e) {
    return e.holds_in && std::ranges::any_of(named, [&e](const NamedDeviation& n) {
               return n.id == e.id && n.says == e.says;
           });
}

Explanation depends_on(std::string id, const std::string& what) {
    Explanation d;
    d.id = std::move(id);
    d.tells = law::Tells::memory;
    d.says = "an answer that depends on " + what + "; by itself each is right";
    return d;
}

Explanation unsteady() {
    Explanation d;
    d.id = "unsteady";
    d.tells = law::Tells::memory;
    d.says = "now and then another answer to the same call, with no other beside it";
    return d;
}

}  // namespace

void add_named(NamedDeviations& named, const Diagnosis& diagnosis) {
    const auto add = [&named](const Explanation& e) {
        if (e.deviation && std::ranges::find(named, e.id, &NamedDeviation::id) == named.end())
            named.push_back({e.id, e.says, e.deviation});
    };
    if (!diagnosis.known || diagnosis.backward) return;
    add(diagnosis);
    std::ranges::for_each(diagnosis.also, add);
}

Explanation remembered() {
    return depends_on("remembers", "earlier calls");
}

Diagnosis explain_evidence(const AllEvidence& evidence,
                           const std::function<bool(const std::string& id)>& refuted,
                           const NamedDeviations& named) {
    Diagnosis found;
    found.cases = static_cast<std::int64_t>(evidence.wrong.size());
    if (evidence.wrong.empty()) return found;
    const JudgedPart part = part_of(evidence.wrong);
    const bool output = part == JudgedPart::both;

    std::vector<DeviationScore> scores;
    const auto try_all = [&](std::span<const Deviation> list) {
        for (const Deviation& d : list) {
            DeviationScore s = score(d, evidence.wrong, part);
            if (s.silent < found.cases) scores.push_back(s);
        }
    };
    const auto explains = [&found](const DeviationScore& s) {
        return s.fits(found.cases) && s.count.telling >= telling_elements_min;
    };
    const auto accept = [&] {
        const auto others = std::stable_partition(scores.begin(), scores.end(), explains);
        // What has something to say of more of the calls stands before what is silent.
        std::stable_sort(scores.begin(), others,
                         [](const auto& a, const auto& b) { return a.silent < b.silent; });
        std::vector<Explanation> accepted;
        for (auto s = scores.begin(); s != others; ++s)
            accepted.push_back(explanation_of(*s, evidence, part));
        return accepted;
    };
    for (const NamedDeviation& d : named) try_all({d.deviation.get(), 1});
    std::vector<Explanation> accepted = accept();
    std::erase_if(accepted, [&](const Explanation& e) { return e.refuted && !said(named, e); });
    std::vector<Deviation> more_deviations, of_rows;
    if (accepted.empty()) {
        scores.clear();
        try_all(deviations());
        accepted = accept();
        more_deviations = further_deviations(accepted, evidence);
        try_all(more_deviations);
        if (!more_deviations.empty()) accepted = accept();
        if (std::ranges::all_of(accepted, &Explanation::unlimited))
            of_rows = in_some_rows(deviations(), evidence);
        try_all(of_rows);
        if (!of_rows.empty()) accepted = accept();
    }
    found.tried = static_cast<std::int64_t>(scores.size());
    // What right calls refute is said where it is known where it holds, and behind what they agree
    // with.
    found.limit_open = std::erase_if(accepted, &Explanation::unlimited) > 0;
    std::ranges::stable_partition(accepted, [](const Explanation& e) { return !e.refuted; });
    if (output) add_what_says_less(accepted, evidence, refuted);
    tell_next({std::ranges::find_if_not(scores, explains), scores.end()}, accepted.empty(), found);
    if (accepted.empty()) {
        if (output) found.fits = fitting_steps(evidence.wrong);
        for (const DeviationScore& s : scores)
            if (s.fits(found.cases) && s.count.telling > 0)
                if (Explanation weak = explanation_of(s, evidence, part); !weak.refuted)
                    found.also.push_back(std::move(weak));
        return found;
    }
    found.also.assign(accepted.begin() + 1, accepted.end());
    return known(accepted.front(), std::move(found));
}

namespace {

Diagnosis diagnose_calls(search::Kernel& kernel, const search::Counterexample& counterexample,
                         AllEvidence evidence, const NamedDeviations& named, bool races) {
    const law::Property* law = law::find_property(counterexample.law);
    // What is too large to be looked at is not known to be right by itself.
    const bool right_alone = evidence.wrong.empty() && !too_large(counterexample.smallest);
    if (evidence.wrong.empty() &&
        (evidence.remembers || (right_alone && law != nullptr && law->after_other_calls)))
        return known(remembered(), {});
    if (right_alone && law != nullptr && law->needs.concurrent)
        return known(changes_to_and_fro(kernel, counterexample.smallest)
                         ? unsteady()
                         : depends_on("disturbed", "what other threads call"),
                     {});
    if (std::ranges::all_of(evidence.wrong, holds_nonfinite)) {
        std::vector<Case> cases = relatives(counterexample.smallest);
        cases.insert(cases.begin(), {counterexample.smallest, counterexample.found.tried});
        for (const Case& c : cases) add_poisoned(evidence, kernel, c);
    }
    if (std::optional<Explanation> leak = hidden_leaks(kernel, evidence.wrong)) {
        Diagnosis rest;
        rest.cases = static_cast<std::int64_t>(evidence.wrong.size());
        return known(*leak, rest);
    }
    const auto refuted = [&](const std::string& id) {
        return races || step_refuted(kernel, counterexample.smallest, id);
    };
    Diagnosis found = explain_evidence(evidence, refuted, named);
    if (fits_untold(found)) {
        add_magnitudes(evidence, kernel, counterexample.smallest);
        found = explain_evidence(evidence, refuted);
    }
    if ((found.known && found.deviation) || found.limit_open) {
        add_neighbours(evidence, kernel, counterexample.smallest);
        add_magnitudes(evidence, kernel, counterexample.smallest);
        if (found.limit_open || contradicted(found, evidence)) {
            const Diagnosis first = std::move(found);
            NamedDeviations before = named;
            add_named(before, first);
            found = explain_evidence(evidence, refuted, before);
            if (!found.known)
                if (auto shorter = of_shorter(first, evidence, refuted)) found = *shorter;
        }
    }
    if (!found.known || found.general)
        if (const auto read = workspace_read(evidence.wrong))
            found = known(*read, std::move(found));
    if (!found.known || found.general)
        if (const auto cut = offsets_cut(kernel, evidence.wrong))
            found = known(*cut, std::move(found));
    if (!found.known || found.general)
        if (const auto strides = strides_ignored(kernel, evidence.wrong))
            found = known(*strides, std::move(found));
    found.evidence = std::make_shared<const AllEvidence>(evidence);
    found.too_large = evidence.wrong.empty() && too_large(counterexample.smallest);
    return found;
}

Diagnosis diagnose_forward(search::Kernel& kernel, const search::Counterexample& counterexample,
                           const std::vector<search::CaseRecord>& records,
                           const NamedDeviations& named, bool races) {
    Diagnosis found = diagnose_calls(
        kernel, counterexample, gather_evidence(kernel, counterexample, records), named, races);
    if (found.known || races || !found.evidence || !differs_alone(kernel, *found.evidence))
        return found;
    EachAlone alone(kernel);
    return diagnose_calls(alone, counterexample, gather_evidence(alone, counterexample, records),
                          named, races);
}

}  // namespace

Diagnosis diagnose(search::Kernel& kernel, const search::Counterexample& counterexample,
                   const std::vector<search::CaseRecord>& records, const NamedDeviations& named,
                   bool races) {
    if (counterexample.outcome != worker::Outcome::ok || counterexample.fault) return {};
    if (auto backward = diagnose_backward(kernel, counterexample, records)) return *backward;
    if (counterexample.smallest.problem.dropout.p == 0)
        return diagnose_forward(kernel, counterexample, records, named, races);
    if (!wrong_without_dropout(kernel, counterexample))
        return diagnose_dropout(kernel, counterexample, records);
    search::Counterexample plain = counterexample;
    std::vector<search::CaseRecord> plain_records = records;
    plain.smallest.problem.dropout = plain.found.tried.problem.dropout = {};
    for (search::CaseRecord& record : plain_records) record.tried.problem.dropout = {};
    Diagnosis found = diagnose_forward(kernel, plain, plain_records, named, races);
    const auto told = [](Explanation& e) {
        for (std::string* text : {&e.says, &e.bare})
            if (!text->empty()) *text += ", seen without dropout";
    };
    if (found.known) told(found);
    std::ranges::for_each(found.also, told);
    return found;
}

}  // namespace attest::diagnosis
