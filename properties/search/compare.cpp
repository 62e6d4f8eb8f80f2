#include "properties/search/compare.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {

namespace {

/// An element that does not plainly agree.
struct Suspect {
    Role role;
    std::int64_t row, flat;
    bool disagrees;  ///< else undecided
    double ratio;
};

struct SuspectTally {
    std::int64_t elements = 0;
    double worst_ratio = 0;  ///< of the elements that agree
    std::vector<Suspect> suspects;
};

Precision lse_format(const Problem& problem) noexcept {
    return problem.format_q == Precision::f64 ? Precision::f64 : Precision::f32;
}

/// Elements [first, first + count) of what was observed against `expected`, count elements.
void judge_elements(SuspectTally& tally, const std::vector<double>& observed, std::int64_t first,
                    std::int64_t count, const bound::ExpectedElement* expected, Precision format,
                    Role role, std::int64_t row) {
    for (std::int64_t flat = first; flat < first + count; ++flat) {
        const double seen = observed[static_cast<std::size_t>(flat)];
        const bound::Agreement agreement = bound::judge(seen, expected[flat - first], format);
        const double ratio = bound::error_ratio(seen, expected[flat - first], format);
        ++tally.elements;
        if (agreement == bound::Agreement::agrees) {
            tally.worst_ratio = std::max(tally.worst_ratio, ratio);
        } else {
            const bool disagrees = agreement == bound::Agreement::disagrees;
            tally.suspects.push_back({role, row, flat, disagrees, ratio});
        }
    }
}

SuspectTally tally_of(const Comparison& c, const bound::Expected& expected) {
    SuspectTally tally;
    const bool has_o = c.observed.has(Role::o);
    const std::vector<double> o = has_o ? c.observed[Role::o].to_doubles() : std::vector<double>{};
    const bool has_lse = c.observed.has(Role::lse);
    const std::vector<double> lse =
        has_lse ? c.observed[Role::lse].to_doubles() : std::vector<double>{};
    const Problem& p = c.problem;
    const std::int64_t width = value_dim(p), all = p.batch * p.heads_q * p.len_q;
    const auto rows = static_cast<std::int64_t>(expected.row_empty.size());
    require(expected.rows.empty() ? rows == all : rows == std::ssize(expected.rows),
            "what is expected is of the rows it says");
    require((!has_o || std::ssize(o) == all * width) && (!has_lse || std::ssize(lse) == all),
            "observed and expected outputs have one shape");
    for (std::int64_t n = 0; n < rows; ++n) {
        const auto at = static_cast<std::size_t>(n);
        const std::int64_t row = expected.rows.empty() ? n : expected.rows[at];
        const bool empty = expected.row_empty[at] != 0;
        if (empty && c.dialect.empty_row == EmptyRow::refuse) continue;
        if (has_o)
            judge_elements(tally, o, row * width, width, expected.output.data() + n * width,
                           p.format_o, Role::o, row);
        if (has_lse && !(empty && c.dialect.empty_row == EmptyRow::nan))
            judge_elements(tally, lse, row, 1, expected.lse.data() + n, lse_format(p), Role::lse,
                           row);
    }
    return tally;
}

/// Disagreements first, the worst of them first; NaN ratios are the worst. Ties by place.
void order(std::vector<Suspect>& suspects) {
    const auto rank = [](const Suspect& s) { return std::isnan(s.ratio) ? infinite : s.ratio; };
    std::stable_sort(suspects.begin(), suspects.end(), [&](const Suspect& a, const Suspect& b) {
        if (a.disagrees != b.disagrees) return a.disagrees;
        return rank(a) > rank(b);
    });
}

std::string place(const Problem& problem, const std::vector<std::int64_t>& index, Role role) {
    std::string text = role == Role::lse ? "log-sum-exp of query " : "output of query ";
    text += std::to_string(index[2]);
    if (problem.heads_q > 1) text += ", head " + std::to_string(index[1]);
    if (problem.batch > 1) text += ", sequence " + std::to_string(index[0]);
    if (role == Role::o && value_dim(problem) > 1) text += ", channel " + std::to_string(index[3]);
    return text;
}

law::Violation violation_at(const Comparison& c, const Suspect& suspect,
                            const bound::ExpectedElement& expected) {
    const Problem& p = c.problem;
    const bool is_lse = suspect.role == Role::lse;
    law::Violation v;
    v.tensor = suspect.role;
    v.index = {suspect.row / (p.heads_q * p.len_q), suspect.row / p.len_q % p.heads_q,
               suspect.row % p.len_q};
    if (!is_lse) v.index.push_back(suspect.flat % value_dim(p));
    v.element_name = place(p, v.index, suspect.role);
    v.problem = "the " + v.element_name + " is outside its bound of the reference";
    v.expected = expected.value;
    v.observed = c.observed[suspect.role].get(suspect.flat);
    v.bound = expected.bound + expected.error;
    v.bound_kind = law::BoundKind::derived;
    v.ratio = bound::error_ratio(v.observed, expected, is_lse ? lse_format(p) : p.format_o);
    return v;
}

/// The element of a suspect in what is expected of its row alone.
const bound::ExpectedElement& element_of(const bound::Expected& of_row, const Suspect& s) {
    if (s.role == Role::lse) return of_row.lse.front();
    return of_row.output[static_cast<std::size_t>(s.flat % of_row.output_shape[3])];
}

/// One row again in exact arithmetic: the first of its suspects that still disagrees, or how many
/// are still open.
struct Second {
    const Suspect* confirmed = nullptr;
    std::int64_t undecided = 0;
    std::int64_t withdrawn = 0;  ///< disagreements that exact arithmetic does not share
};

Second look_again(const Comparison& c, const std::vector<Suspect>& suspects, std::int64_t row,
                  const bound::Expected& exact) {
    Second second;
    for (const Suspect& s : suspects) {
        if (s.row != row) continue;
        const bool is_lse = s.role == Role::lse;
        const bound::ExpectedElement& e = element_of(exact, s);
        const Precision format = is_lse ? lse_format(c.problem) : c.problem.format_o;
        switch (bound::judge(c.observed[s.role].get(s.flat), e, format)) {
            case bound::Agreement::agrees:
                second.withdrawn += s.disagrees ? 1 : 0;
                break;
            case bound::Agreement::undecided:
                ++second.undecided;
                break;
            case bound::Agreement::disagrees:
                if (second.confirmed == nullptr) second.confirmed = &s;
                break;
        }
    }
    return second;
}

}  // namespace

