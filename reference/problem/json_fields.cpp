// The typed readers over json.hpp and the shape of their errors.

#include <algorithm>

#include "reference/problem/errors.hpp"
#include "reference/problem/json.hpp"
#include "reference/problem/text.hpp"

namespace attest {
namespace {

const Json& expect_kind(const JsonSource& source, const Json& value, Json::Kind kind,
                        const char* what) {
    if (value.kind != kind)
        source.fail(value, std::string("expected ") + what, std::string("write ") + what);
    return value;
}

}  // namespace

void JsonSource::fail(std::size_t begin, std::size_t end, const std::string& what,
                      const std::string& remedy) const {
    begin = std::min(begin, text.size());
    const std::string_view before = text.substr(0, begin);
    const auto line_number = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t newline = before.rfind('\n');
    const std::size_t line_begin = newline == before.npos ? 0 : newline + 1;
    const std::size_t line_end = std::min(text.find('\n', begin), text.size());
    const std::string number = std::to_string(line_number);
    const std::size_t column = begin - line_begin;
    auto details = pointed(text.substr(line_begin, line_end - line_begin), column,
                           std::min(end, line_end) - std::min(line_begin, end), number + " | ");
    details.push_back(remedy);
    throw BadInput(
        std::string(name) + ":" + number + ":" + std::to_string(column + 1) + ": " + what,
        std::move(details));
}

void JsonSource::fail(const Json& at, const std::string& what, const std::string& remedy) const {
    fail(at.begin, at.end, what, remedy);
}

bool json_boolean(const JsonSource& source, const Json& value) {
    return expect_kind(source, value, Json::Kind::boolean, "true or false").boolean;
}

std::int64_t json_integer(const JsonSource& source, const Json& value) {
    expect_kind(source, value, Json::Kind::number, "a whole number");
    if (auto number = parse_integer<std::int64_t>(value.text); number && value.text != "-0")
        return *number;
    source.fail(value, "expected a whole number", "without fraction or exponent, within 64 bits");
}

const std::string& json_string(const JsonSource& source, const Json& value) {
    return expect_kind(source, value, Json::Kind::string, "a string").text;
}

const std::vector<Json>& json_array(const JsonSource& source, const Json& value) {
    return expect_kind(source, value, Json::Kind::array, "an array [...]").items;
}

std::uint64_t json_u64(const JsonSource& source, const Json& value) {
    const auto number = parse_integer<std::uint64_t>(value.text);
    if (value.kind == Json::Kind::string && number && std::to_string(*number) == value.text)
        return *number;
    source.fail(value, "64-bit numbers are decimal strings, such as \"7\"",
                number ? "write \"" + std::to_string(*number) + "\""
                       : "from \"0\" to \"18446744073709551615\"");
}

double json_real(const JsonSource& source, const Json& value) {
    if (value.kind == Json::Kind::string)
        if (auto number = parse_hex_real(value.text)) return *number;
    std::string remedy = "C99 hex floats, lower case, without trailing zeros";
    const bool text = value.kind == Json::Kind::number || value.kind == Json::Kind::string;
    if (auto number = text ? parse_decimal(value.text) : std::nullopt)
        remedy = "write \"" + hex_real(*number) + "\"";
    source.fail(value, "real numbers are hex strings, such as \"0x1.8p+1\"", remedy);
}

const Json& json_member(const JsonSource& source, const Json& object, std::string_view key) {
    if (const Json* value = object.find(key)) return *value;
    source.fail(object, std::string(key) + " is missing", "add \"" + std::string(key) + "\"");
}

void json_keys(const JsonSource& source, const Json& value,
               std::span<const std::string_view> known) {
    expect_kind(source, value, Json::Kind::object, "an object {...}");
    for (const JsonMember& member : value.members) {
        if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
        source.fail(member.begin, member.end,
                    printable(member.key) + " is no key here" + suggestion(member.key, known),
                    "one of " + joined(known, ", "));
    }
}

}  // namespace attest
