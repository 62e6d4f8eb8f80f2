#include "ci/check_screen.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "ci/coverage.hpp"
#include "ci/number.hpp"
#include "ci/run_verdict.hpp"

namespace attest {

namespace {

constexpr std::size_t nearest_shown = 3, inconclusive_shown = 8;

std::string reason_of(const Record& law) {
    return law.at("reason").is_string() ? clean(law.at("reason").get<std::string>()) : "";
}

std::string how(const Records& records) {
    const Record& kernel = records.run.at("kernel");
    if (kernel.at("border") == "builtin") return "built in";
    return clean(kernel.value("typed", kernel.at("id").get<std::string>()));
}

void draw_head(Screen& s, const Records& records) {
    const Record &run = records.run, &kernel = run.at("kernel");
    std::string line = s.bold("attest " + run.at("command").get<std::string>()) + "  " +
                       clean(kernel.at("name").get<std::string>()) + " " +
                       clean(kernel.at("version").get<std::string>()) + "  " + s.dim(how(records)) +
                       "  profile " + clean(run.at("profile").at("name").get<std::string>()) +
                       "  seed " + run.at("seed").get<std::string>();
    if (run.at("shard").at("count") != 1)
        line += "  shard " + run["shard"]["index"].dump() + "/" + run["shard"]["count"].dump();
    s.line(line);
    s.line();
}

struct Family {
    std::string name;
    std::vector<const Record*> laws;
    std::int64_t count(std::string_view verdict) const {
        return std::count_if(laws.begin(), laws.end(),
                             [&](const Record* law) { return law->at("verdict") == verdict; });
    }
};

std::vector<Family> families(const Records& records) {
    std::vector<Family> list;
    for (const Record& law : records.laws) {
        const std::string name = law.at("family");
        auto at =
            std::find_if(list.begin(), list.end(), [&](const Family& f) { return f.name == name; });
        if (at == list.end()) at = list.insert(list.end(), Family{name, {}});
        at->laws.push_back(&law);
    }
    return list;
}

// The words after a family's marks: the worst verdict, or how near the holding laws came.
std::string tail_of(const Screen& s, const Family& f) {
    if (const std::int64_t n = f.count("violated")) return s.bad(count_text(n) + " violated");
    if (const std::int64_t n = f.count("inconclusive"))
        return s.warn(count_text(n) + " inconclusive");
    double worst = -1;
    bool bits = true;
    for (const Record* law : f.laws) {
        if (law->at("verdict") != "holds") continue;
        if (law->at("compares") != "bits") bits = false;
        if (const auto at = law->find("worst"); at != law->end() && at->is_object())
            worst = std::max(worst, real_of(at->at("ratio")));
    }
    if (worst == 0) return "holds" + s.dim(", exactly");
    if (worst > 0) return "holds" + s.dim(", worst " + ratio_text(worst) + " of the bound");
    return "holds" + (bits ? s.dim(", to the bit") : "");
}

void draw_family(Screen& s, const Family& f) {
    std::string marks;
    std::int64_t cases = 0;
    for (const Record* law : f.laws) {
        marks += s.mark(law->at("verdict").get<std::string>());
        cases += law->at("cases").get<std::int64_t>();
    }
    const std::string left = s.pad("  " + f.name, 16) + " " + s.pad(marks, 15) + " ";
    if (f.count("holds") + f.count("violated") + f.count("inconclusive") > 0) {
        s.line(left + s.pad_left(count_text(cases), 6) + " " + s.dim("cases") + "  " +
               tail_of(s, f));
        return;
    }
    // Nothing ran: why. What was cut off says more than what does not apply.
    const auto cut =
        std::find_if(f.laws.begin(), f.laws.end(), [](const Record* law) { return was_cut(*law); });
    const std::string reason = reason_of(cut == f.laws.end() ? *f.laws.front() : **cut);
    s.line(left + "  " + s.dim(s.cut(reason, s.style().width - columns_of(left) - 2)));
}

void draw_nearest(Screen& s, const Records& records) {
    std::vector<const Record*> laws;
    for (const Record& law : records.laws)
        if (law.at("verdict") == "holds" && law.contains("worst") && law["worst"].is_object() &&
            real_of(law["worst"]["ratio"]) > 0)
            laws.push_back(&law);
    if (laws.empty()) return;
    std::stable_sort(laws.begin(), laws.end(), [](const Record* a, const Record* b) {
        return real_of(a->at("worst").at("ratio")) > real_of(b->at("worst").at("ratio"));
    });
    if (laws.size() > nearest_shown) laws.resize(nearest_shown);
    s.line(s.dim("closest to the bound"));
    int width = 24;
    for (const Record* law : laws)
        width = std::max(width, static_cast<int>(law->at("law").get<std::string>().size()) + 3);
    for (const Record* law : laws)
        s.line(s.pad("  " + law->at("law").get<std::string>(), width) + " " +
               s.pad(ratio_text(real_of(law->at("worst").at("ratio"))), 6) + " " +
               s.cut(law->at("worst").at("line").get<std::string>(), s.style().width - width - 8));
    s.line();
}

void draw_extent(Screen& s, const Records& records, const RunVerdict& v) {
    const CoverageSummary c = summarise(records.coverage);
    if (c.possible > 0) {
        std::string formats;
        for (const std::string& f : c.formats) formats += (formats.empty() ? "" : ", ") + f;
        std::string line =
            count_text(c.drawn) + " of " + count_text(c.possible) + " feature pairs in " + formats;
        if (c.undrawn > 0)
            line += "; " + count_text(c.undrawn) + " never drawn (" + count_text(c.allowed) +
                    " allowed)";
        s.line(s.dim("covered   " + line), 10);
    }
    std::string skipped =
        v.not_applicable == 0 ? "no law" : counted(v.not_applicable, "law") + " not applicable";
    if (v.not_run > v.cut) skipped += ", " + counted(v.not_run - v.cut, "law") + " left out";
    if (v.cases + v.discarded > 0)
        skipped += "; " +
                   share_text(static_cast<double>(v.discarded) /
                              static_cast<double>(v.cases + v.discarded)) +
                   " of draws dropped";
    s.line(s.dim("skipped   " + skipped), 10);
    std::string taken;
    if (records.end.is_object() && records.end.contains("narrowed"))
        for (const Record& limit : records.end["narrowed"])
            taken += (taken.empty() ? "" : "; ") + limit.get<std::string>();
    if (!taken.empty()) s.line(s.dim("taken     " + clean(taken)), 10);
    if (records.end.is_object() && records.end.contains("oracle"))
        s.line(s.dim("oracle    " + clean(records.end["oracle"].get<std::string>())), 10);
    s.line();
}

void draw_inconclusive(Screen& s, const Records& records, const RunVerdict& v) {
    std::map<std::string, std::vector<std::string>> by_reason;
    std::vector<std::string> order;
    for (const Record& law : records.laws) {
        if (law.at("verdict") != "inconclusive") continue;
        const std::string reason = reason_of(law);
        if (by_reason[reason].empty()) order.push_back(reason);
        by_reason[reason].push_back(law.at("law"));
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
    if (!v.reason.empty()) s.line(head + v.reason, 16);
    if (!order.empty() || !v.reason.empty()) s.line();
}

// What a statistic or a declaration casts doubt on, but fails no gate of this profile.
void draw_doubts(Screen& s, const Records& records) {
    bool any = false;
    for (const Record& law : records.laws) {
        if (!law.contains("doubt")) continue;
        any = true;
        std::string line = law.at("law").get<std::string>() + ": " +
                           clean(law["doubt"].at("says").get<std::string>());
        if (law.contains("statistic") && law["statistic"].is_object())
            line += " (false-positive rate " +
                    value_text(real_of(law["statistic"].at("false_positive_rate"))) + ")";
        s.line(s.warn(s.pad(clean(law["doubt"].at("class").get<std::string>()), 9)) + " " + line,
               10);
    }
    if (any) s.line();
}

void draw_kept(Screen& s, const RunVerdict& v, const std::string& directory) {
    s.line("  kept      results of " + counted(v.cases, "case") + " in " + clean(directory) +
               "/result.jsonl",
           12);
    s.line("  resume    " + s.command("attest check --resume " + clean(directory)), 12);
    s.line();
}

void draw_verdict(Screen& s, const Records& records, const RunVerdict& v,
                  const std::string& directory) {
    const std::string time =
        time_text(records.end.is_null() ? 0.0 : records.end.value("seconds", 0.0));
    const std::string tail = "   exit " + std::to_string(v.exit);
    const std::string cases = counted(v.cases, "case");
    const std::int64_t causes = static_cast<std::int64_t>(records.causes.size());
    std::string line;
    if (v.verdict == "holds") {
        line = s.bold(s.symbol("● ", "") + "HOLDS") + "   " + counted(v.holds, "law") + ", " +
               cases + ", " + large_count_text(v.elements) + " elements, " + time + tail;
    } else if (v.verdict == "violated") {
        line = s.bad(s.symbol("✕ ", "") + "VIOLATED") + "   " + count_text(v.violated) + " of " +
               counted(v.ran(), "law") + ", " + counted(causes, "cause") + "   " + cases + ", " +
               time + (v.cut > 0 ? ", not complete" : "") + tail;
    } else if (v.verdict == "not_complete") {
        line = s.warn(s.symbol("○ ", "") + "NOT COMPLETE") + "   " + counted(v.holds, "law") +
               (v.holds == 1 ? " holds" : " hold") + " so far, " + count_text(v.cut) +
               " not run   " + time + tail;
    } else {
        line = s.warn(s.symbol("◐ ", "? ") + "INCONCLUSIVE") + "   " + counted(v.holds, "law") +
               (v.holds == 1 ? " holds" : " hold") + ", " + count_text(v.inconclusive) +
               " checked too little   " + time + tail;
    }
    const std::string report = "report: " + clean(directory) + "/result.jsonl";
    if (v.verdict == "not_complete") {
        s.line(line);
    } else if (s.style().wide() && columns_of(line) + 3 + columns_of(report) <= s.style().width) {
        s.line(line + "   " + report);
    } else {
        s.line(line);
        s.line(report);
    }
}

}  // namespace

void draw_families(Screen& s, const Records& records) {
    for (const Family& f : families(records)) draw_family(s, f);
    std::string marks;
    for (const char* verdict : {"holds", "violated", "inconclusive", "not_run", "not_applicable"}) {
        const bool any = std::any_of(records.laws.begin(), records.laws.end(),
                                     [&](const Record& l) { return l.at("verdict") == verdict; });
        std::string word = verdict;
        std::replace(word.begin(), word.end(), '_', ' ');
        if (any) marks += (marks.empty() ? "" : "  ") + s.mark(verdict) + " " + s.dim(word);
    }
    s.line();
    s.line("  " + s.dim("marks") + " " + marks);
    s.line();
}

std::string draw_check(const Records& records, const ScreenStyle& style,
                       const std::string& directory) {
    Screen s(style);
    const bool interrupted = !records.end.is_null() && records.end.value("interrupted", false);
    const RunVerdict v = verdict_of(records, interrupted);
    draw_head(s, records);
    draw_families(s, records);
    draw_causes(s, records, directory);
    if (v.verdict == "holds" || v.verdict == "inconclusive") {
        draw_nearest(s, records);
        draw_extent(s, records, v);
    }
    if (v.verdict != "violated") draw_doubts(s, records);  // a proof leaves no need of them
    draw_inconclusive(s, records, v);
    if (interrupted || v.cut > 0) draw_kept(s, v, directory);
    draw_verdict(s, records, v, directory);
    return s.text();
}

}  // namespace attest
