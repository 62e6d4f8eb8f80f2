// A cause on the screen: the sentence, what the kernel computes instead, when, the smallest case
// and the line that repeats it.

#include <algorithm>
#include <tuple>
#include <utility>

#include "ci/check_screen.hpp"
#include "ci/escape.hpp"
#include "ci/finding.hpp"
#include "ci/number.hpp"
#include "ci/options.hpp"
#include "ci/sanitizer.hpp"

namespace attest::ci {

namespace {

constexpr std::size_t causes_max = 8;  // drawn in full; the rest is listed
constexpr std::size_t rows_max = 8;

void draw_diagnosis(Screen& s, const RunFinding& f) {
    if (!f.lead->diagnosis.known) {
        if (!f.computes.empty()) s.fact("it computes", f.computes);
        if (!f.declares.empty()) s.fact("it declares", f.declares);
        return;
    }
    const bool beside = !f.agree.empty() && s.style().wide() &&
                        columns_of(f.computes) + columns_of(f.agree) + 21 <= s.style().width;
    s.fact("it computes", s.bold(f.computes) + (beside ? " (" + f.agree + ")" : ""));
    if (!beside && !f.agree.empty()) s.fact("", s.dim(f.agree));
    if (!f.declares.empty()) s.fact("it declares", f.declares);
}

void draw_boundary(Screen& s, const RunFinding& f) {
    if (!f.fails.empty()) s.fact("fails", f.when());
}

// One row of a bit picture: reads, must not, must, hidden.
std::string picture_row(const Screen& s, const std::string& may, const std::string& reads) {
    std::string row;
    for (std::size_t j = 0; j < may.size() && j < reads.size(); ++j) {
        const bool m = may[j] == '1', r = reads[j] == '1';
        if (!row.empty()) row += ' ';
        row += m && r ? s.symbol("■", "#")
               : r    ? s.bad(s.symbol("✕", "X"))
               : m    ? s.warn(s.symbol("○", "o"))
                      : s.dim(s.symbol("·", "."));
    }
    return row;
}

struct Lines {
    std::string title;
    std::vector<std::string> rows;
};

// Weights of the smallest case, expected beside observed, where they fit and differ.
Lines weights_table(const Screen& s, const diagnosis::CounterexampleReport& c) {
    Lines out;
    if (!c.weights) return out;
    const auto &expected = c.weights->expected, &observed = c.weights->observed;
    if (expected.empty() || expected.size() > rows_max || expected[0].size() > 3) return out;
    bool differs = false;
    const int cell = 9, keys = static_cast<int>(expected[0].size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        std::string left, right;
        for (std::size_t j = 0; j < expected[i].size(); ++j) {
            const double e = expected[i][j];
            const std::string own = value_text(observed[i][j]);
            const bool off = own != value_text(e);
            differs = differs || off;
            left += s.pad_left(e == 0 ? s.dim("hidden") : value_text(e), cell);
            right += s.pad_left(off ? s.bad(own) : own, j == 0 ? cell + 2 : cell);
        }
        out.rows.push_back(s.pad("    query " + std::to_string(i), 17) + left + right);
    }
    if (!differs) return {};
    out.title = std::string(17, ' ') + s.pad_left("expected", cell * keys) +
                s.pad_left("observed", cell * keys + 2);
    return out;
}

// The last picture is the larger relative where there is one.
Lines picture_lines(const Screen& s, const diagnosis::CounterexampleReport& c) {
    Lines out;
    if (c.pictures.empty() || !c.pictures.back().differs()) return out;
    const diagnosis::Picture& picture = c.pictures.back();
    const std::size_t keys = picture.may.empty() ? 0 : picture.may.front().size();
    out.title = std::string(c.pictures.size() > 1 ? "larger, " : "") + "tq" +
                std::to_string(picture.may.size()) + " tk" + std::to_string(keys) + ": " +
                s.symbol("■", "#") + " reads  " + s.bad(s.symbol("✕", "X")) + " must not  " +
                s.warn(s.symbol("○", "o")) + " must, does not  " + s.dim(s.symbol("·", ".")) +
                " hidden";
    for (std::size_t i = 0; i < picture.may.size(); ++i)
        out.rows.push_back(picture_row(s, picture.may[i], picture.reads[i]));
    return out;
}

void draw_pictures(Screen& s, const diagnosis::CounterexampleReport& c) {
    const Lines weights = weights_table(s, c), picture = picture_lines(s, c);
    if (weights.rows.empty() && picture.rows.empty()) return;
    const int left = std::max(columns_of(weights.title), weights.rows.empty() ? 0 : 37);
    const bool beside = s.style().wide() && !picture.rows.empty() && !weights.rows.empty() &&
                        left + 8 + columns_of(picture.title) <= s.style().width;
    s.line();
    if (!beside) {
        const Lines& one = weights.rows.empty() ? picture : weights;
        s.line((weights.rows.empty() ? "    " : "") + one.title);
        for (const std::string& row : one.rows) s.line((weights.rows.empty() ? "    " : "") + row);
    } else {
        s.line(s.pad(weights.title, left + 8) + picture.title);
        for (std::size_t n = 0; n < std::max(weights.rows.size(), picture.rows.size()); ++n)
            s.line(s.pad(n < weights.rows.size() ? weights.rows[n] : "", left + 8) +
                   (n < picture.rows.size() ? picture.rows[n] : ""));
    }
    s.line();
}

std::string more_laws(std::int64_t more) {
    return more == 0 ? "" : " and " + count_text(more) + " more law" + (more == 1 ? "" : "s");
}

void draw_cause(Screen& s, const RunFinding& f, std::size_t causes, bool first) {
    const diagnosis::CounterexampleReport& c = *f.lead;
    const std::string& law = c.example.law;
    const std::int64_t more = static_cast<std::int64_t>(f.laws.size()) - 1;
    const bool only = first && more == 0 && causes == 1;
    s.line(s.bad(s.symbol("✕ ", "") + "VIOLATED") + "  " + s.bold(law) + more_laws(more) +
           (only      ? ""
            : first   ? ", one cause"
            : f.apart ? ", another cause"
                      : ", not explained by the above"));
    s.fact("problem", s.bold(f.problem));
    draw_diagnosis(s, f);
    if (!f.held_in.empty()) s.fact("held in", f.held_in);
    draw_boundary(s, f);
    s.fact("smallest case", s.bold(f.smallest));
    draw_element(s, f.element);
    s.fact("confirmed", f.confirmed);
    draw_pictures(s, c);
    const char* key = "sanitizer";
    for (const std::string& sentence : sanitizer_sentences(c.sanitizer))
        s.fact(std::exchange(key, ""), clean(sentence));
    if (more > 0) {
        std::string also;
        for (const std::string& other : f.laws)
            if (other != law) also += (also.empty() ? "" : ", ") + other;
        s.fact("also broken", also);
    }
    if (const std::string beside = f.beside(); !beside.empty()) s.fact("not as told", beside);
    s.to_copy("replay", f.replay);
    s.line();
}

}  // namespace

void draw_element(Screen& s, const ElementWords& words) {
    if (words.empty()) return;
    s.fact("observed", s.bad(words.observed) + "   expected " + words.expected +
                           (words.bound.empty() ? "" : "   " + words.bound) +
                           (words.times.empty() ? "" : "   " + s.bad(words.times)));
}

namespace {

std::string replay_words(const KernelReport& kernel, const std::string& what, worker::Outcome how) {
    std::string command = "attest replay " + what + " --kernel " + shell_word(clean(kernel.typed));
    for (const std::string& option : kernel.options)
        if (how == worker::Outcome::hang || !option.starts_with("--timeout"))
            command += " " + clean(option);
    return command;
}

}  // namespace

std::string replay_line(const KernelReport& kernel, const std::string& id,
                        const std::string& directory, worker::Outcome how) {
    return replay_words(kernel, search::short_id(id), how) + out_option(directory);
}

std::string replay_line(const KernelReport& kernel, const Case& tried, const std::string& law) {
    return replay_words(kernel, shell_word(print(tried)), worker::Outcome::ok) + " --law " + law;
}

std::string out_option(const std::string& directory) {
    return directory == CommandOptions().out ? "" : " --out " + shell_word(clean(directory));
}

std::string python_option(const std::string& interpreter) {
    return interpreter == CommandOptions().python ? ""
                                                  : "--python " + shell_word(clean(interpreter));
}

std::string confirmation_text(const search::Confirmed& confirmed) {
    const auto [alone, one, before] =
        std::tuple(confirmed.alone, confirmed.one_processor,
                   static_cast<std::int64_t>(confirmed.before.size()));
    const std::string of_all = count_text(alone.failed) + " of " + count_text(alone.of);
    switch (confirmed.how) {
        case search::Confirmation::none:
            return "no: the run was cut before it was tried again";
        case search::Confirmation::alone:
            return alone.failed == alone.of ? "in a fresh process"
                                            : "in " + of_all + " fresh processes";
        case search::Confirmation::sequence:
            return "in a fresh process after " + counted(before, "other case") +
                   ", not by itself: it depends on what ran before";
        case search::Confirmation::schedule:
            return "in " + of_all + " fresh processes, in 0 of " + count_text(one.of) +
                   " on one processor: it depends on the thread schedule";
        case search::Confirmation::alike:
            return "it ended as the confirmed case of another law did";
        case search::Confirmation::elsewhere:
            return "in " + of_all +
                   " fresh processes, by another case than was found: it answers otherwise at each "
                   "call";
        case search::Confirmation::flaky:
            return "no: 0 of " + count_text(alone.of) +
                   " replays in fresh processes failed, nor did it after what ran before";
    }
    return {};
}

void draw_unproven(Screen& screen, const RunReport& report, const std::string& directory) {
    std::size_t shown = 0, more = 0;
    for (const diagnosis::CounterexampleReport& c : report.counterexamples) {
        if (search::is_proven(c.example.confirmed.how)) continue;
        if (++shown > causes_max) {
            ++more;
            continue;
        }
        const bool flaky = c.example.confirmed.how == search::Confirmation::flaky;
        screen.line(screen.warn(screen.symbol("◐ ", "") + (flaky ? "FLAKY" : "NOT TRIED AGAIN")) +
                    "  " + screen.bold(c.example.law));
        screen.fact("problem", clean(c.violation().problem));
        screen.fact("case", clean(print(c.example.smallest)));
        const search::LawReport* law = report.law(c.example.law);
        screen.fact("confirmed", law != nullptr ? "no: it " + clean(law->verdict.reason.text)
                                                : confirmation_text(c.example.confirmed));
        screen.to_copy("replay",
                       replay_line(report.run.kernel, c.example.id, directory, c.example.outcome));
        screen.line();
    }
    if (more == 0) return;
    screen.fact("and", counted(static_cast<std::int64_t>(more), "further law") + " alike");
    screen.line();
}

void draw_causes(Screen& screen, const RunReport& report, const std::string& directory) {
    const std::vector<diagnosis::CauseReport>& causes = report.causes;
    const std::vector<RunFinding> findings = findings_of(report, directory);
    for (std::size_t n = 0; n < causes.size() && n < causes_max && findings[n].proven; ++n)
        draw_cause(screen, findings[n], causes.size(), n == 0);
    if (causes.size() <= causes_max) return;
    std::string rest;
    for (std::size_t n = causes_max; n < causes.size(); ++n)
        for (const std::string& law : causes[n].laws) rest += (rest.empty() ? "" : ", ") + law;
    screen.fact("and",
                counted(static_cast<std::int64_t>(causes.size() - causes_max), "further cause") +
                    ": " + rest);
    screen.line();
}

}  // namespace attest::ci
