#include <algorithm>
#include <cmath>
#include <map>

#include "ci/number.hpp"
#include "ci/page_parts.hpp"
#include "ci/run_words.hpp"

namespace attest::ci {

namespace {

constexpr double cell = 13, left = 96, top = 4;

// Six steps of blue by the logarithm of the count: from 1, 4, 14, 52, 190 and 720 cases on.
std::size_t step_of(std::int64_t count) {
    const double steps_a_decade = 1.75;  // 720 cases, of a run of some thousands, are the last step
    return std::min<std::size_t>(
        5, static_cast<std::size_t>(std::log10(static_cast<double>(count)) * steps_a_decade));
}

bool has(const std::vector<search::CoverageReport::Pair>& pairs, std::size_t i, std::size_t j) {
    return std::ranges::any_of(pairs, [&](const search::CoverageReport::Pair& pair) {
        return pair[0] == static_cast<std::int64_t>(i) && pair[1] == static_cast<std::int64_t>(j);
    });
}

Html triangle(const search::CoverageReport& c) {
    Html steps[6], slashes, gaps, corners, labels;
    for (std::size_t i = 0; i < c.features.size(); ++i)
        for (std::size_t j = 0; j <= i; ++j) {
            const double x = left + cell * static_cast<double>(j),
                         y = top + cell * static_cast<double>(i);
            const std::int64_t count = c.pairs[i * (i + 1) / 2 + j];
            if (has(c.impossible, i, j))
                slashes << "M" << At{x + 2} << " " << At{y + cell - 4} << "L" << At{x + cell - 4}
                        << " " << At{y + 2};
            else if (count == 0)
                gaps << "M" << At{x + 0.5} << " " << At{y + 0.5} << "h11v11h-11z";
            else
                steps[step_of(count)] << "M" << At{x} << " " << At{y} << "h12v12h-12z";
            if (has(c.violated, i, j)) corners << "M" << At{x} << " " << At{y} << "h8l-8 8z";
        }
    Html out;
    constexpr Literal fills[] = {"var(--s0)", "var(--s1)", "var(--s2)",
                                 "var(--s3)", "var(--s4)", "var(--s5)"};
    for (std::size_t n = 0; n < 6; ++n)
        if (!steps[n].empty())
            out << "<path d=\"" << steps[n] << "\" fill=\"" << fills[n] << "\"/>";
    out << "<path class=\"ax\" d=\"" << slashes << "\"/><path d=\"" << gaps
        << "\" fill=\"none\" stroke=\"var(--warn)\" stroke-width=\"1.3\"/><path d=\"" << corners
        << "\" fill=\"var(--bad)\"/>";
    for (std::size_t i = 0; i < c.features.size(); ++i) {
        const double along = cell * static_cast<double>(i);
        out << label(left - 7, top + along + 10, c.features[i], "end")
            << "<text transform=\"translate(" << At{left + along + 9.5} << ","
            << At{top + cell * static_cast<double>(c.features.size()) + 5}
            << ") rotate(-90)\" text-anchor=\"end\">" << Text{c.features[i]} << "</text>";
    }
    const double size = cell * static_cast<double>(c.features.size());
    return drawing(left + size, top + size + 86, out,
                   std::string(name(c.format)) + ": cases for each pair of features; " +
                       count_text(static_cast<std::int64_t>(c.undrawn.size())) +
                       " pairs never drawn.");
}

Html key() {
    return Html() << "<p class=\"key\"><span>cases <i class=\"s0\"></i>1 <i class=\"s1\"></i>4 <i "
                  << "class=\"s2\"></i>14 <i class=\"s3\"></i>52 <i class=\"s4\"></i>190 <i "
                  << "class=\"s5\"></i>720</span><span><i class=\"gapmark\"></i>never drawn</span>"
                  << "<span>╱ cannot occur together</span><span class=\"bad\">◤ violated "
                  << "here</span></p>\n";
}

Html refusals(const RunReport& report) {
    const std::map<std::string, std::int64_t> sum = refusals_of(report);
    Html out;
    if (sum.empty()) return out;
    out << "<h3 class=\"gap\">Refused by the kernel, in its own words</h3>\n<div class=\"scroll\">"
        << "<table><tbody>\n";
    for (const auto& [reason, count] : sum)
        out << "<tr><td>" << Text{reason} << "</td><td class=\"n\">" << count_of(count)
            << "</td></tr>\n";
    return out << "</tbody></table></div>\n";
}

}  // namespace

Html coverage_section(const RunReport& report) {
    Html out;
    const search::CoverageSummary sum = search::summarise(report.coverage);
    out << "<section id=\"coverage\"><h2>What was covered</h2>\n";
    if (!report.coverage.empty()) {
        out << "<p class=\"dim\">Cases drawn for each pair of features, one triangle a number "
            << "format; the diagonal is the feature alone. " << count_of(sum.drawn) << " of "
            << count_of(sum.possible) << " pairs were drawn, " << count_of(sum.undrawn)
            << " never; the profile allows " << count_of(sum.allowed) << ".</p>\n<div "
            << "class=\"three\">\n";
        for (const search::CoverageReport& c : report.coverage)
            out << "<figure><h3>" << Text{name(c.format)} << " <span class=\"dimmer\">"
                << count_of(c.cases) << " cases</span></h3><div class=\"scroll\">" << triangle(c)
                << "</div></figure>\n";
        out << "</div>\n" << key();
    }
    const SizeReport sizes = sizes_of(report);
    out << "<dl class=\"facts\">";
    if (!sizes.judged.empty())
        out << "<dt>largest judged</dt><dd>" << Text{sizes_text(sizes.judged)} << "</dd>\n";
    if (!sizes.promised.empty())
        out << "<dt>promised</dt><dd>" << Text{sizes_text(sizes.promised)} << "</dd>\n";
    for (const std::string& limit : report.end->narrowed)
        out << "<dt>taken</dt><dd>" << Text{limit} << "</dd>\n";
    return out << "</dl>\n" << refusals(report) << "</section>\n";
}

}  // namespace attest::ci
