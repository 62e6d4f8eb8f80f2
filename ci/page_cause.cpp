#include <algorithm>

#include "ci/number.hpp"
#include "ci/page_parts.hpp"
#include "ci/sanitizer.hpp"
#include "ci/screen.hpp"

namespace attest::ci {

namespace {

constexpr std::size_t whole_causes = 8;  // drawn with their pictures

void fact(Html& out, Literal key, const std::string& value) {
    if (!value.empty()) out << "<dt>" << key << "</dt><dd>" << Text{value, 1200} << "</dd>\n";
}

Html facts_of(const RunFinding& f) {
    Html out;
    const search::Counterexample& example = f.lead->example;
    out << "<dl class=\"facts\">\n";
    if (!f.computes.empty()) {
        out << "<dt>it computes</dt><dd><b>" << Text{f.computes} << "</b>";
        if (!f.agree.empty()) out << "<br><span class=\"dim small\">" << Text{f.agree} << "</span>";
        out << "</dd>\n";
    }
    fact(out, "it declares", f.declares);
    fact(out, "held in", f.held_in);
    fact(out, "fails", f.when());
    out << "<dt>smallest case</dt><dd><code>" << Text{f.smallest} << "</code></dd>\n";
    fact(out, "found",
         (example.found.number < 0 ? std::string("as a stored case")
                                   : "as case " + count_text(example.found.number)) +
             " of " + example.law + "; shrunk in " + counted(example.accepted, "step"));
    fact(out, "confirmed", f.confirmed);
    if (example.fault) fact(out, "fault", example.fault->sentence);
    for (const KernelPlace& place : f.places)
        fact(out, "source", place.file + ":" + std::to_string(place.line));
    for (const std::string& sentence : sanitizer_sentences(f.lead->sanitizer))
        fact(out, "sanitizer", sentence);
    return out << "</dl>\n";
}

Html element_table(const RunFinding& f) {
    Html out;
    if (f.element.empty()) return out;
    const law::Violation& v = f.lead->violation();
    out << "<div class=\"scroll\"><table class=\"narrow\"><thead><tr><th>" << Text{v.element_name}
        << "</th><th class=\"n\">value</th><th class=\"n\">hex</th></tr></thead><tbody>\n"
        << "<tr><td>expected</td><td class=\"n\">" << Text{f.element.expected}
        << "</td><td class=\"n mono\">" << Text{hex_text(v.expected)} << "</td></tr>\n"
        << "<tr><td>observed</td><td class=\"n bad\"><b>" << Text{f.element.observed}
        << "</b></td><td class=\"n mono bad\">" << Text{hex_text(v.observed)} << "</td></tr>\n";
    std::string bound = f.element.bound;
    if (!f.element.times.empty()) bound += (bound.empty() ? "" : "; ") + f.element.times;
    if (f.lead->ulps) bound += (bound.empty() ? "" : "; ") + count_text(*f.lead->ulps) + " ulps";
    if (!bound.empty())
        out << "<tr><td colspan=\"3\" class=\"dim\">" << Text{bound} << "</td></tr>\n";
    return out << "</tbody></table></div>\n";
}

// One row of weights; those that differ stand out.
void weights_row(Html& out, const std::vector<double>& row, const std::vector<double>& other,
                 bool observed) {
    for (std::size_t j = 0; j < row.size(); ++j) {
        const std::string own = value_text(row[j]);
        if (observed && own != value_text(other[j]))
            out << "<td class=\"n bad\"><b>" << Text{own} << "</b></td>";
        else
            out << "<td class=\"n\">" << Text{own} << "</td>";
    }
}

Html weights_table(const diagnosis::CounterexampleReport& one) {
    Html out;
    if (!one.weights || one.weights->expected.empty()) return out;
    const auto &expected = one.weights->expected, &observed = one.weights->observed;
    bool differ = false;
    for (std::size_t i = 0; i < expected.size(); ++i)
        for (std::size_t j = 0; j < expected[i].size(); ++j)
            differ = differ || value_text(expected[i][j]) != value_text(observed[i][j]);
    if (!differ) return out;
    const auto keys = static_cast<std::int64_t>(expected.front().size());
    out << "<figure><h3>Weights of the smallest case</h3><div class=\"scroll\"><table><thead><tr>"
        << "<th></th><th class=\"n\" colspan=\"" << keys << "\">expected</th><th class=\"n\" "
        << "colspan=\"" << keys << "\">observed</th></tr></thead><tbody>\n";
    for (std::size_t i = 0; i < expected.size(); ++i) {
        out << "<tr><td>query " << static_cast<std::int64_t>(i) << "</td>";
        weights_row(out, expected[i], observed[i], false);
        weights_row(out, observed[i], expected[i], true);
        out << "</tr>\n";
    }
    return out << "</tbody></table></div></figure>\n";
}

Html matrices(const diagnosis::CounterexampleReport& one) {
    Html out;
    if (one.pictures.empty()) return out;
    out << "<figure class=\"gap\"><div class=\"figures\">";
    for (const diagnosis::Picture& picture : one.pictures)
        out << "<div class=\"scroll\">" << attention_matrix(picture) << "</div>";
    out << "</div><figcaption><span class=\"key\"><span><i class=\"s2\"></i>reads, may</span>"
        << "<span class=\"bad\">✕ reads, must not</span><span class=\"miss\">○ must read, does "
        << "not</span><span><i class=\"hidden\"></i>hidden</span></span><br>"
        << "Read off the kernel with unit values. ";
    for (std::size_t n = 0; n < one.pictures.size(); ++n)
        out << (n == 0 ? Literal("First ") : Literal(", then ")) << "<code>"
            << Text{one.pictures[n].line} << "</code>";
    const bool any = std::ranges::any_of(one.pictures, &diagnosis::Picture::differs);
    return out << (any ? Literal(".") : Literal(". Here it reads all that it must, and no more."))
               << "</figcaption></figure>\n";
}

Html map_figure(const diagnosis::CounterexampleReport& one) {
    Html out;
    if (!one.map || one.map->levels.empty()) return out;
    const auto rows = static_cast<std::int64_t>(one.map->levels.size());
    const auto columns = static_cast<std::int64_t>(one.map->levels.front().size());
    std::int64_t wrong = 0;
    for (const std::string& row : one.map->levels)
        wrong += static_cast<std::int64_t>(row.size()) - std::ranges::count(row, '0');
    if (wrong == 0) return out;  // what is wrong is no output
    const std::string says = count_text(wrong) + " of " + count_text(rows * columns) +
                             " cells are beyond their bound: queries downward, channels across.";
    return out << "<figure><h3>The case as found</h3>" << pixels(one.map->levels, says)
               << "<figcaption>Error over bound of every output of batch " << one.map->batch
               << ", head " << one.map->head
               << ": clear within it, pale just above, dark 10<sup>5</sup> times. " << Text{says}
               << "<br><code>" << Text{print(one.example.found.tried)}
               << "</code></figcaption></figure>\n";
}

Html boundary_figure(const diagnosis::CounterexampleReport& one) {
    const Html plot = boundary_plot(one.boundary);
    if (plot.empty()) return {};
    return Html() << "<figure><h3>Where it fails</h3><div class=\"scroll\">" << plot << "</div>"
                  << "<figcaption><span class=\"bad\">✕ fails</span> &nbsp; <span "
                  << "class=\"good\">● holds</span> &nbsp; every case of the law; "
                  << Text{one.boundary.says} << ".</figcaption></figure>\n";
}

Html shrink_figure(const diagnosis::CounterexampleReport& one) {
    const search::Counterexample& example = one.example;
    const Html plot = shrink_plot(example);
    if (plot.empty()) return {};
    Html out;
    out << "<figure><h3>How it was shrunk</h3><div class=\"scroll\">" << plot << "</div>"
        << "<figcaption>Scores of the case after each step that still failed; "
        << count_of(example.evaluations) << " evaluations, "
        << Text{time_text(example.shrink_seconds)}
        << ".</figcaption>\n<details><summary>the steps</summary><div class=\"scroll\"><table>"
        << "<thead><tr><th class=\"n\">evaluation</th><th>pass</th><th>change</th><th "
        << "class=\"n\">scores</th></tr></thead><tbody>\n";
    for (const search::ShrinkStep& step : example.steps)
        out << "<tr><td class=\"n\">" << step.evaluation << "</td><td>" << Text{step.pass}
            << "</td><td>" << Text{step.change} << "</td><td class=\"n\">" << count_of(step.scores)
            << "</td></tr>\n";
    return out << "</tbody></table></div></details></figure>\n";
}

Html other_laws(const RunReport& report, const RunFinding& f, const std::string& directory) {
    Html out;
    if (f.laws.size() < 2) return out;
    out << "<h3 class=\"gap\">The other laws it breaks, each in its smallest case</h3>\n";
    if (const std::string beside = f.beside(); !beside.empty())
        out << "<p>" << Text{beside} << ".</p>\n";
    out << "<div "
        << "class=\"scroll\"><table class=\"roomy\"><thead><tr><th>law</th><th>what is seen</th>"
        << "<th>smallest case</th><th class=\"n\">expected</th><th class=\"n\">observed</th><th>"
        << "replay</th></tr></thead><tbody>\n";
    for (std::size_t n = 1; n < f.laws.size(); ++n) {
        out << "<tr><td class=\"mono\">" << Text{f.laws[n]} << "</td>";
        const search::LawReport* law = report.law(f.laws[n]);
        const diagnosis::CounterexampleReport* one =
            law == nullptr ? nullptr : report.counterexample(law->counterexample);
        if (one == nullptr) {
            out << "<td colspan=\"5\"></td></tr>\n";
            continue;
        }
        const RunFinding other = finding_of(report, *one, directory);
        out << "<td>" << Text{other.problem};
        if (!other.element.empty())
            out << "<br><span class=\"dim small\">" << Text{one->violation().element_name}
                << ":</span>";
        out << "</td><td class=\"mono\">" << Text{other.smallest} << "</td><td class=\"n\">"
            << Text{other.element.expected} << "</td><td class=\"n bad\">"
            << Text{other.element.observed} << "</td><td class=\"mono nowrap\">"
            << Text{search::short_id(one->example.id)} << "</td></tr>\n";
    }
    return out << "</tbody></table></div>\n";
}

std::string capitalised(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
        text[0] = static_cast<char>(text[0] - 32);
    return text;
}

}  // namespace

Html cause_section(const RunReport& report, const RunFinding& f, std::size_t number,
                   const std::string& directory) {
    Html out;
    out << "<section id=\"cause" << static_cast<std::int64_t>(number)
        << "\">\n<div class=\"story\">\n<div>\n<h2>" << Text{capitalised(f.problem)} << "</h2>\n"
        << "<p class=\"dim small\">"
        << (f.proven ? Literal("Law ") : Literal("Not seen again, law ")) << "<code>"
        << Text{f.laws.front()} << "</code>"
        << (f.apart ? Literal("") : Literal(", not explained by the causes above")) << "</p>\n"
        << facts_of(f) << element_table(f) << "<div class=\"gap\">" << command_of(f.replay)
        << "</div>\n<details><summary>without the stored case</summary>"
        << command_of("attest replay \"" + print(f.lead->example.smallest) + "\" --law " +
                      f.laws.front() + f.replay.substr(f.replay.find(" --kernel ")))
        << "</details>\n</div>\n<div>\n";
    if (number <= whole_causes) out << weights_table(*f.lead) << matrices(*f.lead);
    out << "</div>\n</div>\n";
    if (number <= whole_causes)
        out << "<div class=\"three gap\">\n"
            << boundary_figure(*f.lead) << map_figure(*f.lead) << shrink_figure(*f.lead)
            << "</div>\n";
    return out << other_laws(report, f, directory) << "</section>\n";
}

}  // namespace attest::ci
