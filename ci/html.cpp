#include "ci/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ci/embedded.hpp"
#include "ci/escape.hpp"
#include "ci/number.hpp"
#include "ci/png.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

Html& Html::operator<<(const Text& text) {
    text_ += xml_escaped(text.text, text.most);
    return *this;
}

Html& Html::operator<<(At coordinate) {
    std::string digits = fmt::format("{:.1f}", coordinate.value);
    if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
    text_ += digits == "-0" ? "0" : digits;
    return *this;
}

Html& Html::operator<<(std::int64_t number) {
    text_ += std::to_string(number);
    return *this;
}

Html count_of(std::int64_t count) {
    std::string text;
    for (const char c : count_text(count)) text += c == ' ' ? "\u202F" : std::string(1, c);
    return Html() << Text{text};
}

Html mark_of(std::string_view verdict) {
    Html out;
    out << "<svg class=\"g\" viewBox=\"0 0 10 10\" role=\"img\" aria-label=\"";
    std::string word(verdict);
    std::ranges::replace(word, '_', ' ');
    out << Text{word} << "\">";
    if (verdict == "holds")
        out << "<circle cx=\"5\" cy=\"5\" r=\"3.7\" fill=\"var(--good)\"/>";
    else if (verdict == "violated")
        out << "<path d=\"M1 1L9 9M9 1L1 9\" stroke=\"var(--bad)\" stroke-width=\"2.4\" "
            << "fill=\"none\"/>";
    else if (verdict == "doubted")
        out << "<path d=\"M5 1L9 5L5 9L1 5Z\" fill=\"none\" stroke=\"var(--warn)\" "
            << "stroke-width=\"1.6\"/>";
    else if (verdict == "inconclusive")
        out << "<circle cx=\"5\" cy=\"5\" r=\"4\" fill=\"none\" stroke=\"var(--warn)\" "
            << "stroke-width=\"1.6\"/><path d=\"M5 1A4 4 0 0 1 5 9Z\" fill=\"var(--warn)\"/>";
    else if (verdict == "not_applicable")
        out << "<circle cx=\"5\" cy=\"5\" r=\"1.4\" fill=\"var(--ink3)\"/>";
    else
        out << "<circle cx=\"5\" cy=\"5\" r=\"3.8\" fill=\"none\" stroke=\"var(--ink3)\" "
            << "stroke-width=\"1.3\" stroke-dasharray=\"2 1.6\"/>";
    return out << "</svg>";
}

Html command_of(std::string_view line) {
    return Html() << "<div class=\"cmd\"><code>" << Text{line, 4000}
                  << "</code><button type=\"button\" aria-label=\"copy the command\">copy</button>"
                  << "</div>\n";
}

Html drawing(double width, double height, const Html& inside, std::string_view says) {
    return Html() << "<svg viewBox=\"0 0 " << At{width} << " " << At{height} << "\" width=\""
                  << At{width} << "\" height=\"" << At{height} << "\" role=\"img\" aria-label=\""
                  << Text{says} << "\">" << inside << "</svg>\n";
}

Html label(double x, double y, std::string_view text, Literal anchor) {
    return Html() << "<text x=\"" << At{x} << "\" y=\"" << At{y} << "\" text-anchor=\"" << anchor
                  << "\">" << Text{text} << "</text>";
}

Html pixels(const std::vector<std::string>& rows, std::string_view says) {
    const auto width = static_cast<double>(rows.empty() ? 1 : rows.front().size());
    const auto height = static_cast<double>(rows.size());
    // At most 240 wide and high, and a whole number of screen pixels a cell where there is room.
    const double cell = std::max(1.0, std::floor(240 / std::max(width, height)));
    return Html() << "<img class=\"map\" alt=\"" << Text{says} << "\" width=\"" << At{width * cell}
                  << "\" height=\"" << At{height * cell} << "\" src=\"data:image/png;base64,"
                  << Text{base64(level_png(rows)), 1 << 20} << "\">\n";
}

std::string whole_page(std::string_view title, const Html& head, const Html& body) {
    const auto file = [](std::string_view ending) {
        for (const EmbeddedFile& one : embedded_pages())
            if (one.path.ends_with(ending)) return std::string(one.text);
        throw InternalError("the page's style and script are built in");
    };
    Html page;
    page << "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         << "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
         << "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         << "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n<title>" << Text{title}
         << "</title>\n<style>\n";
    Html rest;
    rest << "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">skip to the verdict</a>\n"
         << "<header class=\"top\"><b>attest</b>" << head << "</header>\n<main id=\"main\">\n"
         << body
         << "</main>\n<footer>Drawn from the records alone. Nothing on this page is loaded from "
         << "anywhere.</footer>\n<script>\n";
    return page.text() + file(".css") + rest.text() + file(".js") + "</script>\n</body>\n</html>\n";
}

}  // namespace attest::ci
