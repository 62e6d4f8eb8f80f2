#include "ci/waiver.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "reference/problem/errors.hpp"
#include "reference/problem/json.hpp"
#include "reference/problem/text.hpp"

namespace attest::ci {

namespace {

constexpr const char* example =
    "{\"law\": \"masking.*\", \"kernel\": \"mine\", \"reason\": \"...\", \"who\": \"...\", "
    "\"expires\": \"2026-12-31\"}";

std::string text_of(const JsonSource& source, const Json& object, std::string_view key,
                    bool required) {
    const Json* value = object.find(key);
    if (value == nullptr) {
        if (required) source.fail(object, "a waiver needs \"" + std::string(key) + "\"", example);
        return {};
    }
    const std::string& text = json_string(source, *value);
    if (text.find_first_not_of(" \t\r\n") == text.npos)
        source.fail(*value, "\"" + std::string(key) + "\" is empty", example);
    return text;
}

// YYYY-MM-DD of a day that there is.
bool is_day(std::string_view text) {
    if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
    const auto year = parse_integer<int>(text.substr(0, 4));
    const auto month = parse_integer<int>(text.substr(5, 2));
    const auto day = parse_integer<int>(text.substr(8, 2));
    if (!year || !month || !day || *year < 1 || *month < 1 || *month > 12 || *day < 1) return false;
    constexpr int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (*year % 4 == 0 && *year % 100 != 0) || *year % 400 == 0;
    return *day <= days[*month - 1] + (leap && *month == 2 ? 1 : 0);
}

}  // namespace

std::vector<Waiver> parse_waivers(std::string_view json, const std::string& source_name) {
    const JsonSource source{json, source_name};
    const Json file = parse_json(source);
    json_keys(source, file, {"waivers"});
    std::vector<Waiver> all;
    for (const Json& one : json_array(source, json_member(source, file, "waivers"))) {
        json_keys(source, one, {"law", "cause", "kernel", "reason", "who", "expires"});
        Waiver waiver{text_of(source, one, "law", false),   text_of(source, one, "cause", false),
                      text_of(source, one, "kernel", true), text_of(source, one, "reason", true),
                      text_of(source, one, "who", true),    text_of(source, one, "expires", true)};
        if (waiver.subject.empty() && waiver.cause.empty())
            source.fail(one, "a waiver needs \"law\" or \"cause\"", example);
        if (!is_day(waiver.expires))
            source.fail(*one.find("expires"), "\"expires\" must be a day, such as 2026-12-31", "");
        all.push_back(std::move(waiver));
    }
    return all;
}

std::vector<Waiver> load_waivers(const std::string& path) {
    if (std::filesystem::is_directory(path))
        throw BadInput("--waivers " + path + ": is a folder", {"name a file in it"});
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file)
        throw BadInput("--waivers " + path + ": cannot be read",
                       {"a file with {\"waivers\": [...]}"});
    return parse_waivers(text.str(), path);
}

}  // namespace attest::ci
