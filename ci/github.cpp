#include <algorithm>

#include "ci/ci_formats.hpp"
#include "ci/doubt.hpp"
#include "ci/escape.hpp"
#include "ci/number.hpp"
#include "ci/run_words.hpp"
#include "ci/screen.hpp"

namespace attest::ci {

namespace {

constexpr std::size_t annotations_max = 10;  // of a kind that GitHub shows of a step

std::string command(const char* kind, const std::optional<KernelPlace>& place,
                    const std::string& title, const std::string& text) {
    std::string line = std::string("::") + kind + " ";
    if (place)
        line += "file=" + annotation_property(place->file) +
                ",line=" + std::to_string(place->line) + ",";
    return line + "title=" + annotation_property("attest " + title) +
           "::" + annotation_escaped(text) + "\n";
}

std::string sentence(const RunFinding& f) {
    std::string text = f.problem + ".";
    if (!f.computes.empty()) text += " It computes: " + f.computes + ".";
    if (!f.fails.empty()) text += " Fails: " + f.when() + ".";
    return text + " Smallest: " + f.smallest + "\nreplay: " + f.replay;
}

// Where there is room for all but one, the last says how many are left.
void cap(std::vector<std::string>& lines, const char* kind) {
    if (lines.size() <= annotations_max) return;
    const auto rest = static_cast<std::int64_t>(lines.size() - annotations_max + 1);
    lines.resize(annotations_max - 1);
    lines.push_back(command(kind, std::nullopt, "and more", counted(rest, "further finding")));
}

struct Open {
    std::string reason;
    std::vector<std::string> laws;
};

// Why laws are inconclusive, and which: those of a failure that was not seen again have a finding.
std::vector<Open> open_ends(const RunReport& report) {
    std::vector<Open> list;
    for (const search::LawReport& law : report.laws) {
        if (law.verdict.decision != law::Decision::inconclusive || !law.counterexample.empty())
            continue;
        const std::string reason = clean(law.verdict.reason.text);
        auto at = std::ranges::find(list, reason, &Open::reason);
        if (at == list.end()) at = list.insert(at, {reason, {}});
        at->laws.push_back(law.law);
    }
    return list;
}

// Markdown, up to so many bytes: what does not fit is counted, and open tags are closed.
class Page {
public:
    explicit Page(std::size_t bytes_max) : most_(bytes_max - std::min(bytes_max, reserved)) {}
    bool add(const std::string& part) {
        if (text_.size() + part.size() > most_) {
            ++left_;
            return false;
        }
        text_ += part;
        return true;
    }
    /// A folded part: head, rows, tail; whole or, with fewer rows, closed all the same.
    void fold(const std::string& title, const std::string& head,
              const std::vector<std::string>& rows) {
        const std::string open = "<details><summary>" + title + "</summary>\n\n" + head;
        const std::string close = "\n</details>\n\n";
        if (text_.size() + open.size() + close.size() > most_) {
            left_ += static_cast<std::int64_t>(rows.size());
            return;
        }
        text_ += open;
        most_ -= close.size();
        for (const std::string& row : rows) add(row);
        most_ += close.size();
        text_ += close;
    }
    std::string text() const {
        return left_ == 0 ? text_
                          : text_ + "… and " + count_text(left_) + " more, see result.jsonl\n";
    }

private:
    static constexpr std::size_t reserved = 80;  // for the last line
    std::size_t most_;
    std::string text_;
    std::int64_t left_ = 0;
};

std::string code(const std::string& text) {
    std::string plain = text;
    std::ranges::replace(plain, '`', '\'');
    std::ranges::replace(plain, '|', '/');
    return "`" + plain + "`";
}

std::string picture_of(const RunFinding& f) {
    if (f.lead->pictures.empty() || !f.lead->pictures.back().differs()) return {};
    const diagnosis::Picture& picture = f.lead->pictures.back();
    std::string text = "```\n# reads   X reads, must not   o must read, does not   . hidden\n";
    for (std::size_t i = 0; i < picture.may.size(); ++i) {
        for (std::size_t j = 0; j < picture.may[i].size(); ++j) {
            const bool may = picture.may[i][j] == '1', reads = picture.reads[i][j] == '1';
            text += may && reads ? "# " : reads ? "X " : may ? "o " : ". ";
        }
        text.back() = '\n';
    }
    return text + "```\n\n";
}

std::string cause_part(const RunFinding& f, std::size_t number) {
    std::string text = "### " + std::to_string(number) + ". " + markdown_escaped(f.problem) +
                       "\n\n| | |\n|---|---|\n";
    const auto row = [&](const char* key, const std::string& value) {
        if (!value.empty()) text += std::string("| ") + key + " | " + value + " |\n";
    };
    row("law",
        code(f.laws.front()) +
            (f.laws.size() > 1 ? " and " + std::to_string(f.laws.size() - 1) + " more" : ""));
    row("it computes", markdown_escaped(f.computes));
    row("it declares", markdown_escaped(f.declares));
    row("held in", markdown_escaped(f.held_in));
    row("fails", markdown_escaped(f.when()));
    row("smallest case", code(f.smallest));
    row("observed", markdown_escaped(f.element.line()));
    row("confirmed", markdown_escaped(f.confirmed));
    return text + "\n```\n" + f.replay + "\n```\n\n" + picture_of(f);
}

std::vector<std::string> law_rows(const RunReport& report) {
    std::vector<std::string> rows;
    for (const search::LawReport& law : report.laws) {
        const bool decided = law.verdict.decision == law::Decision::holds ||
                             law.verdict.decision == law::Decision::violated;
        std::string words = decided ? decision_text(law) : reason_text(law);
        if (law.verdict.decision == law::Decision::violated) words = "**violated**";
        rows.push_back("| " + code(law.law) + " | " + (decided ? words : markdown_escaped(words)) +
                       " | " + count_text(law.cases) + " | " +
                       (law.ratios ? ratio_text(law.ratios->worst.ratio) : "") + " |\n");
    }
    return rows;
}

}  // namespace

std::string headline(const RunReport& report) {
    const RunVerdict& v = report.end->verdict;
    const std::string kernel = clean(report.run.kernel.manifest.name);
    if (v.decision == RunDecision::violated)
        return kernel + " breaks " + count_text(v.violated) + " of " + counted(v.ran(), "law") +
               ", " + causes_text(report) + (v.cut > 0 ? ", not complete" : "");
    if (v.decision == RunDecision::holds) {
        const std::string passed = let_pass_text(report), suspected = suspected_text(report);
        const std::string shard =
            report.run.shard_count == 1 ? "" : ", in shard " + shard_text(report.run);
        const std::string doubt = suspected.empty() ? "" : "; " + suspected;
        if (!passed.empty())
            return kernel + " passes profile " + clean(report.run.profile.name) + ", which " +
                   passed + shard + doubt;
        return kernel + " keeps all " + counted(v.holds, "law") + " that apply" + shard + doubt;
    }
    if (v.decision == RunDecision::not_complete)
        return kernel + " was not judged whole: " + count_text(v.holds) + " hold, " +
               count_text(v.cut) + " not run";
    return kernel + " could not be judged: " +
           (v.ran() == 0
                ? "no law was tried"
                : count_text(v.holds) + " hold, " + count_text(v.inconclusive) + " inconclusive") +
           (v.reason.empty() ? "" : "; " + clean(v.reason));
}

std::string draw_annotations(const RunReport& report, const std::string& directory,
                             const GateReport* gate) {
    std::vector<std::string> errors, warnings, notices;
    const std::vector<RunFinding> findings = findings_of(report, directory);
    for (const RunFinding& f : findings) {
        const auto place = f.places.empty() ? std::nullopt : std::optional(f.places.front());
        const GateChange* change = gate == nullptr ? nullptr : gate->about(f.laws);
        const bool told = change != nullptr && change->kind != GateChange::Kind::worse;
        if (!f.proven)
            warnings.push_back(
                command("warning", place, f.title() + ", not seen again", sentence(f)));
        else if (told && change->kind == GateChange::Kind::waived)
            warnings.push_back(command("warning", place, f.title() + ", waived",
                                       sentence(f) + "\nwaived: " + change->waiver));
        else if (told)
            notices.push_back(command("notice", place, f.title() + ", as before", sentence(f)));
        else
            errors.push_back(command("error", place, f.title(), sentence(f)));
    }
    if (gate != nullptr)
        for (const GateChange* loss : gate->losses(proven_laws(findings)))
            errors.push_back(command("error", source_of(report), "gate: " + loss->subject,
                                     loss->baseline + " → " + loss->candidate +
                                         (loss->says.empty() ? "" : "\n" + loss->says)));
    for (const Open& open : open_ends(report))
        warnings.push_back(command(
            "warning", std::nullopt,
            open.laws.front() +
                (open.laws.size() > 1 ? " and " + std::to_string(open.laws.size() - 1) + " more"
                                      : "") +
                " inconclusive",
            open.reason));
    for (const RunDoubt& doubt : doubts_of(report))
        warnings.push_back(
            command("warning", std::nullopt, doubt.law->law + " " + decision_text(*doubt.law),
                    doubt.problem + (doubt.replay.empty() ? "" : "\nreplay: " + doubt.replay)));
    const RunVerdict& v = report.end->verdict;
    if (v.decision == RunDecision::not_complete || !v.reason.empty())
        warnings.push_back(command("warning", std::nullopt, "undecided", headline(report)));
    if (const auto nearest = nearest_laws(report, 1); !nearest.empty())
        notices.push_back(
            command("notice", std::nullopt, "closest to the bound",
                    nearest.front()->law + " " + ratio_text(nearest.front()->ratios->worst.ratio) +
                        " of the bound, " + print(nearest.front()->ratios->worst.tried)));
    cap(errors, "error");
    cap(warnings, "warning");
    cap(notices, "notice");
    std::string text;
    for (const auto* lines : {&errors, &warnings, &notices})
        for (const std::string& line : *lines) text += line;
    return text;
}

std::string draw_summary(const RunReport& report, const std::string& directory,
                         std::size_t bytes_max) {
    Page page(bytes_max);
    const RunVerdict& v = report.end->verdict;
    std::string verdict(name(v.decision));
    std::ranges::replace(verdict, '_', ' ');
    std::ranges::transform(verdict, verdict.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    });
    page.add("## attest: " + verdict + ", " + markdown_escaped(headline(report)) + "\n\n");
    page.add(counted(v.cases, "case") + ", " + large_count_text(v.elements) + " elements, " +
             time_text(report.end->seconds) + ", profile " +
             markdown_escaped(report.run.profile.name) + ", seed " +
             std::to_string(report.run.seed) + ", exit " + std::to_string(v.exit) + "\n\n");
    std::size_t number = 0;
    for (const RunFinding& f : findings_of(report, directory))
        if (f.proven) page.add(cause_part(f, ++number));
    for (const RunFinding& f : findings_of(report, directory))
        if (!f.proven)
            page.add("**Not seen again**: " + markdown_escaped(f.problem) + " (" +
                     code(f.laws.front()) + ")\n\n");
    for (const RunDoubt& doubt : doubts_of(report))
        page.add("**" + decision_text(*doubt.law) + "**: " + code(doubt.law->law) +
                 (doubt.share.empty() ? "" : ", " + doubt.share) + ": " +
                 markdown_escaped(doubt.problem) + "\n\n" +
                 (doubt.replay.empty() ? "" : "```\n" + doubt.replay + "\n```\n\n"));
    for (const Open& open : open_ends(report))
        page.add(
            "**Inconclusive**: " + code(open.laws.front()) +
            (open.laws.size() > 1 ? " and " + std::to_string(open.laws.size() - 1) + " more" : "") +
            ": " + markdown_escaped(open.reason) + "\n\n");
    page.fold("Every law", "| law | verdict | cases | error/bound |\n|---|---|---:|---:|\n",
              law_rows(report));
    return page.text();
}

}  // namespace attest::ci
