#pragma once
// JSON that remembers where everything stood, so that a mistake in a file is told with its line and
// column. nlohmann's parser reads it, the tree is ours for the places. RFC 8259, no extensions; a
// duplicate key, bytes after the value and nesting beyond 32 are errors. Numbers keep their text:
// who reads them decides what they may be.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

struct JsonMember;

struct Json {
    enum class Kind : std::uint8_t { null, boolean, number, string, array, object };
    Kind kind = Kind::null;
    bool boolean = false;
    std::string text;  ///< a string decoded, a number as written
    std::vector<Json> items;
    std::vector<JsonMember> members;  ///< in the order of the text
    std::size_t begin = 0, end = 0;   ///< bytes of the source
    const Json* find(std::string_view key) const noexcept;
};

struct JsonMember {
    std::string key;
    std::size_t begin = 0, end = 0;  ///< of the key, quotes included
    Json value;
};

/// A text and the name errors call it by.
struct JsonSource {
    std::string_view text;
    std::string_view name;

    /// Throws BadInput "NAME:LINE:COLUMN: WHAT" with the line, the caret under [begin, end), the
    /// remedy.
    [[noreturn]] void fail(std::size_t begin, std::size_t end, const std::string& what,
                           const std::string& remedy) const;
    [[noreturn]] void fail(const Json& at, const std::string& what,
                           const std::string& remedy) const;
};

Json parse_json(const JsonSource& source);

/// What a file's fields may be; each fails at the place of the value.
bool json_boolean(const JsonSource& source, const Json& value);
std::int64_t json_integer(const JsonSource& source, const Json& value);
const std::string& json_string(const JsonSource& source, const Json& value);
const std::vector<Json>& json_array(const JsonSource& source, const Json& value);
std::uint64_t json_u64(const JsonSource& source, const Json& value);  ///< a decimal string
double json_real(const JsonSource& source, const Json& value);        ///< a hex-float string
const Json& json_member(const JsonSource& source, const Json& object,
                        std::string_view key);  ///< fails where it is not there
/// Fails unless the value is an object with keys among `known`.
void json_keys(const JsonSource& source, const Json& value,
               std::span<const std::string_view> known);
inline void json_keys(const JsonSource& source, const Json& value,
                      std::initializer_list<std::string_view> known) {
    json_keys(source, value, std::span(known.begin(), known.size()));
}

}  // namespace attest
