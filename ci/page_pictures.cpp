#include <algorithm>
#include <cmath>

#include "ci/number.hpp"
#include "ci/page_parts.hpp"

namespace attest::ci {

namespace {

// A square cell of the matrix: shape and outline carry what it says, colour only helps.
Html cell_of(double x, double y, double size, bool may, bool reads) {
    Html out;
    const auto box = [&](double inset, Literal style) {
        out << "<rect x=\"" << At{x + inset} << "\" y=\"" << At{y + inset} << "\" width=\""
            << At{size - 2 * inset} << "\" height=\"" << At{size - 2 * inset} << "\" " << style
            << "/>";
    };
    const double near = size * 0.3, far = size * 0.7;
    if (may && reads) {
        box(0, "fill=\"var(--s2)\"");
    } else if (reads) {
        box(0.8, "fill=\"var(--badfill)\" stroke=\"var(--bad)\" stroke-width=\"1.5\"");
        out << "<path d=\"M" << At{x + near} << " " << At{y + near} << "L" << At{x + far} << " "
            << At{y + far} << "M" << At{x + far} << " " << At{y + near} << "L" << At{x + near}
            << " " << At{y + far} << "\" stroke=\"var(--bad)\" stroke-width=\"2\"/>";
    } else if (may) {
        box(0.8,
            "fill=\"var(--missfill)\" stroke=\"var(--miss)\" stroke-width=\"1.5\" "
            "stroke-dasharray=\"3 2\"");
        out << "<circle cx=\"" << At{x + size / 2} << "\" cy=\"" << At{y + size / 2} << "\" r=\""
            << At{size * 0.16} << "\" fill=\"none\" stroke=\"var(--miss)\" stroke-width=\"1.6\"/>";
    } else {
        box(0, "fill=\"var(--fill)\"");
    }
    return out;
}

// Sizes of cases go from 1 to 10^5, and some are 0.
double place(std::int64_t value) {
    return std::log2(1 + static_cast<double>(std::max<std::int64_t>(0, value)));
}

struct Axis {
    double begin = 0, length = 1, most = 1;
    double at(std::int64_t value) const { return begin + place(value) / most * length; }
};

// Powers of two that lie on the axis, and 0 where a case does.
std::vector<std::int64_t> ticks(std::int64_t most) {
    std::vector<std::int64_t> list;
    const std::int64_t factor = most > 4096 ? 8 : most > 64 ? 4 : 2;
    for (std::int64_t tick = 1; tick <= std::max<std::int64_t>(1, most); tick *= factor)
        list.push_back(tick);
    return list;
}

std::int64_t most_of(const diagnosis::Boundary& b, std::size_t axis) {
    std::int64_t most = 1;
    for (const auto& point : b.points) most = std::max(most, point[axis]);
    return most;
}

Html axes_of(const diagnosis::Boundary& b, const Axis& x, const Axis& y) {
    Html out;
    const double left = x.begin, bottom = y.begin;
    out << "<path class=\"ax\" d=\"M" << At{left} << " " << At{bottom + y.length} << "V"
        << At{bottom} << "H" << At{left + x.length} << "\"/>";
    for (const std::int64_t tick : ticks(most_of(b, 0)))
        out << label(x.at(tick), bottom + 15, count_text(tick), "middle");
    for (const std::int64_t tick : ticks(most_of(b, 1)))
        out << label(left - 6, y.at(tick) + 4, count_text(tick), "end");
    return out << label(left + x.length, bottom + 30, b.axes[0], "end")
               << label(0, bottom + y.length - 4, b.axes[1]);
}

}  // namespace

Html strip_head(const std::vector<std::pair<double, std::string>>& labels) {
    constexpr double strip_width = 240;
    Html out;
    out << "<div class=\"axis\" aria-hidden=\"true\">";
    for (const auto& [x, text] : labels)
        out << "<span style=\"left:" << At{100 * x / strip_width} << "%\">" << Text{text}
            << "</span>";
    return out << "</div>";
}

Html attention_matrix(const diagnosis::Picture& picture) {
    const double size = 25, step = 27, left = 58, top = 34;
    Html out;
    std::int64_t leaked = 0, missed = 0;
    for (std::size_t i = 0; i < picture.may.size(); ++i)
        for (std::size_t j = 0; j < picture.may[i].size(); ++j) {
            const bool may = picture.may[i][j] == '1', reads = picture.reads[i][j] == '1';
            leaked += reads && !may;
            missed += may && !reads;
            out << cell_of(left + step * static_cast<double>(j),
                           top + step * static_cast<double>(i), size, may, reads);
        }
    const std::size_t columns = picture.may.empty() ? 0 : picture.may.front().size();
    for (std::size_t j = 0; j < columns; ++j)
        out << label(left + step * static_cast<double>(j) + size / 2, top - 7, std::to_string(j),
                     "middle");
    for (std::size_t i = 0; i < picture.may.size(); ++i)
        out << label(left - 9, top + step * static_cast<double>(i) + size / 2 + 4,
                     std::to_string(i), "end");
    const double width = left + step * static_cast<double>(columns);
    const double height = top + step * static_cast<double>(picture.may.size());
    out << label(left, 11, "key") << label(0, top + size / 2 + 4, "query");
    return drawing(width, height, out,
                   counted(static_cast<std::int64_t>(picture.may.size()), "query") + " by " +
                       counted(static_cast<std::int64_t>(columns), "key") + ": " +
                       count_text(leaked) + " read that must not be, " + count_text(missed) +
                       " not read that must be.");
}

Html boundary_plot(const diagnosis::Boundary& b) {
    if (b.points.size() < 2 || b.axes.size() < 2) return {};
    const Axis x{44, 246, place(most_of(b, 0))}, y{246, -232, place(most_of(b, 1))};
    Html out = axes_of(b, x, y), cross, dots;
    std::int64_t failed = 0;
    for (const auto& [px, py, fails] : b.points) {
        failed += fails;
        if (fails != 0)
            cross << "M" << At{x.at(px) - 2.5} << " " << At{y.at(py) - 2.5} << "l5 5m0 -5l-5 5";
        else
            dots << "<circle cx=\"" << At{x.at(px)} << "\" cy=\"" << At{y.at(py)}
                 << "\" r=\"2.7\" fill=\"var(--good)\"/>";
    }
    out << dots << "<path d=\"" << cross << "\" stroke=\"var(--bad)\" stroke-width=\"1.3\" "
        << "fill=\"none\"/>";
    const auto all = static_cast<std::int64_t>(b.points.size());
    return drawing(300, 280, out,
                   b.axes[1] + " against " + b.axes[0] + ": " + count_text(failed) + " of " +
                       counted(all, "point") + " fail. " + b.says + ".");
}

Html shrink_plot(const search::Counterexample& example) {
    if (example.steps.size() < 2) return {};
    std::int64_t most = 1, last = 1;
    for (const search::ShrinkStep& step : example.steps) {
        most = std::max(most, step.scores);
        last = std::max(last, step.evaluation);
    }
    const double left = 60, right = 344, top = 20, bottom = 230;
    const auto x = [&](std::int64_t evaluation) {
        return left +
               (right - left - 8) * static_cast<double>(evaluation) / static_cast<double>(last);
    };
    const auto y = [&](std::int64_t scores) {
        const double share = std::log10(static_cast<double>(std::max<std::int64_t>(1, scores))) /
                             std::max(1.0, std::log10(static_cast<double>(most)));
        return bottom - (bottom - top) * share;
    };
    Html out, line, dots;
    for (std::int64_t tick = 1; tick <= most; tick *= 100)
        out << "<path class=\"grid\" d=\"M" << At{left} << " " << At{y(tick)} << "H" << At{right}
            << "\"/>" << label(left - 6, y(tick) + 4, count_text(tick), "end");
    for (std::size_t n = 0; n < example.steps.size(); ++n) {
        const search::ShrinkStep& step = example.steps[n];
        if (n == 0)
            line << "M" << At{x(step.evaluation)} << " " << At{y(step.scores)};
        else
            line << "H" << At{x(step.evaluation)} << "V" << At{y(step.scores)};
        dots << "<circle cx=\"" << At{x(step.evaluation)} << "\" cy=\"" << At{y(step.scores)}
             << "\" r=\"3.4\" fill=\"var(--s5)\" tabindex=\"0\" data-tip=\"" << Text{step.pass}
             << ": " << Text{step.change} << "&#10;" << Text{step.line} << "\"/>";
    }
    out << "<path d=\"" << line << "\" fill=\"none\" stroke=\"var(--s4)\" stroke-width=\"1.6\"/>"
        << dots << label(0, 12, "scores") << label(left, bottom + 18, "0", "middle")
        << label(right - 8, bottom + 18, count_text(last), "middle")
        << label((left + right) / 2, bottom + 18, "evaluations", "middle");
    return drawing(352, 254, out,
                   "Shrinking: " + counted(example.steps.front().scores, "score") + " down to " +
                       count_text(example.steps.back().scores) + " in " +
                       counted(example.evaluations, "evaluation") + ".");
}

}  // namespace attest::ci
