#include "properties/diagnosis/agreement.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <ranges>
#include <utility>

#include "properties/diagnosis/diagonal.hpp"
#include "properties/diagnosis/scope.hpp"

namespace attest::diagnosis {

namespace {

bool informative(const bound::ExpectedElement& e) {
    return !std::isfinite(e.value) || std::isfinite(e.bound);
}

// Elements of one output within the deviation's bound. Where all are, the truth itself, rounded to
// the format, is judged the same way: a deviation that admits it everywhere explains nothing.
AgreementCount count_output(const Tensor& observed,
                            const std::vector<bound::ExpectedElement>& predicted,
                            const std::vector<bound::ExpectedElement>& truth, Precision format) {
    AgreementCount count;
    const auto admitted = [&](std::size_t n, double value) {
        return bound::judge(value, predicted[n], format) != bound::Agreement::disagrees;
    };
    for (std::size_t n = 0; n < predicted.size(); ++n) {
        if (!informative(predicted[n])) continue;
        ++count.of;
        count.agree += admitted(n, observed.get(static_cast<std::int64_t>(n)));
    }
    if (!count.all()) return count;
    for (std::size_t n = 0; n < predicted.size() && n < truth.size(); ++n)
        count.telling +=
            informative(predicted[n]) && !admitted(n, round_to(truth[n].value, format));
    return count;
}

/// What is told of as left unwritten, and nothing else, predicts what nobody wrote: the NaN laid
/// there.
bool told_unwritten(const std::string& id) {
    return id == "nan" || id == "empty_row_nan";
}

bool predicts_nan(const bound::Expected& predicted) {
    return std::ranges::any_of(predicted.output,
                               [](const bound::ExpectedElement& e) { return std::isnan(e.value); });
}

/// What a kernel divides by nothing where it takes a row's last key away is not said by what it
/// does to rows that had none: NaN will do, and tells nothing.
void allow_nan_where_emptied(bound::Expected& predicted, const Evidence& e) {
    constexpr bound::ExpectedElement anything{0, 0, infinite};
    const Tensor& output = e.observed[Role::o];
    const auto dim = static_cast<std::size_t>(value_dim(e.asked.problem));
    for (std::size_t row = 0; row < predicted.row_empty.size(); ++row) {
        if (predicted.row_empty[row] == 0 || e.truth.row_empty[row] != 0) continue;
        const auto is_nan = [&](std::size_t c) {
            return std::isnan(output.get(static_cast<std::int64_t>(row * dim + c)));
        };
        const auto channels = std::views::iota(std::size_t{0}, dim);
        if (predicted.output.empty() || !std::ranges::all_of(channels, is_nan)) continue;
        for (const std::size_t c : channels) predicted.output[row * dim + c] = anything;
        if (row >= predicted.lse.size() || !e.observed.has(Role::lse)) continue;
        if (!std::isfinite(e.observed[Role::lse].get(static_cast<std::int64_t>(row))))
            predicted.lse[row] = anything;
    }
}

}  // namespace

JudgedPart part_of(const std::vector<Evidence>& wrong) {
    return std::ranges::any_of(wrong, &Evidence::output_wrong) ? JudgedPart::both : JudgedPart::lse;
}

namespace {

std::optional<AgreementCount> count_predicted(const Deviation& deviation,
                                              const Specification& asked, const Evidence& e,
                                              JudgedPart part) {
    const Problem& p = e.asked.problem;
    // Most are refuted by the log-sum-exp, and an output takes the reference to compute.
    if (deviation.lse_refutes && e.observed.has(Role::lse) && p.dropout.p == 0 &&
        deviation.lse_refutes(asked, e.truth, e.observed[Role::lse]))
        return AgreementCount{.of = 1};
    std::optional<bound::Expected> predicted = predict(deviation, asked, e.truth);
    if (!predicted) return std::nullopt;
    const bool output = part == JudgedPart::both && !predicted->output.empty();
    const bool lse = e.observed.has(Role::lse) && !predicted->lse.empty();
    if (e.output_wrong ? !output : e.lse_wrong ? !lse : !output && !lse) return std::nullopt;
    AgreementCount count;
    if (e.unwritten && !told_unwritten(deviation.id) && predicts_nan(*predicted)) {
        count.of = 1;
        return count;
    }
    if (e.observed.has(Role::o)) allow_nan_where_emptied(*predicted, e);
    if (output)
        count.add(count_output(e.observed[Role::o], predicted->output, e.truth.output, p.format_o));
    if (lse)
        count.add(count_output(e.observed[Role::lse], predicted->lse, e.truth.lse, lse_format(p)));
    if (count.of == 0) return std::nullopt;
    return count;
}

/// NaN in the log-sum-exp where it is a number.
bool has_stray_nan(const Evidence& e) {
    if (!e.lse_wrong) return false;
    const Tensor& lse = e.observed[Role::lse];
    for (std::size_t n = 0; n < e.truth.lse.size(); ++n)
        if (std::isfinite(e.truth.lse[n].value) &&
            std::isnan(lse.get(static_cast<std::int64_t>(n))))
            return true;
    return false;
}

}  // namespace

std::set<std::int64_t> parts_of_own_accord(const Problem& p) {
    constexpr std::int64_t least = 16, rows_most = 16;
    if (p.splits > 0 || p.len_q * group_size(p) > rows_most) return {};
    const std::int64_t keys = p.len_kv;
    std::set<std::int64_t> parts{2, 4, 8, 16};
    for (const std::int64_t each : {16, 32, 64, 128, 256, 512})
        parts.insert({keys / each, (keys + each - 1) / each});
    std::erase_if(parts,
                  [keys](std::int64_t n) { return n < 2 || n > (keys + least - 1) / least; });
    return parts;
}

std::optional<AgreementCount> count_call(const Deviation& deviation, const Evidence& e,
                                         JudgedPart part) {
    // Weights that are other finite ones make no NaN, however keys are parted.
    if (deviation.lse_refutes && has_stray_nan(e)) return AgreementCount{.of = 1};
    const auto count = count_predicted(deviation, e.asked, e, part);
    if (!deviation.by_parts || !count || count->all()) return count;
    Specification parted = e.asked;
    bool refuted = true;  // with keys parted in every way
    for (const std::int64_t n : parts_of_own_accord(e.asked.problem)) {
        parted.problem.splits = n;
        const auto own = count_predicted(deviation, parted, e, part);
        if (own && own->all()) return own;
        refuted = refuted && own;
    }
    return refuted ? count : std::nullopt;
}

DeviationScore score(const Deviation& deviation, const std::vector<Evidence>& wrong,
                     JudgedPart part, int refutations) {
    DeviationScore total{&deviation, {}, 0};
    for (const Evidence& e : wrong) {
        if (refutations == 0) break;
        const auto one = count_call(deviation, e, part);
        if (!one) {
            ++total.silent;
            continue;
        }
        total.count.add(*one);
        refutations -= !one->all();
    }
    return total;
}

void tell_unwritten(Explanation& found, const std::vector<Evidence>& wrong) {
    if (!std::ranges::any_of(wrong, &Evidence::unwritten)) return;
    const bool rows = found.id == "empty_row_nan";
    if (!rows && found.id != "nan" && found.id != "not_finite") return;
    found.says = rows ? "nothing where a query sees no key: its output is never written"
                 : found.id == "nan" ? "nothing: the output is never written"
                                     : "only a part: elements of the output are never written, the "
                                       "others are right";
    found.id += "_unwritten";
    found.declared.clear();
}

void limit(Explanation& e, const std::optional<Scope>& scope) {
    if (e.bare.empty()) e.bare = e.says;
    e.says += ", " + (scope ? scope->says : "in the cases that fail");
    if (!scope) return;
    e.holds_in = [before = e.holds_in, own = scope->holds](const Problem& p) {
        return (!before || before(p)) && own(p);
    };
}

std::vector<Problem> predicted_richer(const Deviation& deviation, const AllEvidence& evidence,
                                      JudgedPart part) {
    std::vector<Problem> list;
    for (const Evidence& e : evidence.richer)
        if (const auto count = count_call(deviation, e, part); count && count->all())
            list.push_back(e.asked.problem);
    return list;
}

Explanation explanation_of(const DeviationScore& s, const AllEvidence& evidence, JudgedPart part) {
    const Deviation& d = *s.deviation;
    Explanation found{d.id, d.says, {}, d.tells, s.count.agree, s.count.of};
    found.deviation = std::make_shared<const Deviation>(d);
    found.form_of = d.form_of;
    if (part == JudgedPart::lse && !d.formula) found.says = "in the log-sum-exp alone: " + d.says;
    if (d.declares) found.declared = d.declares(evidence.wrong.front().asked);
    tell_unwritten(found, evidence.wrong);
    std::vector<Problem> wrong, refuting;
    for (const Evidence& e : evidence.right) {
        const auto count = count_call(d, e, part);
        if (count && !count->all()) refuting.push_back(e.asked.problem);
    }
    found.refuted = !refuting.empty();
    if (!found.refuted) return found;
    for (const Evidence& e : evidence.wrong)
        if (count_call(d, e, part)) wrong.push_back(e.asked.problem);
    std::ranges::copy(predicted_richer(d, evidence, part), std::back_inserter(wrong));
    limit(found, scope_of(wrong, refuting));
    found.unlimited = !found.holds_in;
    return found;
}

std::optional<SharedExplanation> shared_explanation(const Deviation& deviation,
                                                    const AllEvidence& evidence) {
    const auto cases = static_cast<std::int64_t>(evidence.wrong.size());
    if (cases == 0) return std::nullopt;
    const JudgedPart part = part_of(evidence.wrong);
    const DeviationScore s = score(deviation, evidence.wrong, part, 2);
    const auto predicted = [&](const Evidence& e) { return agrees(deviation, e); };
    const bool fits = s.fits(cases) && s.count.telling > 0;
    if (!fits && (s.silent == cases || s.count.agree == 0)) return std::nullopt;
    const bool few = !fits && 2 * std::ranges::count_if(evidence.wrong, predicted) <= cases;
    if (few && !predicted(evidence.wrong.front())) return std::nullopt;
    SharedExplanation found{explanation_of(s, evidence, part), false};
    found.explanation.few = few;
    found.whole = fits && !found.explanation.unlimited;
    return found;
}

}  // namespace attest::diagnosis