law::Judgement compare_with(const Comparison& comparison, const bound::Expected& expected) {
    SuspectTally tally = tally_of(comparison, expected);
    order(tally.suspects);
    std::vector<std::int64_t> seen;
    std::int64_t undecided = 0, withdrawn = 0;
    for (const Suspect& suspect : tally.suspects) {
        if (std::find(seen.begin(), seen.end(), suspect.row) != seen.end()) continue;
        seen.push_back(suspect.row);
        const bound::Expected exact =
            oracle::attend_rows(comparison.problem, comparison.dialect, comparison.numerics,
                                comparison.inputs, {suspect.row}, oracle::Arithmetic::exact);
        const Second second = look_again(comparison, tally.suspects, suspect.row, exact);
        if (second.confirmed != nullptr) {
            const Suspect& s = *second.confirmed;
            return law::violated(violation_at(comparison, s, element_of(exact, s)), tally.elements);
        }
        undecided += second.undecided;
        withdrawn += second.withdrawn;
    }
    if (withdrawn > 0 || undecided > 0) {
        return {.elements = tally.elements,
                .undecided = undecided,
                .worst_ratio = tally.worst_ratio,
                .open = withdrawn > 0 ? "double-double and exact arithmetic disagree on an element"
                                      : "exact arithmetic could not decide an element"};
    }
    return law::holds(tally.elements, tally.worst_ratio);
}

law::Judgement compare_as(const Comparison& comparison, const bound::Expected& expected,
                          law::ViolationClass grade) {
    SuspectTally tally = tally_of(comparison, expected);
    order(tally.suspects);
    if (tally.suspects.empty() || !tally.suspects.front().disagrees)
        return law::holds(tally.elements, tally.worst_ratio);
    const Suspect& s = tally.suspects.front();
    const auto at = static_cast<std::size_t>(s.flat);
    law::Violation v =
        violation_at(comparison, s, s.role == Role::lse ? expected.lse[at] : expected.output[at]);
    const bool declared = grade == law::ViolationClass::structure;
    v.problem = "the " + v.element_name +
                (declared ? " is not what the declared tile and rounding of the weights compute"
                          : " is further from the reference than random roundings explain");
    v.bound_kind = declared ? law::BoundKind::declared : law::BoundKind::statistic;
    v.violation_class = grade;
    return law::violated(std::move(v), tally.elements);
}

}  // namespace attest::search
