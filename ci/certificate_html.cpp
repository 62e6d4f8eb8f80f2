// certificate.html: the certificate as a document, for a screen and for paper.

#include "ci/certificate.hpp"
#include "ci/doubt.hpp"
#include "ci/number.hpp"
#include "ci/page_parts.hpp"
#include "ci/run_words.hpp"
#include "ci/screen.hpp"
#include "reference/problem/digest.hpp"

namespace attest::ci {

namespace {

Html verdict_section(const Certificate& c) {
    const RunHeader& run = c.report.run;
    const RunVerdict& v = c.report.end->verdict;
    const std::string_view mark = mark_word(c.report);
    Html out;
    out << "<section aria-label=\"verdict\">\n<h1><span class=\"verdict "
        << (v.decision == RunDecision::violated ? Literal("bad")
            : mark == "holds" && c.whole()      ? Literal("good")
                                                : Literal("warn"))
        << "\">" << mark_of(mark) << "</span>" << Text{run.kernel.manifest.name} << " "
        << Text{run.kernel.manifest.version} << ": " << Text{c.title()}
        << "</h1>\n<p class=\"lead\">";
    if (!c.whole())
        out << "The record of a part: options left out laws, cases or time, or it is a shard. It "
               "certifies nothing. ";
    out << Text{counted(v.holds, "law")}
        << (v.holds == 1 ? Literal(" holds on ") : Literal(" hold on "))
        << Text{counted(v.cases, "case")} << ", " << Text{large_count_text(v.elements)}
        << " elements; " << count_of(v.violated) << " violated, " << count_of(v.inconclusive)
        << " inconclusive. " << Text{counted(v.not_applicable, "law")}
        << " do not apply to what the kernel claims or takes.</p>\n";
    for (const diagnosis::CauseReport& cause : c.report.causes)
        out << "<p><b class=\"bad\">violated</b>: " << Text{cause.title} << " ("
            << Text{counted(static_cast<std::int64_t>(cause.laws.size()), "law")} << ")</p>\n";
    for (const RunDoubt& doubt : doubts_of(c.report))
        out << "<p><b class=\"warn\">" << Text{decision_text(*doubt.law)}
            << "</b>: " << Text{doubt.problem} << " (" << Text{doubt.law->law} << ")</p>\n";
    if (!v.reason.empty()) out << "<p>" << Text{v.reason, 1200} << "</p>\n";
    return out << family_marks(c.report) << "</section>\n";
}

Html limits_section(const Certificate& c) {
    Html out;
    out << "<section id=\"limits\"><h2>What this certificate does not say</h2>\n<ul>\n";
    for (const std::string& sentence : c.does_not_say)
        out << "<li>" << Text{sentence, 1200} << "</li>\n";
    return out << "</ul></section>\n";
}

Html missed_section(const Certificate& c) {
    Html out;
    out << "<section id=\"missed\"><h2>What each law may have missed</h2>\n<p class=\"dim\">A "
           "fault "
           "that one law alone sees, in fewer than this share of its cases, may have been missed "
           "(95 % confidence).</p>\n<div class=\"scroll\"><table class=\"laws\"><thead><tr>"
           "<th>law</th><th class=\"n\">cases</th><th class=\"n\">share</th><th "
           "class=\"hide-s\">largest</th></tr></thead><tbody>\n";
    for (const search::LawReport& law : c.report.laws) {
        if (law.cases == 0) continue;
        out << "<tr><td class=\"law\"><span class=\"id\">" << Text{law.law}
            << "</span></td><td class=\"n\">" << count_of(law.cases) << "</td><td class=\"n\">"
            << Text{share_text(missed_share(law))} << "</td><td class=\"hide-s small\">"
            << Text{sizes_text(law.largest)} << "</td></tr>\n";
    }
    return out << "</tbody></table></div></section>\n";
}

Html judged_section(const Certificate& c) {
    const RunHeader& run = c.report.run;
    const RunFacts facts = facts_of(run);
    Html out;
    out << "<section id=\"judged\"><h2>What was judged, and how</h2>\n<div class=\"two\">\n"
        << facts_table("kernel", facts.kernel) << facts_table("made with", made_with(c))
        << facts_table("what it claims: every bound follows from it", facts.claims)
        << facts_table("its dialect: declared, and held to", facts.dialect)
        << facts_table("machine", facts.machine) << "</div>\n";
    if (!run.own_profile.empty())
        out << "<h3>Its own profile, which is not one of attest's: SHA-256 "
            << Text{sha256_hex(run.own_profile)} << "</h3><pre>"
            << Text{clean(run.own_profile, 20000), 20000} << "</pre>\n";
    return out << "</section>\n";
}

}  // namespace

std::string certificate_html(const Certificate& c) {
    const RunHeader& run = c.report.run;
    Html head;
    head << "<span>certificate</span><span class=\"mono\">" << Text{run.kernel.typed}
         << "</span><span>profile " << Text{run.profile.name} << "</span><span>"
         << Text{run.started}
         << "</span><nav aria-label=\"on this page\"><a href=\"#limits\">limits</a><a "
            "href=\"#laws-section\">laws</a><a href=\"#judged\">judged</a></nav>";
    Html body = verdict_section(c);
    body << limits_section(c) << nearest_section(c.report) << laws_section(c.report)
         << missed_section(c) << coverage_section(c.report) << judged_section(c);
    return whole_page(run.kernel.manifest.name + ": " + c.title(), head, body);
}

}  // namespace attest::ci
