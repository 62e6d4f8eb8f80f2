#include "ci/record_reader.hpp"

#include <cstdlib>
#include <limits>

#include "reference/problem/errors.hpp"
#include "reference/problem/text.hpp"

namespace attest::ci {

namespace {

constexpr const char* remedy = "fixtures/schema says what a record is";

}  // namespace

RecordReader::RecordReader(const JsonSource& source, const Json& object)
    : source_(source), object_(object) {
    if (object.kind != Json::Kind::object) fail(object, "expected an object {...}");
}

const Json* RecordReader::find(std::string_view key) {
    asked_.push_back(key);
    return object_.find(key);
}

const Json& RecordReader::at(std::string_view key) {
    if (const Json* value = find(key)) return *value;
    source_.fail(object_.begin, object_.begin + 1, std::string(key) + " is missing", remedy);
}

bool RecordReader::asked(std::string_view key) const {
    return std::find(asked_.begin(), asked_.end(), key) != asked_.end();
}

void RecordReader::finish() const {
    for (const JsonMember& member : object_.members)
        if (!asked(member.key))
            source_.fail(member.begin, member.end, "unknown key " + printable(member.key), remedy);
}

void RecordReader::fail(const Json& at, const std::string& what) const {
    source_.fail(at, what, remedy);
}

std::string RecordReader::kind() {
    std::string kind;
    std::int64_t version = 0;
    (*this)("record", kind);
    (*this)("v", version);
    require("v", version == 1, "version 1, which this attest reads");
    return kind;
}

void RecordReader::told(std::string_view key, std::string_view) {
    std::string same;
    read(at(key), same);
}

void RecordReader::told(std::string_view key, std::int64_t) {
    std::int64_t same = 0;
    read(at(key), AsSigned{same});
}

void RecordReader::same_case(std::string_view key, const Case&) {
    const Json& value = at(key);
    try {
        case_from_json(source_.text.substr(value.begin, value.end - value.begin), key);
    } catch (const BadInput& error) {
        fail(value, error.what());
    }
}

void RecordReader::rest(kernel::Manifest& manifest) {
    std::string text;
    for (const JsonMember& m : object_.members) {
        // Older records have limits, which say nothing that takes does not.
        if (asked(m.key) || m.key == "limits") continue;
        text.append(text.empty() ? "{" : ",");
        text.append(source_.text.substr(m.begin, m.value.end - m.begin));
    }
    for (const JsonMember& m : object_.members) asked_.push_back(m.key);
    try {
        manifest = kernel::parse_manifest(text + "}", "kernel");
    } catch (const BadInput& error) {
        fail(object_, error.what());
    }
}

void RecordReader::read(const Json& value, bool& field) const {
    field = json_boolean(source_, value);
}

void RecordReader::read(const Json& value, std::string& field) const {
    field = json_string(source_, value);
}

void RecordReader::read(const Json& value, std::int64_t& field) const {
    field = json_integer(source_, value);
    if (field < 0) fail(value, "expected a count, not a negative number");
}

void RecordReader::read(const Json& value, int& field) const {
    std::int64_t count = 0;
    read(value, count);
    if (count > std::numeric_limits<int>::max()) fail(value, "expected a smaller number");
    field = static_cast<int>(count);
}

void RecordReader::read(const Json& value, AsHash field) const {
    const std::string& text = json_string(source_, value);
    field.value = std::strtoull(text.c_str(), nullptr, 16);
    if (text != hash_text(field.value)) fail(value, "expected 16 hexadecimal digits");
}

void RecordReader::read(const Json& value, AsSigned field) const {
    field.value = json_integer(source_, value);
}

void RecordReader::read(const Json& value, AsDigits field) const {
    field.value = json_u64(source_, value);
}

void RecordReader::read(const Json& value, AsNumber field) const {
    const auto number = value.kind == Json::Kind::number ? parse_decimal(value.text) : std::nullopt;
    if (!number) fail(value, "expected a number that a double can hold");
    field.value = *number;
}

void RecordReader::read(const Json& value, double& field) const {
    if (value.kind != Json::Kind::string)
        read(value, AsNumber{field});
    else if (value.text == "nan")
        field = std::numeric_limits<double>::quiet_NaN();
    else if (value.text == "inf" || value.text == "-inf")
        field = *parse_decimal(value.text);
    else
        fail(value, "expected a number, \"inf\", \"-inf\" or \"nan\"");
}

void RecordReader::read(const Json& value, AsHex field) const {
    field.value = json_string(source_, value) == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                                       : json_real(source_, value);
}

void RecordReader::read(const Json& value, AsHexRows field) const {
    for (const Json& row : json_array(source_, value)) {
        field.value.emplace_back();
        for (const Json& cell : json_array(source_, row))
            read(cell, AsHex{field.value.back().emplace_back()});
    }
}

void RecordReader::read(const Json& value, AsId field) const {
    field.value = json_string(source_, value);
    const bool hexadecimal = field.value.find_first_not_of("0123456789abcdef") == field.value.npos;
    if (!hexadecimal || field.value.size() < 6 || field.value.size() > 64)
        fail(value, "expected an id: 6 to 64 hexadecimal digits");
}

void RecordReader::read(const Json& value, OrNull field) const {
    field.value = value.kind == Json::Kind::null ? "" : json_string(source_, value);
}

void RecordReader::read(const Json& value, Case& field) const {
    const std::string& line = json_string(source_, value);
    try {
        field = parse_case(line);
    } catch (const BadInput& error) {
        fail(value, error.what());
    }
}

std::size_t RecordReader::place_of(const Json& value,
                                   const std::vector<std::string_view>& words) const {
    const auto place =
        std::find(words.begin(), words.end(), json_string(source_, value)) - words.begin();
    if (place == static_cast<std::ptrdiff_t>(words.size()))
        source_.fail(value, printable(value.text) + " is not known",
                     "one of " + joined(words, ", "));
    return static_cast<std::size_t>(place);
}

}  // namespace attest::ci
