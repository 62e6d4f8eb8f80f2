#include "ci/check_screen.hpp"

#include <algorithm>
#include <map>

#include "ci/certificate_files.hpp"
#include "ci/doubt.hpp"
#include "ci/escape.hpp"
#include "ci/number.hpp"
#include "ci/options.hpp"
#include "ci/run_words.hpp"

namespace attest::ci {

namespace {

constexpr std::size_t nearest_shown = 3, inconclusive_shown = 8, doubts_shown = 8;

void draw_head(Screen& s, const RunHeader& run) {
    const KernelReport& kernel = run.kernel;
    const std::string how =
        kernel.interface == kernel::KernelInterface::builtin ? "built in" : clean(kernel.typed);
    std::string line = s.bold("attest " + run.command) + "  " + clean(kernel.manifest.name) + " " +
                       clean(kernel.manifest.version) + "  " + s.dim(how) + "  profile " +
                       clean(run.profile.name) + "  seed " + std::to_string(run.seed);
    if (run.shard_count != 1) line += "  shard " + shard_text(run);
    s.line(line);
    if (const std::string absent = absent_barriers(kernel); !absent.empty())
        s.line(s.warn("its process is not held in by " + absent) +
               s.dim(" (attest manual worker)"));
    s.line();
}

void draw_nearest(Screen& s, const RunReport& report) {
    const std::vector<const search::LawReport*> laws = nearest_laws(report, nearest_shown);
    if (laws.empty()) return;
    s.line(s.dim("closest to the bound"));
    int width = 24;
    for (const search::LawReport* law : laws)
        width = std::max(width, static_cast<int>(law->law.size()) + 3);
    for (const search::LawReport* law : laws)
        s.line(s.pad("  " + law->law, width) + " " +
               s.pad(ratio_text(law->ratios->worst.ratio), 6) + " " +
               s.cut(print(law->ratios->worst.tried), s.style().width - width - 8));
    s.line();
}

// How far the run got along each axis, and which laws stopped before the others.
void draw_sizes(Screen& s, const RunReport& report) {
    const SizeReport sizes = sizes_of(report);
    if (sizes.judged.empty()) return;
    const auto follows = [&](const search::LawReport& law, search::SizeAxis axis) {
        return sizes.promised[axis] == 0 || law.promised[axis] > 0;
    };
    std::int64_t less = 0;
    const search::LawReport* first = nullptr;
    for (const search::LawReport& law : report.laws) {
        if (law.largest.empty() ||
            (follows(law, search::SizeAxis::len_kv) && follows(law, search::SizeAxis::dim_qk)))
            continue;
        if (first == nullptr) first = &law;
        ++less;
    }
    std::string line = sizes_text(sizes.judged);
    if (less > 0)
        line += "; " + counted(less, "law") + " less, as " + first->law + ": " +
                sizes_text(first->largest);
    s.line(s.dim("largest   " + line), 10);
}

void draw_extent(Screen& s, const RunReport& report) {
    const search::CoverageSummary c = search::summarise(report.coverage);
    if (c.possible > 0) {
        std::string formats;
        for (const Precision f : c.formats)
            formats.append(formats.empty() ? "" : ", ").append(name(f));
        if (c.mixed) formats += " and mixed";
        std::string line =
            count_text(c.drawn) + " of " + count_text(c.possible) + " feature pairs in " + formats;
        if (c.undrawn > 0)
            line += "; " + count_text(c.undrawn) + " never drawn (" + count_text(c.allowed) +
                    " allowed)";
        s.line(s.dim("covered   " + line), 10);
    }
    draw_sizes(s, report);
    if (const std::string fewer = fewer_cases_text(report); !fewer.empty())
        s.line(s.dim("tried     " + fewer), 10);
    s.line(s.dim("skipped   " + skipped_text(report)), 10);
    if (const std::string refused = refused_text(report); !refused.empty())
        s.line(s.dim("refused   " + clean(refused)), 10);
    if (const std::string chance = chance_text(report); !chance.empty())
        s.line(s.dim("chance    " + chance), 10);
    s.line(s.dim("unjudged  " + unjudged(report)), 10);
    std::string taken;
    for (const std::string& limit : report.end->narrowed) taken += "; " + limit;
    if (!taken.empty()) s.line(s.dim("taken     " + clean(taken.substr(2))), 10);
    if (!report.end->oracle.empty()) s.line(s.dim("oracle    " + clean(report.end->oracle)), 10);
    s.line();
}

void draw_inconclusive(Screen& s, const RunReport& report) {
    std::map<std::string, std::vector<std::string>> by_reason;
    std::vector<std::string> order;
    for (const search::LawReport& law : report.laws) {
        if (law.verdict.decision != law::Decision::inconclusive || !law.counterexample.empty())
            continue;
        const std::string reason = clean(law.verdict.reason.text);
        if (by_reason[reason].empty()) order.push_back(reason);
        by_reason[reason].push_back(law.law);
    }
    const std::string head = s.warn(s.symbol("◐ ", "? ") + "inconclusive") + "  ";
    for (std::size_t n = 0; n < order.size() && n < inconclusive_shown; ++n) {
        const auto& laws = by_reason[order[n]];
        const std::string more =
            laws.size() > 1 ? " and " + std::to_string(laws.size() - 1) + " more" : "";
        s.line(head + laws.front() + more + ": " + order[n], 16);
    }
    if (order.size() > inconclusive_shown)
        s.line(head + std::to_string(order.size() - inconclusive_shown) + " further reasons");
    const std::string& whole = report.end->verdict.reason;
    if (!whole.empty()) s.line(head + whole, 16);
    if (!order.empty() || !whole.empty()) s.line();
}

// What a statistic or a declaration casts doubt on, or the profile lets pass.
void draw_doubts(Screen& s, const RunReport& report) {
    const std::vector<RunDoubt> doubts = doubts_of(report);
    for (std::size_t n = 0; n < doubts.size() && n < doubts_shown; ++n) {
        const RunDoubt& doubt = doubts[n];
        s.line(s.warn(s.symbol("◇ ", "! ") + doubt.word) + "  " + s.bold(doubt.law->law) +
               (doubt.share.empty() ? "" : ", " + doubt.share));
        s.fact("problem", doubt.problem);
        if (!doubt.tried.empty()) s.fact("case", doubt.tried);
        if (!doubt.replay.empty()) s.to_copy("replay", doubt.replay);
        s.line();
    }
    std::string rest;
    for (std::size_t n = doubts_shown; n < doubts.size(); ++n)
        rest += (rest.empty() ? "" : ", ") + doubts[n].law->law + " " + doubts[n].word;
    if (rest.empty()) return;
    s.fact("and", rest);
    s.line();
}

// What ended the run before its time, and which stored failures it could not read.
void draw_trouble(Screen& s, const RunEnd& end) {
    if (!end.ended.empty()) s.line(s.warn(s.pad("ended", 9)) + " " + clean(end.ended), 10);
    for (const std::string& file : end.unread)
        s.line(s.warn(s.pad("not read", 9)) + " " + clean(file), 10);
    if (!end.ended.empty() || !end.unread.empty()) s.line();
}

void draw_kept(Screen& s, const RunReport& report, const std::string& directory) {
    const RunVerdict& v = report.end->verdict;
    if (const std::string why = stopped_text(report); !why.empty()) s.fact("stopped", why, 10);
    s.line("  kept      results of " + counted(v.cases, "case") + " in " + clean(directory) +
               "/result.jsonl",
           12);
    s.to_copy("resume", resume_line(report.run, directory), 10);
    s.line();
}

// The verdict of a shard says nothing of the rest.
std::string shard_words(const RunHeader& run) {
    return run.shard_count == 1 ? "" : " in shard " + shard_text(run);
}

void draw_verdict(Screen& s, const RunReport& report, const std::string& directory) {
    const RunVerdict& v = report.end->verdict;
    const std::string time = time_text(report.end->seconds);
    const std::string tail = "   exit " + std::to_string(exit_of(report));
    const std::string cases = counted(v.cases, "case");
    std::string line;
    if (v.decision == RunDecision::holds) {
        const std::string passed = let_pass_text(report), suspected = suspected_text(report);
        std::string title = s.bold(s.symbol("● ", "") + "HOLDS" + shard_words(report.run));
        if (!passed.empty()) {
            s.line(s.warn(s.symbol("◇ ", "! ") + "HOLDS" + shard_words(report.run) +
                          " under profile " + clean(report.run.profile.name) + ", which " +
                          passed));
            title.clear();
        }
        line = title + (title.empty() ? "  " : "   ") + counted(v.holds, "law") + ", " + cases +
               ", " + large_count_text(v.elements) + " elements, " + time +
               (suspected.empty() ? "" : ", " + suspected) + tail;
    } else if (v.decision == RunDecision::violated) {
        const std::string begin = s.bad(s.symbol("✕ ", "") + "VIOLATED") + "   " +
                                  count_text(v.violated) + " of " + counted(v.ran(), "law") + ", " +
                                  causes_text(report) + "   ";
        const std::string end = time + (v.cut > 0 ? ", not complete" : "") + tail;
        line = begin + cases + ", " + end;
        // Where that does not go into a line, without the cases, which stand with each family.
        if (columns_of(line) > s.style().width) line = begin + end;
    } else if (v.decision == RunDecision::not_complete) {
        line = s.warn(s.symbol("○ ", "") + "NOT COMPLETE") + "   " + counted(v.holds, "law") +
               (v.holds == 1 ? " holds" : " hold") + " so far, " + count_text(v.cut) +
               " not run   " + time + tail;
    } else {
        line = s.warn(s.symbol("◐ ", "? ") + "INCONCLUSIVE") + "   " +
               (v.ran() == 0 ? "no law was judged"
                             : counted(v.holds, "law") + (v.holds == 1 ? " holds" : " hold")) +
               (v.inconclusive > 0 ? ", " + count_text(v.inconclusive) + " inconclusive" : "") +
               "   " + time + tail;
    }
    const std::string where = "report: " + clean(directory) + "/result.jsonl";
    if (v.decision == RunDecision::not_complete) {
        s.line(line);
    } else if (s.style().wide() && columns_of(line) + 3 + columns_of(where) <= s.style().width) {
        s.line(line + "   " + where);
    } else {
        s.line(line);
        s.line(where);
    }
}

}  // namespace

std::string resume_line(const RunHeader& run, const std::string& directory) {
    const bool builtin = run.kernel.interface == kernel::KernelInterface::builtin;
    std::string line = "attest " + run.command + " " +
                       (builtin ? "" : shell_word(clean(run.kernel.typed)) + " ") + "--resume " +
                       shell_word(clean(directory));
    if (const std::string key = parse_command_line(run.argv).sign; !key.empty())
        line += " --sign " + shell_word(clean(key));
    return line;
}

std::string draw_check(const RunReport& report, const ScreenStyle& style,
                       const std::string& directory) {
    Screen s(style);
    const RunVerdict& v = report.end->verdict;
    draw_head(s, report.run);
    draw_families(s, report);
    draw_causes(s, report, directory);
    draw_unproven(s, report, directory);
    if (v.decision == RunDecision::holds || v.decision == RunDecision::inconclusive) {
        draw_nearest(s, report);
        draw_extent(s, report);
    }
    // A proof leaves no need of doubts.
    if (v.decision != RunDecision::violated) draw_doubts(s, report);
    draw_inconclusive(s, report);
    draw_trouble(s, *report.end);
    if (was_ended_early(report)) draw_kept(s, report, directory);
    draw_verdict(s, report, directory);
    return s.text();
}

}  // namespace attest::ci
