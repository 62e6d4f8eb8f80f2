#include "ci/explain_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ci/number.hpp"

namespace attest::ci {

namespace {

constexpr int cell_min = 8;

// A part of an axis around a place, at most `most` long.
struct Range {
    std::int64_t begin = 0, end = 0;
    static Range around(std::int64_t place, std::int64_t length, std::int64_t most) {
        const std::int64_t size = std::min(length, most);
        const std::int64_t begin = std::clamp<std::int64_t>(place - size / 2, 0, length - size);
        return {begin, begin + size};
    }
    bool whole(std::int64_t length) const { return begin == 0 && end == length; }
};

// Wide enough that no two numbers run together.
int cell_width(const std::vector<ExplainTable>& all, Range rows, Range keys) {
    int widest = cell_min - 1;
    for (const ExplainTable& table : all)
        for (std::int64_t i = rows.begin; i < rows.end; ++i)
            for (std::int64_t j = keys.begin; j < keys.end; ++j)
                widest = std::max(widest, columns_of(table.text(i, j)));
    return widest + 1;
}

}  // namespace

std::string fixed(double x) {
    if (!std::isfinite(x)) return value_text(x);
    return std::abs(x) < 1000 ? value_text(std::round(x * 1e4) / 1e4) : value_text(x);
}

void draw_tables(Screen& s, const std::vector<ExplainTable>& all, const Problem& p,
                 std::int64_t query, std::int64_t key) {
    const Range rows = Range::around(query, p.len_q, explain_rows);
    const auto keys_in = [&](int cell) {
        return Range::around(key, p.len_kv, (s.style().width - 10) / cell);
    };
    const int cell = cell_width(all, rows, keys_in(cell_min));
    const Range keys = keys_in(cell);
    const int width = cell * static_cast<int>(keys.end - keys.begin);
    const int together = std::max(1, (s.style().width - 10) / (std::max(width, 17) + 2));
    for (std::size_t first = 0; first < all.size(); first += static_cast<std::size_t>(together)) {
        const std::size_t last = std::min(all.size(), first + static_cast<std::size_t>(together));
        std::string title(10, ' '), head(10, ' ');
        for (std::size_t n = first; n < last; ++n) {
            title += s.pad(s.dim(all[n].title), std::max(width, 17) + 2);
            std::string names;
            for (std::int64_t j = keys.begin; j < keys.end; ++j)
                names += s.pad_left(fmt::format("k{}", j), cell);
            head += s.pad(names, std::max(width, 17) + 2);
        }
        s.line(title);
        s.line(head);
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
            std::string line = s.pad("query " + std::to_string(i), 10);
            for (std::size_t n = first; n < last; ++n) {
                std::string cells;
                for (std::int64_t j = keys.begin; j < keys.end; ++j)
                    cells += s.pad_left(all[n].text(i, j), cell);
                line += s.pad(cells, std::max(width, 17) + 2);
            }
            s.line(line);
        }
        s.line();
    }
    if (!rows.whole(p.len_q) || !keys.whole(p.len_kv)) {
        s.line(s.dim("queries " + std::to_string(rows.begin) + " to " +
                     std::to_string(rows.end - 1) + " of " + std::to_string(p.len_q) + ", keys " +
                     std::to_string(keys.begin) + " to " + std::to_string(keys.end - 1) + " of " +
                     std::to_string(p.len_kv)));
        s.line();
    }
}

void draw_steps(Screen& s, const std::vector<Step>& steps) {
    const auto row = [&](const std::string& a, const std::string& b, const std::string& c,
                         const std::string& d) {
        s.line(s.pad("  " + a, 24) + s.pad_left(b, 17) + s.pad_left(c, 17) + "   " + d);
    };
    row(s.dim("step"), s.dim("expected"), s.dim("observed"), "");
    bool first = true;
    for (const Step& step : steps) {
        const bool here = first && step.differs;
        if (here) first = false;
        row(step.name, s.cut(step.expected, 16),
            step.differs ? s.bad(s.cut(step.observed, 16)) : s.cut(step.observed, 16),
            here ? s.bad("differs here first") : step.note);
    }
    s.line();
}

}  // namespace attest::ci
