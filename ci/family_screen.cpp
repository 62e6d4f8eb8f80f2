// The laws by families: a mark each, and the words behind them. What was not asked for says
// nothing.

#include <algorithm>
#include <map>

#include "ci/check_screen.hpp"
#include "ci/doubt.hpp"
#include "ci/number.hpp"
#include "properties/search/glob.hpp"

namespace attest::ci {

namespace {

bool is_selected(const RunHeader& run, const search::LawReport& law) {
    return law.verdict.reason.kind != law::Reason::Kind::not_selected &&
           search::selected(run.match, law.law);
}

// The words after a family's marks: the worst verdict, or how near the holding laws came.
std::string tail_of(const Screen& s, const Family& f) {
    if (const std::int64_t n = f.count(law::Decision::violated))
        return s.bad(count_text(n) + " violated");
    if (const std::int64_t n = f.count(law::Decision::inconclusive))
        return s.warn(count_text(n) + " inconclusive");
    const auto is_doubted = [](const search::LawReport* law) {
        return mark_word(*law) == "doubted";
    };
    if (const auto n = std::ranges::count_if(f.laws, is_doubted))
        return s.warn(count_text(n) + " " +
                      decision_text(**std::ranges::find_if(f.laws, is_doubted)));
    double worst = -1;
    bool bits = true;
    for (const search::LawReport* law : f.laws) {
        if (law->verdict.decision != law::Decision::holds) continue;
        if (law->compares != law::Compares::bits) bits = false;
        if (law->ratios) worst = std::max(worst, law->ratios->worst.ratio);
    }
    if (worst == 0) return "holds" + s.dim(", exactly");
    if (worst > 0) return "holds" + s.dim(", worst " + ratio_text(worst) + " of the bound");
    return "holds" + (bits ? s.dim(", to the bit") : "");
}

// Of a family that nothing was asked of: what was cut off says more than what does not apply; else
// what is said of most of its laws.
std::string why_nothing_ran(const RunHeader& run, const Family& f) {
    std::map<std::string, int> laws_of;
    for (const search::LawReport* law : f.laws) {
        if (was_cut(*law)) return law->verdict.reason.text;
        if (is_selected(run, *law)) ++laws_of[law->verdict.reason.text];
    }
    const auto by_laws = [](const auto& one) { return one.second; };
    return std::ranges::max_element(laws_of, {}, by_laws)->first;
}

std::string marks_of(const Screen& s, const RunHeader& run, const Family& f) {
    std::string marks;
    for (const search::LawReport* law : f.laws)
        if (is_selected(run, *law)) marks += s.mark(mark_word(*law));
    return marks;
}

void draw_family(Screen& s, const RunHeader& run, const Family& f, int marks_most) {
    const std::string marks = marks_of(s, run, f);
    if (marks.empty()) return;
    std::int64_t cases = 0;
    for (const search::LawReport* law : f.laws)
        if (is_selected(run, *law)) cases += law->cases;
    constexpr int name_most = 14;
    const std::string left = s.pad("  " + f.name, name_most) + " " + s.pad(marks, marks_most) + " ";
    using enum law::Decision;
    if (f.count(holds) + f.count(violated) + f.count(inconclusive) > 0) {
        s.line(left + s.pad_left(count_text(cases), 6) + " " + s.dim("cases") + "  " +
               tail_of(s, f));
        return;
    }
    s.line(left + "  " + s.dim(clean(why_nothing_ran(run, f))), columns_of(left) + 2);
}

}  // namespace

void draw_families(Screen& s, const RunReport& report) {
    const std::vector<Family> families = families_of(report);
    int marks_most = 0;
    for (const Family& f : families)
        marks_most = std::max(marks_most, columns_of(marks_of(s, report.run, f)));
    for (const Family& f : families) draw_family(s, report.run, f, marks_most);
    std::string marks;
    for (const std::string_view word :
         {"holds", "doubted", "violated", "inconclusive", "not_run", "not_applicable"}) {
        const auto same = [&](const search::LawReport& law) {
            return is_selected(report.run, law) && mark_word(law) == word;
        };
        if (std::ranges::none_of(report.laws, same)) continue;
        std::string shown(word);
        std::replace(shown.begin(), shown.end(), '_', ' ');
        marks += (marks.empty() ? "" : "  ") + s.mark(word) + " " + s.dim(shown);
    }
    s.line();
    s.line("  " + s.dim("marks") + " " + marks);
    s.line();
}

}  // namespace attest::ci
