#include "reference/problem/json.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "reference/problem/text.hpp"

namespace attest {
namespace {

constexpr std::size_t depth_max = 32;

/// A text's characters, counted as the library takes them.
struct Counted {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    const char* at;
    std::size_t* taken;

    reference operator*() const { return *at; }
    Counted& operator++() {
        ++at, ++*taken;
        return *this;
    }
    Counted operator++(int) {
        const Counted before = *this;
        ++*this;
        return before;
    }
    bool operator==(const Counted& other) const { return at == other.at; }
};

/// nlohmann's parser calls this at each token, before it takes the next one; the tree is made here,
/// with the places.
class Builder {
public:
    using Library = nlohmann::json;

    explicit Builder(const JsonSource& source) : source_(source) {}

    Json document() {
        const std::string_view text = source_.text;
        // The library skips a byte order mark and ends at a zero.
        const std::size_t zero = text.find('\0');
        if (text.starts_with("\xef\xbb\xbf")) source_.fail(0, 1, not_json, "no byte order mark");
        if (zero != text.npos) source_.fail(zero, zero + 1, not_json, "no zero byte");
        Library::sax_parse(Counted{text.data(), &taken_},
                           Counted{text.data() + text.size(), nullptr}, this);
        return std::move(root_);
    }

    bool null() {
        scalar(Json::Kind::null);
        return true;
    }
    bool boolean(bool value) {
        scalar(Json::Kind::boolean).boolean = value;
        return true;
    }
    bool number_integer(std::int64_t) { return number(); }
    bool number_unsigned(std::uint64_t) { return number(); }
    bool number_float(double, const std::string&) { return number(); }
    bool string(std::string& value) {
        scalar(Json::Kind::string).text = std::move(value);
        return true;
    }
    bool binary(Library::binary_t&) { return false; }  // no JSON text has one
    bool start_object(std::size_t) { return open(Json::Kind::object); }
    bool start_array(std::size_t) { return open(Json::Kind::array); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }

    bool key(std::string& text) {
        const std::size_t begin = token_begin();
        done_ = taken_;
        if (!open_.back().keys.insert(text).second)
            source_.fail(begin, done_, printable(text) + " is here a second time",
                         "keep one of them");
        open_.back().value->members.push_back({std::move(text), begin, done_, {}});
        return true;
    }

    bool parse_error(std::size_t position, const std::string&, const Library::exception& error) {
        // "[...] parse error at line 1, column 2: syntax error while ... - REASON; last read:
        // '...'"
        std::string_view told = error.what();
        if (const auto dash = told.find(" - "); dash != told.npos)
            told = told.substr(dash + 3);
        told = told.substr(0, told.find("; last read"));
        const std::size_t at = std::max<std::size_t>(position, 1) - 1;
        source_.fail(at, at + 1, std::string(not_json) + ": " + printable(told, 120),
                     "JSON as RFC 8259 has it, without comments or trailing commas");
    }

private:
    static constexpr const char* not_json = "this is not JSON";

    struct Open {
        Json* value;
        std::set<std::string> keys = {};
    };

    /// Between two tokens lie blanks and separators alone.
    std::size_t token_begin() const {
        return std::min(source_.text.find_first_not_of(" \t\r\n,:", done_), source_.text.size());
    }
    /// Where the value that begins now goes. What is open stays where it is: a container grows only
    /// while its last element is closed.
    Json& place() {
        if (open_.empty()) return root_;
        Json& parent = *open_.back().value;
        if (parent.kind == Json::Kind::object) return parent.members.back().value;
        return parent.items.emplace_back();
    }
    Json& scalar(Json::Kind kind) {
        Json& value = place();
        value.kind = kind;
        value.begin = token_begin();
        value.end = done_ = taken_;
        return value;
    }
    bool number() {
        Json& value = scalar(Json::Kind::number);
        // The parser sees that a number ends by the character behind it.
        const std::size_t end = source_.text.find_first_not_of("+-.0123456789eE", value.begin);
        value.end = done_ = std::min(end, source_.text.size());
        value.text = source_.text.substr(value.begin, value.end - value.begin);
        return true;
    }
    bool open(Json::Kind kind) {
        Json& value = scalar(kind);
        if (open_.size() >= depth_max)
            source_.fail(value.begin, value.end, "nested too deep",
                         "at most " + std::to_string(depth_max) + " levels");
        open_.push_back({&value});
        return true;
    }
    bool close() {
        open_.back().value->end = done_ = taken_;
        open_.pop_back();
        return true;
    }

    const JsonSource& source_;
    std::size_t taken_ = 0;  ///< characters the parser has seen
    std::size_t done_ = 0;   ///< the end of the last token that was handed over
    std::vector<Open> open_;
    Json root_;
};

}  // namespace

const Json* Json::find(std::string_view key) const noexcept {
    for (const JsonMember& member : members)
        if (member.key == key) return &member.value;
    return nullptr;
}

Json parse_json(const JsonSource& source) {
    return Builder(source).document();
}

}  // namespace attest
