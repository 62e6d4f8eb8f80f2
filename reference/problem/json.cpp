#include "reference/problem/json.hpp"

#include <algorithm>
#include <set>

#include "reference/problem/errors.hpp"
#include "reference/problem/text.hpp"

namespace attest {
namespace {

constexpr int depth_max = 32;

class Parser {
public:
    explicit Parser(const JsonSource& source) : source_(source), text_(source.text) {}

    Json document() {
        Json value = read_value(0);
        skip_blanks();
        if (at_ != text_.size()) fail("more text after the value", "end the file here");
        return value;
    }

private:
    [[noreturn]] void fail(const std::string& what, const std::string& remedy) const {
        source_.fail(at_, at_ + 1, what, remedy);
    }
    bool done() const { return at_ >= text_.size(); }
    char peek() const { return done() ? '\0' : text_[at_]; }
    void skip_blanks() {
        while (!done() && (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r'))
            ++at_;
    }
    bool take_if(char c) {
        skip_blanks();
        if (done() || peek() != c) return false;
        ++at_;
        return true;
    }
    void expect(char c) {
        if (take_if(c)) return;
        fail(done() ? "the text ends too early" : std::string("expected ") + c,
             std::string("write ") + c);
    }

    Json read_value(int depth) {
        skip_blanks();
        if (depth > depth_max) fail("nested too deep", "at most 32 levels");
        Json value;
        value.begin = at_;
        const char c = peek();
        if (done()) fail("the text ends too early", "a value is missing");
        if (c == '{')
            read_object(value, depth);
        else if (c == '[')
            read_array(value, depth);
        else if (c == '"')
            value.kind = Json::Kind::string, value.text = read_string();
        else if (c == '-' || (c >= '0' && c <= '9'))
            value.kind = Json::Kind::number, value.text = read_number();
        else
            read_word(value);
        value.end = at_;
        return value;
    }

    void read_word(Json& value) {
        const std::size_t stop = text_.find_first_not_of("abcdefghijklmnopqrstuvwxyz", at_);
        const std::string_view word = text_.substr(at_, std::min(stop, text_.size()) - at_);
        if (word == "true" || word == "false")
            value.kind = Json::Kind::boolean, value.boolean = word == "true";
        else if (word != "null")
            source_.fail(at_, at_ + std::max<std::size_t>(word.size(), 1), "this is no JSON value",
                         "true, false, null, a number, a string in double quotes, [...] or {...}");
        at_ += word.size();
    }

    std::size_t digits() {
        const std::size_t from = at_;
        while (peek() >= '0' && peek() <= '9') ++at_;
        return at_ - from;
    }
    std::string read_number() {
        const std::size_t from = at_;
        if (peek() == '-') ++at_;
        const bool leading_zero = peek() == '0';
        const std::size_t whole = digits();
        bool good = whole > 0 && !(leading_zero && whole > 1);
        if (peek() == '.') ++at_, good = digits() > 0 && good;
        if (peek() == 'e' || peek() == 'E') {
            ++at_;
            if (peek() == '+' || peek() == '-') ++at_;
            good = digits() > 0 && good;
        }
        if (!good) source_.fail(from, at_, "this is no JSON number", "such as 12");
        return std::string(text_.substr(from, at_ - from));
    }

    unsigned read_hex4() {
        unsigned code = 0;
        const std::string_view hex = text_.substr(std::min(at_, text_.size()), 4);
        const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
        if (error != std::errc{} || end != hex.data() + 4)
            fail("\\u needs four hexadecimal digits", "such as \\u0041");
        at_ += 4;
        return code;
    }
    void read_escape(std::string& out) {
        static constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
        const char c = peek();
        if (const std::size_t i = from.find(c); !done() && i != from.npos) {
            ++at_;
            out += to[i];
            return;
        }
        if (c != 'u') fail("no such escape", "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
        ++at_;
        unsigned code = read_hex4();
        const bool high = code >= 0xd800 && code < 0xdc00;
        if (high && text_.substr(at_, 2) == "\\u") {
            at_ += 2;
            const unsigned low = read_hex4();
            if (low < 0xdc00 || low > 0xdfff) fail("half a surrogate pair", "write the other half");
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        } else if (code >= 0xd800 && code <= 0xdfff) {
            fail("half a surrogate pair", "write the other half");
        }
        append_utf8(out, code);
    }
    static void append_utf8(std::string& out, unsigned code) {
        const auto tail = [&](int shift) {
            out += static_cast<char>(0x80 | ((code >> shift) & 0x3f));
        };
        if (code < 0x80) {
            out += static_cast<char>(code);
        } else if (code < 0x800) {
            out += static_cast<char>(0xc0 | (code >> 6));
            tail(0);
        } else if (code < 0x10000) {
            out += static_cast<char>(0xe0 | (code >> 12));
            tail(6), tail(0);
        } else {
            out += static_cast<char>(0xf0 | (code >> 18));
            tail(12), tail(6), tail(0);
        }
    }
    std::string read_string() {
        std::string out;
        for (++at_;;) {
            if (done()) fail("the string does not end", "close it with \"");
            const char c = text_[at_];
            if (static_cast<unsigned char>(c) < 0x20)
                fail("a control character in a string", "escape it, such as \\n");
            ++at_;
            if (c == '"') return out;
            if (c == '\\')
                read_escape(out);
            else
                out += c;
        }
    }

    void read_array(Json& value, int depth) {
        value.kind = Json::Kind::array;
        ++at_;
        if (take_if(']')) return;
        do value.items.push_back(read_value(depth + 1));
        while (take_if(','));
        expect(']');
    }
    void read_object(Json& value, int depth) {
        value.kind = Json::Kind::object;
        ++at_;
        if (take_if('}')) return;
        std::set<std::string> keys;
        do {
            skip_blanks();
            if (peek() != '"') fail("expected a key", "a key is a string in double quotes");
            JsonMember member;
            member.begin = at_;
            member.key = read_string();
            member.end = at_;
            if (!keys.insert(member.key).second)
                source_.fail(member.begin, member.end,
                             printable(member.key) + " is here a second time", "keep one of them");
            expect(':');
            member.value = read_value(depth + 1);
            value.members.push_back(std::move(member));
        } while (take_if(','));
        expect('}');
    }

    const JsonSource& source_;
    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

const Json* Json::find(std::string_view key) const noexcept {
    for (const JsonMember& member : members)
        if (member.key == key) return &member.value;
    return nullptr;
}

Json parse_json(const JsonSource& source) {
    return Parser(source).document();
}

}  // namespace attest
