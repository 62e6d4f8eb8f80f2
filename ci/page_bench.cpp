// The page of a bench: whether anything that is proven was violated, what was not run, then errors,
// bounds, speed.

#include <algorithm>
#include <cmath>

#include "ci/escape.hpp"
#include "ci/number.hpp"
#include "ci/page.hpp"
#include "ci/page_parts.hpp"
#include "ci/screen.hpp"
#include "reference/problem/text.hpp"

namespace attest::ci {

namespace {

// A strip is as wide as report.css has it, and shows powers of ten.
constexpr double track_width = 240, track_middle = 13.5, track_margin = 8;

struct LogAxis {
    double low, high;  ///< powers of ten at its ends
    double x(double value) const {
        const double power = value > 0 ? std::clamp(std::log10(value), low, high) : low;
        return track_margin + (power - low) / (high - low) * (track_width - 2 * track_margin);
    }
};
constexpr LogAxis used_axis{-20, 0}, time_axis{0, 3};

Html strip(const Html& inside) {
    return Html() << "<td class=\"strip\"><svg viewBox=\"0 0 240 27\" preserveAspectRatio=\"none\" "
                  << "aria-hidden=\"true\">" << inside << "</svg></td>";
}

Html line_at(double x, Literal colour) {
    return Html() << "<path d=\"M" << At{x} << " 3v21\" stroke=\"" << colour << "\"/>";
}

Html axis_head(const LogAxis& axis, std::vector<std::pair<double, std::string>> labels) {
    for (auto& [value, text] : labels) value = axis.x(value);
    return Html() << "<th>" << strip_head(labels) << "</th>";
}

Html number_cell(const Html& number, bool bad = false) {
    return Html() << "<td class=\"n" << (bad ? Literal(" bad") : Literal("")) << "\">" << number
                  << "</td>";
}

Html number_cell(const std::string& text) {
    return number_cell(Html() << Text{text});
}

Html count_cell(std::int64_t count, bool bad = false) {
    return number_cell(count_of(count), bad);
}

Html section_of(Literal id, Literal title, Literal says, const Html& head, const Html& rows) {
    return Html() << "<section id=\"" << id << "\"><h2>" << title << "</h2>\n<p class=\"dim\">"
                  << says << "</p>\n<div class=\"scroll\"><table class=\"laws\"><thead><tr>" << head
                  << "</tr></thead><tbody>\n"
                  << rows << "</tbody></table></div></section>\n";
}

Html columns(const std::vector<Literal>& names) {
    Html out;
    for (const Literal name : names) out << "<th class=\"n\">" << name << "</th>";
    return out;
}

Html verdict_section(const BenchReport& report) {
    const std::int64_t violated = report.violated();
    Html out;
    out << "<section aria-label=\"verdict\">\n<h1><span class=\"verdict "
        << (violated == 0 ? Literal("good") : Literal("bad")) << "\">"
        << mark_of(violated == 0 ? "holds" : "violated");
    if (violated == 0)
        out << "Nothing</span> that is proven was violated</h1>\n";
    else
        out << Text{counted(violated, "element")} << "</span> violated what is proven</h1>\n";
    if (report.device.name.empty())
        out << "<p class=\"lead\">Every row on a GPU: not run: " << Text{report.device.not_run}
            << "</p>\n";
    return out << "<p class=\"key gap\"><span>oracle on " << Text{report.instructions}
               << "</span><span>seed " << Text{std::to_string(report.seed)} << "</span><span>"
               << Text{time_text(report.seconds)}
               << " for errors and bounds</span></p>\n</section>\n";
}

// The tick is the median, the dot the worst element, the line the whole allowance.
Html used_strip(const UsedError& used) {
    Html out;
    out << line_at(used_axis.x(1), "var(--ink)") << line_at(used_axis.x(used.median), "var(--s3)")
        << line_at(used_axis.x(used.p999), "var(--s5)") << "<circle cx=\""
        << At{used_axis.x(used.max)} << "\" cy=\"" << At{track_middle} << "\" r=\"3\" fill=\""
        << (used.violated > 0 ? Literal("var(--bad)") : Literal("var(--ink)")) << "\"/>";
    return strip(out);
}

Html errors_section(const BenchReport& report) {
    Html head, rows;
    head << "<th>arithmetic</th>"
         << axis_head(used_axis, {{1e-18, "10⁻¹⁸"}, {1e-9, "10⁻⁹"}, {1, "all"}})
         << columns({"median below", "99.9 % below", "most", "violated", "infinite", "elements"});
    for (std::size_t a = 0; a < report.certified.size(); ++a) {
        const UsedError& u = report.certified[a];
        rows << "<tr><td class=\"what\">" << Text{certified_arithmetics[a]} << "</td>"
             << used_strip(u) << number_cell(value_text(u.median))
             << number_cell(value_text(u.p999)) << number_cell(value_text(u.max))
             << count_cell(u.violated, u.violated > 0) << count_cell(u.infinite)
             << count_cell(u.elements) << "</tr>\n";
    }
    return section_of("errors", "Certified errors against 50 digits",
                      "The part of the certified error that was used. Ticks: the median and the "
                      "99.9th percentile, as the power of two above. Dot: the element that used "
                      "most. Line at the right: all of it, beyond which it is violated.",
                      head, rows);
}

Html bound_row(std::string_view bound, Precision format, const BoundCount& count, bool proven) {
    return Html() << "<tr" << (proven ? Literal("") : Literal(" class=\"na\""))
                  << "><td class=\"what\">" << Text{bound} << "</td><td class=\"mono\">"
                  << Text{name(format)} << "</td>" << count_cell(count.elements)
                  << count_cell(count.violated, proven && count.violated > 0)
                  << count_cell(count.undecided) << "</tr>\n";
}

Html bounds_section(const BenchReport& report) {
    Html head, rows;
    head << "<th>bound</th><th>format</th>" << columns({"elements", "violated", "undecided"});
    for (std::size_t b = 0; b < forward_bounds.size(); ++b)
        for (std::size_t at = 0; at < bench_formats.size(); ++at)
            rows << bound_row(forward_bounds[b], bench_formats[at], report.forward.bounds[at][b],
                              b < proven_bounds);
    for (std::size_t at = 0; at < narrow_formats.size(); ++at)
        rows << bound_row("backward: dQ, dK, dV", narrow_formats[at], report.backward[at], true);
    return section_of("bounds", "Bounds against correct kernels",
                      "Naive, flash, split and merged kernels that are correct, on every kind of "
                      "values. (b) is no proof: its violations are shown, and not counted. "
                      "Undecided: within the reference's own error of the bound.",
                      head, rows);
}

Html escalation_section(const BenchReport& report) {
    Html head, rows;
    head << "<th>positions</th><th>format</th>"
         << columns({"elements", "undecided in double", "rows", "computed again", "share"});
    for (std::size_t kind = 0; kind < escalation_kinds.size(); ++kind)
        for (std::size_t at = 0; at < narrow_formats.size(); ++at) {
            const Escalation& e = report.forward.alone[kind][at];
            const double share =
                e.rows > 0 ? static_cast<double>(e.again) / static_cast<double>(e.rows) : 0;
            rows << "<tr><td class=\"what\">" << Text{escalation_kinds[kind]}
                 << "</td><td class=\"mono\">" << Text{name(narrow_formats[at])} << "</td>"
                 << count_cell(e.elements) << count_cell(e.undecided) << count_cell(e.rows)
                 << count_cell(e.again) << number_cell(share_text(share)) << "</tr>\n";
        }
    return section_of("escalation", "How often wider arithmetic is needed",
                      "Double alone, whatever its error: the rows whose certified error would be "
                      "too large, and are computed again in double-double.",
                      head, rows);
}

Html time_strip(const SpeedRow& row) {
    Html out;
    for (const double times : {1.0, 10.0, 100.0, 1000.0})
        out << line_at(time_axis.x(times),
                       times > 1 ? Literal("var(--rule)") : Literal("var(--ink)"));
    out << "<circle cx=\"" << At{time_axis.x(row.filtered / row.plain)} << "\" cy=\""
        << At{track_middle} << "\" r=\"4\" fill=\"var(--s5)\"/><circle cx=\""
        << At{time_axis.x(row.double_double / row.plain)} << "\" cy=\"" << At{track_middle}
        << "\" r=\"4\" fill=\"none\" stroke=\"var(--warn)\" stroke-width=\"1.6\"/>";
    return strip(out);
}

Html speed_section(const BenchReport& report) {
    Html head, rows;
    head << "<th class=\"n\">length</th>"
         << axis_head(time_axis, {{1, "plain"}, {10, "10×"}, {100, "100×"}, {1000, "1000×"}})
         << columns({"filtered ●", "double-double ○", "50 digits over filtered", "plain, GMAC/s",
                     "filtered", "double-double", "50 digits"});
    for (const SpeedRow& row : report.speed.rows) {
        const auto rate = [&](double seconds) {
            return value_text(giga_macs(row.len, row.len, report.speed.dim, seconds));
        };
        rows << "<tr>" << count_cell(row.len) << time_strip(row)
             << number_cell(value_text(row.filtered / row.plain))
             << number_cell(value_text(row.double_double / row.plain))
             << number_cell(value_text(row.exact / row.filtered)) << number_cell(rate(row.plain))
             << number_cell(rate(row.filtered)) << number_cell(rate(row.double_double))
             << number_cell(rate(row.exact)) << "</tr>\n";
    }
    return section_of(
        "speed", "Speed",
        "The time over plain attention's (Eigen, double, no bound), which ran in turn "
        "with these, and billions of multiplications with an addition a second. The "
        "best of several rounds.",
        head, rows);
}

Html long_section(const BenchReport& report) {
    const LongSpeed& s = report.long_context;
    const DeviceSpeed& d = report.device;
    Facts facts{
        {counted(s.rows, "sampled row"), time_text(s.sampled)},
        {"every row, " + std::to_string(s.classes) + " classes of keys", time_text(s.collapsed)},
        {"the same, causal", time_text(s.causal)}};
    Facts gpu{{"not run", d.not_run}};
    if (!d.name.empty()) {
        const double there = giga_macs(d.len, d.len, d.dim, d.seconds);
        const double here = giga_macs(d.cpu_rows, d.len, d.dim, d.cpu_seconds);
        gpu = {{"device", d.name},
               {"length", std::to_string(d.len) + ", d " + std::to_string(d.dim)},
               {"every row", time_text(d.seconds) + ", " + value_text(there) + " GMAC/s"},
               {counted(d.cpu_rows, "row") + " on the CPU",
                time_text(d.cpu_seconds) + ", " + value_text(here) + " GMAC/s"},
               {"over one core", value_text(there / here) + " times"}};
    }
    return Html() << "<section id=\"long\"><h2>Long contexts</h2>\n<p class=\"dim\">Length "
                  << count_of(s.len) << ", d " << s.dim << ".</p>\n<div class=\"two\">\n"
                  << facts_table("on the CPU", facts) << facts_table("every row on a GPU", gpu)
                  << "</div></section>\n";
}

Html run_section(const BenchReport& report) {
    const Machine& m = report.machine;
    const Facts made{{"attest", report.attest},
                     {"started", report.started},
                     {"instructions", report.instructions}};
    Facts machine{{"cpu", m.cpu},
                  {"isa", m.isa},
                  {"cores", std::to_string(m.cores)},
                  {"memory bytes", std::to_string(m.memory_bytes)},
                  {"os", m.os},
                  {"compiler", m.compiler},
                  {"gpu", m.gpu.empty() ? "none" : m.gpu}};
    return Html() << "<section id=\"run\"><h2>The run</h2>\n"
                  << command_of("attest bench oracle --seed " + std::to_string(report.seed) +
                                " --time " + decimal(report.seconds) + "s --instructions " +
                                shell_word(clean(report.instructions)))
                  << "<div class=\"two\">\n"
                  << facts_table("made with", made) << facts_table("machine", machine)
                  << "</div></section>\n";
}

}  // namespace

std::string draw_bench_page(const BenchReport& report) {
    Html head, body;
    head << "<span>bench of the reference</span><span>attest " << Text{report.attest}
         << "</span><span>" << Text{report.started}
         << "</span><nav aria-label=\"on this page\"><a href=\"#errors\">errors</a><a "
         << "href=\"#bounds\">bounds</a><a href=\"#speed\">speed</a><a href=\"#run\">run</a></nav>";
    body << verdict_section(report) << errors_section(report) << bounds_section(report)
         << escalation_section(report) << speed_section(report) << long_section(report)
         << run_section(report);
    return whole_page("attest bench", head, body);
}

}  // namespace attest::ci
