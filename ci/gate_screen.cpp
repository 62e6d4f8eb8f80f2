// What `attest gate` prints, and the same as a page of Markdown.

#include "ci/gate_screen.hpp"

#include "ci/escape.hpp"
#include "ci/finding.hpp"
#include "ci/number.hpp"

namespace attest::ci {

namespace {

using Kind = GateChange::Kind;

constexpr std::size_t told_max = 12;   // of what fails nothing
constexpr std::size_t causes_max = 8;  // told in sentences

std::string word_of(Kind kind) {
    switch (kind) {
        case Kind::worse:
            return "worse";
        case Kind::waived:
            return "waived";
        case Kind::better:
            return "better";
        case Kind::told:
            return "told";
    }
    return {};
}

std::string mark(const Screen& s, Kind kind) {
    const std::string word = s.pad(word_of(kind), 7);
    return kind == Kind::worse ? s.bad(word) : kind == Kind::waived ? s.warn(word) : s.dim(word);
}

std::string verdict_of(const GateReport& gate) {
    return gate.exit == exit_violated ? "WORSE"
           : gate.exit == exit_holds  ? "NOTHING WORSE"
                                      : "UNDECIDED";
}

std::string counts_of(const GateReport& gate) {
    std::string text = counted(gate.compared, "law") + " compared, " +
                       counted(gate.count(Kind::worse), "change") + " for the worse";
    if (gate.count(Kind::waived) > 0)
        text += ", " + count_text(gate.count(Kind::waived)) + " waived";
    if (gate.count(Kind::better) > 0)
        text += ", " + count_text(gate.count(Kind::better)) + " for the better";
    return text;
}

/// What the candidate's new violations come from, few where the laws are many.
std::vector<RunFinding> new_findings(const GateReport& gate, const RunReport& candidate,
                                     const std::string& directory) {
    std::vector<RunFinding> findings = findings_of(candidate, directory);
    std::erase_if(findings, [&](const RunFinding& f) {
        const GateChange* change = gate.about(f.laws);
        return change == nullptr || change->kind != Kind::worse;
    });
    if (findings.size() > causes_max) findings.resize(causes_max);
    return findings;
}

void draw_finding(Screen& s, const RunFinding& f) {
    s.line(s.bad(s.symbol("✕ ", "X ")) + s.bold(f.title()));
    s.fact("problem", f.problem);
    if (!f.computes.empty()) s.fact("it computes", f.computes);
    s.to_copy("replay", f.replay);
    s.line();
}

}  // namespace

std::string draw_gate(const GateReport& gate, const RunReport& baseline, const RunReport& candidate,
                      const std::string& directory, const ScreenStyle& style) {
    Screen s(style);
    s.line(s.bold("attest gate") + "  " + clean(baseline.run.kernel.typed) + " " +
           clean(baseline.run.kernel.manifest.version) + s.symbol(" → ", " -> ") +
           clean(candidate.run.kernel.typed) + " " + clean(candidate.run.kernel.manifest.version) +
           "  profile " + clean(candidate.run.profile.name) + "  seed " +
           std::to_string(candidate.run.seed));
    s.line();
    std::size_t told = 0, left = 0;
    for (const GateChange& change : gate.changes) {
        if ((change.kind == Kind::better || change.kind == Kind::told) && ++told > told_max) {
            ++left;
            continue;
        }
        s.line("  " + mark(s, change.kind) + " " + s.bold(change.subject) + "  " + change.baseline +
                   (change.baseline.empty() ? "" : s.symbol(" → ", " -> ")) +
                   (change.kind == Kind::worse ? s.bad(change.candidate) : change.candidate),
               10);
        if (!change.says.empty()) s.line("          " + s.dim(change.says), 10);
        if (!change.waiver.empty()) s.line("          waived: " + change.waiver, 10);
    }
    if (left > 0)
        s.line("  " + s.dim("and " + count_text(static_cast<std::int64_t>(left)) +
                            " more that fail nothing"));
    if (!gate.changes.empty()) s.line();
    for (const RunFinding& f : new_findings(gate, candidate, directory)) draw_finding(s, f);
    for (const std::string& note : gate.notes) s.line(s.warn("waivers") + "   " + note, 10);
    if (!gate.notes.empty()) s.line();
    for (const std::string& why : gate.undecided) s.fact("undecided", why, 11);
    for (const std::string& remedy : gate.remedies) s.to_copy("remedy", remedy, 11);
    if (!gate.undecided.empty()) s.line();
    const std::string verdict = verdict_of(gate);
    s.line((gate.exit == exit_violated ? s.bad(s.symbol("✕ ", "") + verdict)
            : gate.exit == exit_holds  ? s.bold(s.symbol("● ", "") + verdict)
                                       : s.warn(s.symbol("◐ ", "? ") + verdict)) +
           "   " + counts_of(gate) + "   exit " + std::to_string(gate.exit));
    return s.text();
}

std::string gate_page(const GateReport& gate, const RunReport& baseline, const RunReport& candidate,
                      const std::string& directory) {
    std::string text =
        "## attest gate: " + verdict_of(gate) + ", " + markdown_escaped(baseline.run.kernel.typed) +
        " → " + markdown_escaped(candidate.run.kernel.typed) + "\n\n" + counts_of(gate) + "\n\n";
    for (const RunFinding& f : new_findings(gate, candidate, directory))
        text += "**" + markdown_escaped(f.title()) + "**: " + markdown_escaped(f.problem) +
                (f.computes.empty() ? "" : "; it computes " + markdown_escaped(f.computes)) +
                "\n\n```\n" + f.replay + "\n```\n\n";
    text += "| | what | baseline | candidate | |\n|---|---|---|---|---|\n";
    for (const GateChange& change : gate.changes)
        text += "| " + word_of(change.kind) + " | " + markdown_escaped(change.subject) + " | " +
                markdown_escaped(change.baseline) + " | " + markdown_escaped(change.candidate) +
                " | " + markdown_escaped(change.says) +
                (change.waiver.empty() ? "" : " waived: " + markdown_escaped(change.waiver)) +
                " |\n";
    for (const std::string& why : gate.undecided)
        text += "\n- undecided: " + markdown_escaped(why) + "\n";
    for (const std::string& remedy : gate.remedies) text += "\n```\n" + remedy + "\n```\n";
    for (const std::string& note : gate.notes) text += "\n- " + markdown_escaped(note) + "\n";
    return text;
}

}  // namespace attest::ci
