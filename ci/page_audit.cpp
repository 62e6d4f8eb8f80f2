// The page of an audit: what escaped first, then which law sees which planted bug.

#include <algorithm>
#include <map>

#include "ci/number.hpp"
#include "ci/page.hpp"
#include "ci/page_parts.hpp"

namespace attest::ci {

namespace {

Html verdict_section(const AuditReport& report) {
    const bool good = report.faultless(false);
    Html out;
    out << "<section aria-label=\"verdict\">\n<h1><span class=\"verdict "
        << (good ? Literal("good") : Literal("bad")) << "\">"
        << mark_of(good ? "holds" : "violated") << count_of(report.caught()) << " of "
        << count_of(report.planted()) << "</span> planted bugs are seen by a law</h1>\n";
    if (!report.whole)
        out << "<div class=\"banner\"><p>A part: not every planted bug, or not every "
               "law.</p></div>\n";
    out << "<p class=\"key gap\"><span>" << Text{counted(report.cases, "case")}
        << " at most a law that the bug\u2019s row names, half of them on a change "
           "that is no bug, "
        << Text{std::to_string(report.cases_elsewhere)} << " another, "
        << Text{std::to_string(report.cases_simulated)}
        << " where threads are simulated</span><span>" << Text{counted(report.seeds, "seed")}
        << " from " << Text{std::to_string(report.seed)} << "</span><span>attest "
        << Text{report.attest} << "</span></p>\n";
    return out << "</section>\n";
}

Html faults_section(const AuditReport& report) {
    Html rows;
    for (const BugAudit& bug : report.bugs)
        if (const std::string fault = bug.fault(); !fault.empty())
            rows << "<tr><td class=\"mono\">" << Text{bug.bug} << "</td><td>" << Text{bug.bug_class}
                 << "</td><td class=\"bad\">" << Text{fault, 900} << "</td></tr>\n";
    for (const std::string& law : report.idle_laws())
        rows << "<tr><td class=\"mono\">" << Text{law}
             << "</td><td>law</td><td>sees none of these bugs</td></tr>\n";
    Html out;
    out << "<section id=\"faults\"><h2>What escaped, and who was accused</h2>\n";
    if (rows.empty())
        return out << "<p class=\"lead\">Nothing: every bug is seen by a law and by those that its "
                      "row names, "
                   << "no equivalent is accused, every law sees a bug.</p></section>\n";
    return out << "<div class=\"scroll\"><table><tr><th>bug</th><th>class</th><th></th></tr>\n"
               << rows << "</table></div></section>\n";
}

/// What others' rules see of the same bugs on random normal numbers, and whom they accuse.
Html peers_section(const AuditReport& report) {
    Html out;
    out << "<section id=\"peers\"><h2>Beside the rules of others</h2>\n"
        << "<p>One comparison of outputs, on random normal inputs of the same shapes.</p>\n"
        << "<div class=\"scroll\"><table><tr><th>rule</th><th class=\"n\">bugs seen</th>";
    for (const RightAudit& right : report.right)
        out << "<th class=\"n\">rejects of " << Text{right.kernel} << ", which is right</th>";
    out << "</tr>\n<tr><td>the laws</td><td class=\"n\">" << count_of(report.caught()) << " of "
        << count_of(report.planted()) << "</td>";
    for (std::size_t n = 0; n < report.right.size(); ++n)
        out << "<td class=\"n dim\">judged by attest check</td>";
    out << "</tr>\n";
    for (std::size_t rule = 0; rule < peer_rule_count; ++rule) {
        out << "<tr><td>" << Text{peer_rules[rule]} << "</td><td class=\"n\">"
            << count_of(report.caught_by_peers(rule)) << " of " << count_of(report.planted())
            << "</td>";
        for (const RightAudit& right : report.right)
            out << "<td class=\"n\">" << count_of(right.peers.rejected[rule]) << " of "
                << count_of(right.peers.cases) << "</td>";
        out << "</tr>\n";
    }
    return out << "</table></div></section>\n";
}

/// The families of the laws above, every fifth bug at the left, a square a law and bug.
Html matrix(const std::vector<std::string>& rows, const std::vector<std::string>& laws,
            const std::vector<BugAudit>& bugs) {
    constexpr double cell = 6, left = 66, top = 96;
    const double width = cell * static_cast<double>(laws.size()),
                 height = cell * static_cast<double>(rows.size());
    Html out;
    for (std::size_t first = 0, next = 0; first < laws.size(); first = next) {
        const std::string family = laws[first].substr(0, laws[first].find('.'));
        while (next < laws.size() && laws[next].starts_with(family + ".")) ++next;
        next = std::max(next, first + 1);
        const double x = left + cell * static_cast<double>(first);
        const double middle = (x + left + cell * static_cast<double>(next)) / 2 + 4;
        out << "<path class=\"grid\" d=\"M" << At{x} << " " << At{top - 6} << "V"
            << At{top + height} << "\"/><text x=\"" << At{middle} << "\" y=\"" << At{top - 8}
            << "\" transform=\"rotate(-90 " << At{middle} << " " << At{top - 8} << ")\">"
            << Text{family} << "</text>";
    }
    for (std::size_t row = 0; row < rows.size(); row += 5)
        out << label(left - 6, top + cell * static_cast<double>(row) + 7, bugs[row].bug, "end");
    for (const auto& [level, colour] : {std::pair{'1', Literal("var(--s1)")},
                                        {'3', Literal("var(--s3)")},
                                        {'6', Literal("var(--s5)")}}) {
        Html cells;
        for (std::size_t row = 0; row < rows.size(); ++row)
            for (std::size_t at = rows[row].find(level), end = 0; at != rows[row].npos;
                 at = rows[row].find(level, end)) {
                end = std::min(rows[row].size(), rows[row].find_first_not_of(level, at));
                cells << "M" << At{left + cell * static_cast<double>(at)} << " "
                      << At{top + cell * static_cast<double>(row)} << "h"
                      << At{cell * static_cast<double>(end - at)} << "v" << At{cell} << "H"
                      << At{left + cell * static_cast<double>(at)} << "z";
            }
        out << "<path d=\"" << cells << "\" fill=\"" << colour << "\"/>";
    }
    return drawing(left + width + 2, top + height + 2, out, "which law sees which planted bug");
}

/// A digit a law (across) and a bug (down): 6, its row names the law, which sees it; 3, another law
/// that sees it; 1, the law was tried and does not; 0, it does not apply.
Html matrix_section(const AuditReport& report) {
    std::map<std::string, std::size_t> columns;
    for (const BugAudit& bug : report.bugs)
        for (const LawOnBug& law : bug.laws) columns.emplace(law.law, 0);
    std::vector<std::string> laws;
    for (auto& [law, column] : columns) {
        column = laws.size();
        laws.push_back(law);
    }
    std::vector<std::string> rows;
    for (const BugAudit& bug : report.bugs) {
        std::string row(columns.size(), '0');
        for (const LawOnBug& law : bug.laws) {
            const bool must = std::ranges::find(bug.must, law.law) != bug.must.end();
            row[columns[law.law]] = law.seen < bug.seeds ? '1' : must ? '6' : '3';
        }
        rows.push_back(row);
    }
    const std::int64_t none = std::ranges::count(report.bugs, true, &BugAudit::equivalent),
                       bugs = static_cast<std::int64_t>(rows.size()) - none;
    Html out;
    out << "<section id=\"matrix\"><h2>Which law sees which bug</h2>\n<p>"
        << Text{counted(bugs, "bug")} << (none == 0 ? Literal("") : Literal(" and "))
        << Text{none == 0
                    ? ""
                    : counted(none, "change") + " that " + (none == 1 ? "is" : "are") + " none"}
        << " down, " << Text{counted(static_cast<std::int64_t>(columns.size()), "law")}
        << " across, by name.</p>\n<p class=\"key\"><span><i class=\"s5\"></i>a law that the "
           "bug\u2019s "
           "row names sees it</span><span><i class=\"s3\"></i>another sees it</span><span><i "
           "class=\"s1\"></i>tried, not seen</span><span>blank: not tried</span></p>\n";
    if (!rows.empty() && !columns.empty())
        out << "<div class=\"scroll\">" << matrix(rows, laws, report.bugs) << "</div>\n";
    return out << "</section>\n";
}

Html bug_row(const BugAudit& bug) {
    Html out;
    out << "<tr><td class=\"mono\">" << Text{bug.bug} << "</td><td>" << Text{bug.bug_class}
        << "</td><td class=\"mono\">" << Text{bug.kernel} << "</td>";
    if (const LawOnBug* first = bug.quickest())
        out << "<td class=\"mono\">" << Text{first->law} << "</td><td class=\"n\">"
            << count_of(first->cases) << "</td><td class=\"n\">" << Text{time_text(first->seconds)}
            << "</td><td class=\"n\">" << count_of(bug.killers()) << "</td>";
    else
        out << "<td>" << (bug.equivalent ? Literal("none: it is no bug") : Literal("none"))
            << "</td><td></td><td></td><td class=\"n\">0</td>";
    return out << "<td>" << Text{name(bug.told)} << "</td><td>" << Text{bug.says} << "</td></tr>\n";
}

Html bugs_section(const AuditReport& report) {
    Html out;
    out << "<section id=\"bugs\"><h2>Each bug</h2>\n<div class=\"scroll\"><table "
           "class=\"roomy\"><tr><th>bug</th>"
        << "<th>class</th><th>kernel</th><th>the law that sees it first</th><th "
           "class=\"n\">cases</th>"
        << "<th class=\"n\">time</th><th class=\"n\">laws</th><th>diagnosis</th><th>it "
           "says</th></tr>\n";
    for (const BugAudit& bug : report.bugs) out << bug_row(bug);
    return out << "</table></div></section>\n";
}

}  // namespace

std::string draw_audit_page(const AuditReport& report) {
    Html head, body;
    head << "<span>audit</span><span>attest " << Text{report.attest}
         << "</span><nav aria-label=\"on this page\"><a href=\"#faults\">escaped</a><a "
            "href=\"#peers\">others</a>"
         << "<a href=\"#matrix\">laws</a><a href=\"#bugs\">bugs</a></nav>";
    body << verdict_section(report) << faults_section(report) << peers_section(report)
         << matrix_section(report) << bugs_section(report);
    return whole_page("attest audit", head, body);
}

}  // namespace attest::ci
