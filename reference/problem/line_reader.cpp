#include "reference/problem/line_reader.hpp"

#include "reference/problem/errors.hpp"

namespace attest {
namespace {

/// Words are what lies between blanks; a bracketed list is one word.
std::vector<LineReader::Token> split(std::string_view line) {
    std::vector<LineReader::Token> tokens;
    const auto blank = [&](std::size_t i) { return line[i] == ' ' || line[i] == '\t'; };
    for (std::size_t i = 0; i < line.size();) {
        if (blank(i)) {
            ++i;
            continue;
        }
        std::size_t end = i + 1;
        if (line[i] == '[')
            end = std::min(line.find(']', i), line.size() - 1) + 1;
        else
            while (end < line.size() && !blank(end)) ++end;
        tokens.push_back({i, end});
        i = end;
    }
    return tokens;
}

}  // namespace

LineReader::LineReader(std::string_view line, std::string wanted)
    : line_(line), wanted_(std::move(wanted)), tokens_(split(line)) {}

void LineReader::fail(const Token& at, const std::string& what, const std::string& remedy) const {
    std::vector<std::string> details = pointed(line_, at.begin, at.end);
    details.push_back(remedy);
    throw BadInput("this is not a " + wanted_ + ": " + what, std::move(details));
}

LineReader::Token LineReader::take(const std::string& remedy) {
    if (!done()) return tokens_[next_++];
    if (tokens_.empty()) fail({0, 0}, "the line is empty", remedy);
    fail(tokens_.back(), printable(text(tokens_.back())) + " lacks its value", remedy);
}

bool LineReader::take_if(std::string_view word) {
    if (done() || text(tokens_[next_]) != word) return false;
    ++next_;
    return true;
}

std::int64_t LineReader::whole_in(const Token& token, const std::string& remedy) const {
    if (auto number = parse_integer<std::int64_t>(text(token))) return *number;
    fail(token, printable(text(token)) + " is not a whole number", remedy);
}

double LineReader::real_in(const Token& token) const {
    if (auto number = parse_decimal(text(token))) return *number;
    fail(token, printable(text(token)) + " is not a number", "a decimal number, such as 0.125");
}

std::int64_t LineReader::whole() {
    const std::string remedy = "a whole number follows";
    return whole_in(take(remedy), remedy);
}

std::uint64_t LineReader::seed() {
    const std::string remedy = "a seed is a whole number from 0 to 18446744073709551615";
    const Token token = take(remedy);
    if (auto number = parse_integer<std::uint64_t>(text(token))) return *number;
    fail(token, printable(text(token)) + " is not a seed", remedy);
}

double LineReader::real() {
    return real_in(take("a decimal number follows, such as 0.125"));
}

std::vector<std::int64_t> LineReader::wholes() {
    const std::string remedy = "whole numbers separated by commas follow, such as 3,5";
    std::vector<std::int64_t> numbers;
    parts(take(remedy), [&](const Token& part) { numbers.push_back(whole_in(part, remedy)); });
    return numbers;
}

std::size_t LineReader::index_of(const Token& token,
                                 std::span<const std::string_view> names) const {
    const auto found = std::find(names.begin(), names.end(), text(token));
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    fail(token, printable(text(token)) + " is not known" + suggestion(text(token), names),
         "one of " + joined(names, ", "));
}

}  // namespace attest
