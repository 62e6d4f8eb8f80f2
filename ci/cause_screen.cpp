// A cause on the screen: the sentence, what the kernel computes instead, when, the smallest case
// and the line that repeats it.

#include <algorithm>
#include <utility>

#include "ci/check_screen.hpp"
#include "ci/number.hpp"
#include "ci/sanitizer.hpp"
#include "reference/problem/text.hpp"

namespace attest {

namespace {

constexpr std::size_t causes_max = 8;  // drawn in full; the rest is listed
constexpr std::size_t rows_max = 8;

std::string text_of(const Record& record, const char* key) {
    const auto at = record.find(key);
    return at != record.end() && at->is_string() ? clean(at->get<std::string>()) : "";
}

std::int64_t integer(const Record& record, const char* key) {
    return record.value(key, std::int64_t{0});
}

void draw_diagnosis(Screen& s, const Record& c) {
    const Record& d = c.at("diagnosis");
    if (d.value("known", false)) {
        const std::string agree = integer(d, "of") == 0 ? ""
                                                        : "all " + count_text(integer(d, "of")) +
                                                              " elements agree within the bound";
        const std::string says = text_of(d, "says");
        const bool beside = !agree.empty() && s.style().wide() &&
                            columns_of(says) + columns_of(agree) + 21 <= s.style().width;
        s.fact("it computes", s.bold(says) + (beside ? " (" + agree + ")" : ""));
        if (!beside && !agree.empty()) s.fact("", s.dim(agree));
        if (d.contains("declared")) s.fact("it declares", text_of(d, "declared"));
    } else if (integer(d, "tried") > 0) {
        s.fact("it computes", "not known; " + count_text(integer(d, "tried")) +
                                  " known deviations tried, none accepted");
    } else if (c.value("outcome", "ok") == "ok" && c.value("fault", Record()).is_null() &&
               d.contains("tried")) {
        s.fact("it computes", "not known; its answers to the cases by themselves are right");
    }
}

void draw_boundary(Screen& s, const Record& c) {
    const Record &b = c.at("boundary"), &in = b.at("inside"), &out = b.at("outside");
    const std::string share =
        count_text(integer(in, "failed")) + " of " + counted(integer(in, "of"), "case");
    if (integer(in, "of") == 0) return;
    if (!b.value("found", false)) {
        s.fact("fails", "in " + share + ", " + text_of(b, "says"));
        return;
    }
    std::string line = text_of(b, "says") + " (" + share;
    if (integer(out, "of") > 0)
        line += "; else " + count_text(integer(out, "failed")) + " of " +
                count_text(integer(out, "of"));
    s.fact("fails", line + ")");
}

void draw_values(Screen& s, const Record& c) {
    const Record& bound = c.at("bound");
    const std::string kind = bound.at("kind");
    if (c.value("outcome", "ok") != "ok" || c.at("at").at("index").empty()) return;
    std::string line = s.bad(text_of(c.at("observed"), "decimal")) + "   expected " +
                       text_of(c.at("expected"), "decimal");
    const double ratio = real_of(c.at("ratio"));
    if (kind == "derived") {
        line += "   bound " + text_of(bound, "decimal");
        if (ratio > 1) line += "   " + s.bad(ratio_text(ratio) + " times the bound");
    } else if (kind == "statistic") {
        line += "   threshold " + text_of(bound, "decimal");
    } else if (kind == "bits") {
        line += "   bound: to the bit";
    } else if (kind == "exact") {
        line += "   bound: exact";
    }
    s.fact("observed", line);
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
Lines weights_table(const Screen& s, const Record& c) {
    Lines out;
    const auto weights = c.find("weights");
    if (weights == c.end() || weights->is_null()) return out;
    const Record &expected = weights->at("expected"), &observed = weights->at("observed");
    if (expected.empty() || expected.size() > rows_max || expected[0].size() > 3) return out;
    bool differs = false;
    const int cell = 9, keys = static_cast<int>(expected[0].size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        std::string left, right;
        for (std::size_t j = 0; j < expected[i].size(); ++j) {
            const double e = parse_hex_real(expected[i][j].get<std::string>()).value_or(0);
            const double o = parse_hex_real(observed[i][j].get<std::string>()).value_or(0);
            const std::string own = value_text(o);
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
Lines picture_lines(const Screen& s, const Record& c) {
    Lines out;
    if (!c.contains("picture") || c["picture"].empty()) return out;
    const Record& picture = c["picture"].back();
    if (picture.at("may") == picture.at("reads")) return out;
    out.title = std::string(c["picture"].size() > 1 ? "larger, " : "") + "tq" +
                std::to_string(integer(picture, "rows")) + " tk" +
                std::to_string(integer(picture, "cols")) + ": " + s.symbol("■", "#") + " reads  " +
                s.bad(s.symbol("✕", "X")) + " must not  " + s.warn(s.symbol("○", "o")) +
                " must, does not  " + s.dim(s.symbol("·", ".")) + " hidden";
    for (std::size_t i = 0; i < picture.at("may").size(); ++i)
        out.rows.push_back(picture_row(s, picture["may"][i], picture["reads"][i]));
    return out;
}

void draw_pictures(Screen& s, const Record& c) {
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

void draw_cause(Screen& s, const Records& records, const Record& cause, bool first,
                const std::string& directory) {
    const Record* lead = records.counterexample(cause.at("lead").get<std::string>());
    if (lead == nullptr) return;
    const Record& c = *lead;
    const std::string law = c.at("law");
    const std::int64_t more = static_cast<std::int64_t>(cause.at("laws").size()) - 1;
    const bool only = first && more == 0 && records.causes.size() == 1;
    s.line(s.bad(s.symbol("✕ ", "") + "VIOLATED") + "  " + s.bold(law) + more_laws(more) +
           (only    ? ""
            : first ? ", one cause"
                    : ", another cause"));
    s.fact("problem", s.bold(text_of(c, "problem")));
    draw_diagnosis(s, c);
    draw_boundary(s, c);
    s.fact("smallest case", s.bold(text_of(c, "line")));
    draw_values(s, c);
    draw_pictures(s, c);
    if (c.contains("sanitizer")) {
        const char* key = "sanitizer";
        for (const std::string& sentence : sanitizer_sentences(c["sanitizer"]))
            s.fact(std::exchange(key, ""), clean(sentence));
    }
    if (more > 0) {
        std::string also;
        for (const Record& other : cause.at("laws"))
            if (other != law) also += (also.empty() ? "" : ", ") + other.get<std::string>();
        s.fact("also broken", also);
    }
    s.fact("replay", s.command(replay_line(records, c, directory)));
    s.line();
}

}  // namespace

std::string replay_line(const Records& records, const Record& counterexample,
                        const std::string& directory) {
    const std::string kernel = clean(records.run.at("kernel").value(
        "typed", records.run.at("kernel").at("id").get<std::string>()));
    std::string command =
        "attest replay " + counterexample.at("id").get<std::string>() + " --kernel " + kernel;
    if (directory != "attest-out") command += " --out " + clean(directory);
    return command;
}

void draw_causes(Screen& screen, const Records& records, const std::string& directory) {
    for (std::size_t n = 0; n < records.causes.size() && n < causes_max; ++n)
        draw_cause(screen, records, records.causes[n], n == 0, directory);
    if (records.causes.size() <= causes_max) return;
    std::string rest;
    for (std::size_t n = causes_max; n < records.causes.size(); ++n)
        for (const Record& law : records.causes[n].at("laws"))
            rest += (rest.empty() ? "" : ", ") + law.get<std::string>();
    screen.fact("and", counted(static_cast<std::int64_t>(records.causes.size() - causes_max),
                               "further cause") +
                           ": " + rest);
    screen.line();
}

}  // namespace attest
