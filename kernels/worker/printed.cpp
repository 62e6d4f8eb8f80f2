#include "kernels/worker/printed.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "reference/problem/text.hpp"

namespace attest::worker {
namespace {

constexpr std::size_t lines_max = 20, line_max = 200, telling_max = 300;

std::vector<std::string> lines_of(const std::string& printed) {
    std::vector<std::string> lines;
    std::istringstream stream(printed);
    for (std::string line; std::getline(stream, line);)
        if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line);
    return lines;
}

}  // namespace

std::string telling_line(const std::string& printed) {
    // The words of the GNU C and C++ libraries.
    constexpr std::string_view exception = "terminate called",
                               what = "  what():  ", assertion = "Assertion ";
    std::string telling;
    const std::vector<std::string> lines = lines_of(printed);
    for (const std::string& line : lines) {
        if (line.starts_with(exception) || line.find(assertion) != line.npos)
            telling = line;
        else if (line.starts_with(what) && telling.starts_with(exception))
            telling += ": " + line.substr(what.size());
    }
    if (!telling.empty() || lines.empty()) return printable(telling, telling_max);
    // A check prints what failed; the line before it may say why.
    if (lines.size() > 1) telling = printable(lines[lines.size() - 2], telling_max) + "; ";
    return telling + printable(lines.back(), telling_max);
}

bool left_its_thread(const std::string& printed) {
    return printed.find("FATAL: exception not rethrown") != printed.npos;
}

std::string last_lines(const std::string& printed) {
    const std::vector<std::string> lines = lines_of(printed);
    std::string text;
    for (std::size_t i = lines.size() - std::min(lines.size(), lines_max); i < lines.size(); ++i)
        text += (text.empty() ? "" : "\n") + printable(lines[i], line_max);
    return text;
}

}  // namespace attest::worker
