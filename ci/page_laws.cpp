#include <algorithm>
#include <cmath>

#include "ci/doubt.hpp"
#include "ci/number.hpp"
#include "ci/page_parts.hpp"

namespace attest::ci {

namespace {

using search::RatioHistogram;

constexpr double strip_width = 240, strip_height = 27, base = strip_height - 6.5, margin = 6;
constexpr double lowest = RatioHistogram::log10_min,
                 highest = lowest + RatioHistogram::bins / double{RatioHistogram::per_decade};

double strip_x(double log10) {
    return margin + (log10 - lowest) / (highest - lowest) * (strip_width - 2 * margin);
}

Html bars(const RatioHistogram& h, int first, int last, std::int64_t most) {
    Html out;
    const double all = std::log1p(static_cast<double>(most));
    for (int bin = first; bin < last; ++bin) {
        const std::int64_t count = h.counts[static_cast<std::size_t>(bin)];
        if (count == 0) continue;
        const double height = std::log1p(static_cast<double>(count)) / all * (strip_height - 12);
        const double left = lowest + bin / double{RatioHistogram::per_decade};
        out << "M" << At{strip_x(left)} << " " << At{base} << "v" << At{-height} << "H"
            << At{strip_x(left + 1.0 / RatioHistogram::per_decade)} << "V" << At{base} << "z";
    }
    return out;
}

// The middle of the bin in which the median of the counted cases lies.
double median_of(const RatioHistogram& h, std::int64_t total) {
    std::int64_t sum = 0;
    for (std::size_t bin = 0; bin < h.counts.size(); ++bin) {
        sum += h.counts[bin];
        if (2 * sum >= total)
            return lowest + (static_cast<double>(bin) + 0.5) / RatioHistogram::per_decade;
    }
    return highest;
}

// The distribution, over cases, of the largest error over its bound.
Html strip_of(const search::Ratios& ratios) {
    const RatioHistogram& h = ratios.histogram;
    constexpr int one = -RatioHistogram::log10_min * RatioHistogram::per_decade;
    std::int64_t total = 0, most = 1;
    for (const std::int64_t count : h.counts) {
        total += count;
        most = std::max(most, count);
    }
    Html out;
    out << "<svg viewBox=\"0 0 240 27\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
        << "<path d=\"M" << At{strip_x(0)} << " 0v27\" stroke=\"var(--ink)\"/>"
        << "<path d=\"" << bars(h, 0, one, most) << "\" fill=\"var(--s3)\"/>";
    if (const Html beyond = bars(h, one, RatioHistogram::bins, most); !beyond.empty())
        out << "<path d=\"" << beyond << "\" fill=\"var(--bad)\"/>";
    if (total > 0)
        out << "<path d=\"M" << At{strip_x(median_of(h, total))} << " " << At{base + 1}
            << "v4\" stroke=\"var(--ink2)\"/>";
    const double worst = ratios.worst.ratio;
    const Literal colour = worst > 1 ? Literal("var(--bad)") : Literal("var(--ink)");
    if (!(worst <= std::pow(10, highest)))
        out << "<path d=\"M" << At{strip_x(highest)} << " " << At{base} << "l5 3l-5 3z\" fill=\""
            << colour << "\"/>";
    else if (worst > 0)
        out << "<circle cx=\"" << At{strip_x(std::max(lowest, std::log10(worst)))} << "\" cy=\""
            << At{base + 3} << "\" r=\"2.2\" fill=\"" << colour << "\"/>";
    return out << "</svg>";
}

Html strip_axis() {
    return strip_head({{strip_x(-4), "10⁻⁴"},
                       {strip_x(-2), "0.01"},
                       {strip_x(0), "bound"},
                       {strip_x(2), "100×"}});
}

std::string pooled_text(const law::Verdict& verdict) {
    const auto& pooled = verdict.pooled;
    return pooled ? "; of all cases together " + value_text(pooled->value) + ", threshold " +
                        value_text(pooled->threshold)
                  : "";
}

// How near it came: a strip, or in words where there is no distance.
Html middle_cells(const search::LawReport& law) {
    Html out;
    const bool bad = law.verdict.decision == law::Decision::violated;
    if (law.ratios) {
        const double worst = law.ratios->worst.ratio;
        return out << "<td class=\"strip\">" << strip_of(*law.ratios) << "</td><td class=\"n"
                   << (bad ? Literal(" bad") : Literal("")) << "\" data-v=\""
                   << Text{value_text(std::isfinite(worst) ? worst : 1e300)} << "\">"
                   << Text{ratio_text(worst)} << "</td>";
    }
    out << "<td class=\"small " << (bad ? Literal("bad") : Literal("dimmer")) << "\">";
    const auto& statistic = law.verdict.statistic;
    if (statistic && !(bad && std::abs(statistic->value) <= statistic->threshold))
        out << "statistic " << Text{value_text(statistic->value)} << ", threshold "
            << Text{value_text(statistic->threshold)} << Text{pooled_text(law.verdict)};
    else if (bad)
        out << count_of(law.violated) << " of " << count_of(law.cases) << " cases "
            << (law.compares == law::Compares::bits ? Literal("differ") : Literal("fail"));
    else if (law.verdict.decision == law::Decision::holds && law.compares == law::Compares::bits)
        out << "to the bit";
    return out << "</td><td class=\"n\" data-v=\"\"></td>";
}

std::string spaced(std::string name) {
    std::ranges::replace(name, '_', ' ');
    return name;
}

bool was_judged(const search::LawReport& law) {
    return law.verdict.decision != law::Decision::not_applicable &&
           law.verdict.decision != law::Decision::not_run;
}

Html law_row(const search::LawReport& law) {
    Html out;
    const law::Decision decision = law.verdict.decision;
    out << "<tr"
        << (decision == law::Decision::violated ? Literal(" class=\"isbad\"")
            : was_judged(law)                   ? Literal("")
                                                : Literal(" class=\"na\""))
        << " data-s=\"" << (was_judged(law) ? Literal("ran ") : Literal("skipped "))
        << Text{name(decision)} << "\"><td class=\"v\">" << mark_of(mark_word(law))
        << "</td><td class=\"law\" data-v=\"" << Text{law.law} << "\"><span class=\"id\">"
        << Text{law.law.substr(law.law.find('.') + 1)} << "</span> <span class=\"st hide-s\">"
        << Text{law.statement} << "</span></td>";
    if (!was_judged(law))
        return out << "<td class=\"n hide-s\" data-v=\"0\"></td><td class=\"n hide-s\" "
                   << "data-v=\"0\"></td><td colspan=\"4\" class=\"small\">"
                   << Text{reason_text(law)} << "</td></tr>\n";
    out << "<td class=\"n hide-s\" data-v=\"" << law.cases << "\">" << count_of(law.cases)
        << "</td><td class=\"n hide-s\" data-v=\"" << law.discarded << "\">";
    if (law.discarded > 0) out << count_of(law.discarded);
    out << "</td>";
    if (decision == law::Decision::inconclusive)
        return out << "<td colspan=\"4\" class=\"small warn\">" << Text{reason_text(law)}
                   << "</td></tr>\n";
    return out << middle_cells(law) << "<td class=\"mono hide-s dense nowrap\">"
               << Text{law.ratios ? print(law.ratios->worst.tried) : "", 34}
               << "</td><td class=\"n hide-s\" data-v=\"" << Text{value_text(law.seconds)} << "\">"
               << Text{time_text(law.seconds)} << "</td></tr>\n";
}

Html head_row() {
    return Html()
           << "<thead><tr><th></th><th data-sort=\"text\" data-first=\"ascending\">law</th>"
           << "<th class=\"n hide-s\" data-sort=\"num\">cases</th><th class=\"n hide-s\" "
           << "data-sort=\"num\">dropped</th><th>" << strip_axis()
           << "</th><th class=\"n\" data-sort=\"num\">worst</th><th class=\"hide-s\">where</th>"
           << "<th class=\"n hide-s\" data-sort=\"num\">time</th></tr></thead>\n";
}

}  // namespace

Html family_marks(const RunReport& report) {
    Html out;
    out << "<ul class=\"fams\" aria-label=\""
        << Text{counted(static_cast<std::int64_t>(report.laws.size()), "law")} << " by family\">\n";
    for (const Family& family : families_of(report)) {
        const bool bad = family.count(law::Decision::violated) > 0;
        out << "<li><span>" << (bad ? Literal("<b>") : Literal("")) << Text{spaced(family.name)}
            << (bad ? Literal("</b>") : Literal("")) << "</span>";
        for (const search::LawReport* law : family.laws)
            out << "<span class=\"m\" data-tip=\"" << Text{law->law} << ": "
                << Text{decision_text(*law)} << "\">" << mark_of(mark_word(*law)) << "</span>";
        out << "</li>\n";
    }
    return out << "</ul>\n";
}

Html nearest_section(const RunReport& report) {
    constexpr std::size_t shown = 10;
    Html out;
    const auto laws = nearest_laws(report, shown);
    if (laws.empty()) return out;
    out << "<section id=\"near\"><h2>Nearest to the bound</h2>\n<p class=\"dim\">Not failures: "
           "where "
        << "the next change will show first.</p>\n<div class=\"scroll\"><table "
           "class=\"laws\"><thead>"
        << "<tr><th>law</th><th>" << strip_axis() << "</th><th class=\"n\">worst</th><th "
        << "class=\"hide-s\">case</th><th class=\"hide-s\">id</th></tr></thead><tbody>\n";
    for (const search::LawReport* law : laws)
        out << "<tr><td class=\"law\"><span class=\"id\">" << Text{law->law}
            << "</span></td><td class=\"strip\">" << strip_of(*law->ratios)
            << "</td><td class=\"n\"><b>" << Text{ratio_text(law->ratios->worst.ratio)}
            << "</b></td><td class=\"mono hide-s dense\">" << Text{print(law->ratios->worst.tried)}
            << "</td><td class=\"mono hide-s\">" << Text{law->ratios->worst.id} << "</td></tr>\n";
    return out << "</tbody></table></div></section>\n";
}

Html laws_section(const RunReport& report) {
    Html out;
    out << "<section id=\"laws-section\"><h2>Every law</h2>\n<p class=\"dim\">Each strip is the "
        << "distribution, over all cases, of the largest error divided by its derived bound. Right "
        << "of the line is wrong. Heights are logarithmic; the tick is the median, the dot the "
           "worst "
        << "case, a triangle one beyond 100 times.</p>\n"
        << "<div class=\"tools\" data-for=\"laws\"><button data-show=\"\" aria-pressed=\"true\">all"
        << "</button><button data-show=\"violated\" "
           "aria-pressed=\"false\">violated</button><button "
        << "data-show=\"ran\" aria-pressed=\"false\">judged</button><button data-show=\"skipped\" "
        << "aria-pressed=\"false\">not judged</button><input type=\"search\" "
           "placeholder=\"filter\" "
        << "aria-label=\"filter laws\"><output class=\"dimmer small\"></output></div>\n"
        << "<div class=\"scroll\"><table class=\"laws\" id=\"laws\" data-sortable><caption "
        << "class=\"skip\">Every law, with the distribution of error over bound</caption>"
        << head_row() << "<tbody>\n";
    for (const Family& family : families_of(report)) {
        out << "<tr class=\"fam\"><th colspan=\"8\">" << Text{spaced(family.name)}
            << "</th></tr>\n";
        for (const search::LawReport* law : family.laws) out << law_row(*law);
    }
    return out << "</tbody></table></div></section>\n";
}

}  // namespace attest::ci
