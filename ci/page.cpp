#include "ci/page.hpp"

#include <algorithm>

#include "ci/check_screen.hpp"
#include "ci/ci_formats.hpp"
#include "ci/doubt.hpp"
#include "ci/escape.hpp"
#include "ci/number.hpp"
#include "ci/page_parts.hpp"
#include "ci/record.hpp"
#include "ci/run_words.hpp"
#include "ci/screen.hpp"

namespace attest::ci {

namespace {

std::string decision_word(const RunReport& report) {
    std::string word(name(report.end->verdict.decision));
    std::ranges::replace(word, '_', ' ');
    return word;
}

// One line a cause: what, when, how many laws.
Html causes_lead(const std::vector<RunFinding>& findings) {
    Html out;
    out << "<p class=\"lead\">";
    std::int64_t number = 0;
    for (const RunFinding& f : findings) {
        ++number;
        const bool known = f.lead->diagnosis.known;
        out << (number > 1 ? Literal("<br>\n") : Literal("")) << number << ". <a href=\"#cause"
            << number << "\">" << Text{known ? "It computes " + f.computes : f.problem} << "</a>";
        // A crash or a race says itself what it is.
        const bool answered = f.lead->example.outcome == worker::Outcome::ok;
        if (!known && !f.proven) out << "; not seen again, no violation";
        if (!known && f.proven && answered && !f.lead->example.fault)
            out << (f.apart ? Literal("; cause not known")
                            : Literal("; not explained by the above"));
        out << ". ";
        if (!f.fails.empty()) out << "It fails " << Text{f.when()} << ". ";
        out << Text{counted(static_cast<std::int64_t>(f.laws.size()), "law")} << ".";
    }
    return out << "</p>\n";
}

Html counts_line(const RunReport& report) {
    const RunVerdict& v = report.end->verdict;
    Html out;
    out << "<p class=\"key gap\">";
    const auto part = [&](std::string_view mark, std::int64_t count, Literal word) {
        if (count > 0)
            out << "<span>" << mark_of(mark) << count_of(count) << " " << word << "</span>";
    };
    part("holds", v.holds, "hold");
    part("violated", v.violated, "violated");
    part("inconclusive", v.inconclusive, "inconclusive");
    part("not_applicable", v.not_applicable, "not applicable");
    part("not_run", v.not_run, "not run");
    return out << "<span>" << count_of(v.cases) << " cases, " << count_of(v.elements)
               << " elements, " << Text{time_text(report.end->seconds)} << "</span></p>\n";
}

// Why nothing was decided, and of which laws.
Html open_reasons(const RunReport& report) {
    Html out;
    std::string before;
    for (const search::LawReport& law : report.laws) {
        if (law.verdict.decision != law::Decision::inconclusive ||
            law.verdict.reason.text == before)
            continue;
        before = law.verdict.reason.text;
        out << "<li><code>" << Text{law.law} << "</code>: " << Text{before} << "</li>\n";
    }
    const std::string& whole = report.end->verdict.reason;
    if (!whole.empty()) out << "<li>" << Text{whole, 1200} << "</li>\n";
    if (out.empty()) return out;
    return Html() << "<ul class=\"dim\">\n" << out << "</ul>\n";
}

// What the profile does not fail, and where it was seen.
Html doubts(const RunReport& report) {
    Html out;
    for (const RunDoubt& doubt : doubts_of(report)) {
        out << "<div class=\"banner\"><p>" << Text{decision_text(*doubt.law)} << ": <code>"
            << Text{doubt.law->law} << "</code>"
            << Text{doubt.share.empty() ? "" : ", " + doubt.share} << ". " << Text{doubt.problem}
            << "</p>";
        if (!doubt.replay.empty()) out << command_of(doubt.replay);
        out << "</div>\n";
    }
    return out;
}

Html verdict_section(const RunReport& report, const std::vector<RunFinding>& findings,
                     const std::string& directory) {
    const RunVerdict& v = report.end->verdict;
    std::string word = decision_word(report);
    word[0] = static_cast<char>(word[0] - 32);
    Html out;
    out << "<section aria-label=\"verdict\">\n";
    // Records that were cut by a kill lack the laws after it.
    const std::int64_t not_run =
        v.cut + std::max<std::int64_t>(
                    report.run.catalogue_laws - static_cast<std::int64_t>(report.laws.size()), 0);
    if (report.end->interrupted || v.cut > 0)
        out << "<div class=\"banner\"><p>Not complete: "
            << Text{not_run > 0 ? count_text(not_run) + " laws were not run" : "it was cut"} << ". "
            << Text{stopped_text(report) + "."} << " What was found so far stands.</p>"
            << command_of(resume_line(report.run, directory)) << "</div>\n";
    out << "<h1><span class=\"verdict "
        << (v.decision == RunDecision::violated ? Literal("bad")
            : mark_word(report) == "holds"      ? Literal("good")
                                                : Literal("warn"))
        << "\">" << mark_of(mark_word(report)) << Text{word}
        << "</span>: " << Text{headline(report)} << "</h1>\n";
    if (!findings.empty()) out << causes_lead(findings);
    if (const auto near = nearest_laws(report, 1); findings.empty() && !near.empty())
        out << "<p class=\"lead\">Nearest to its bound: <code>" << Text{near.front()->law}
            << "</code>, " << Text{ratio_text(near.front()->ratios->worst.ratio)}
            << " of it.</p>\n";
    return out << doubts(report) << open_reasons(report) << family_marks(report)
               << counts_line(report) << "</section>\n";
}

Html run_section(const RunReport& report) {
    const RunHeader& run = report.run;
    const RunFacts facts = facts_of(run);
    std::string line = "attest";
    bool seeded = false;
    for (const std::string& word : run.argv) {
        line += " " + shell_word(clean(word));
        seeded = seeded || word.starts_with("--seed");
    }
    if (!seeded) line += " --seed " + std::to_string(run.seed);
    Facts made{{"attest", run.attest_version},
               {"catalogue", run.catalogue},
               {"profile", run.profile.name + " " + std::to_string(run.profile.version)},
               {"seed", std::to_string(run.seed)},
               {"started", run.started},
               {"exit", std::to_string(report.end->verdict.exit)}};
    if (run.shard_count > 1) made.push_back({"shard", shard_text(run)});
    if (!report.end->oracle.empty()) made.push_back({"oracle", report.end->oracle});
    if (!report.end->ended.empty()) made.push_back({"ended", report.end->ended});
    return Html() << "<section id=\"run\"><h2>The run</h2>\n"
                  << command_of(line) << "<div class=\"two\">\n"
                  << facts_table("kernel", facts.kernel) << facts_table("made with", made)
                  << facts_table("what it claims", facts.claims)
                  << facts_table("its dialect", facts.dialect)
                  << facts_table("machine", facts.machine) << "</div></section>\n";
}

Html head_of(const RunReport& report, const std::vector<RunFinding>& findings) {
    const RunHeader& run = report.run;
    Html out;
    out << "<span>" << Text{run.command} << "</span><span class=\"mono\">" << Text{run.kernel.typed}
        << "</span><span>profile " << Text{run.profile.name} << "</span><span>seed "
        << Text{std::to_string(run.seed)} << "</span><span>" << Text{run.started}
        << "</span><nav aria-label=\"on this page\">";
    for (std::size_t n = 1; n <= std::min<std::size_t>(findings.size(), 3); ++n)
        out << "<a href=\"#cause" << static_cast<std::int64_t>(n) << "\">cause "
            << static_cast<std::int64_t>(n) << "</a>";
    return out << "<a href=\"#laws-section\">laws</a><a href=\"#coverage\">coverage</a><a "
               << "href=\"#run\">run</a></nav>";
}

}  // namespace

Html facts_table(Literal title, const Facts& facts) {
    Html out;
    out << "<div><h3>" << title << "</h3><dl class=\"facts\">\n";
    for (const auto& [name, value] : facts)
        out << "<dt>" << Text{name} << "</dt><dd class=\"mono\">" << Text{value, 1200} << "</dd>\n";
    return out << "</dl></div>\n";
}

std::string draw_page(const RunReport& report, const std::string& directory) {
    const std::vector<RunFinding> findings = findings_of(report, directory);
    Html body = verdict_section(report, findings, directory);
    for (std::size_t n = 0; n < findings.size(); ++n)
        body << cause_section(report, findings[n], n + 1, directory);
    if (report.end->verdict.decision != RunDecision::violated) body << nearest_section(report);
    body << laws_section(report) << coverage_section(report) << run_section(report);
    return whole_page(decision_word(report) + ": " + report.run.kernel.manifest.name + ", attest " +
                          report.run.command,
                      head_of(report, findings), body);
}

}  // namespace attest::ci
