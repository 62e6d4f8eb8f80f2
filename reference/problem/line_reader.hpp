#pragma once
// The words of a line as they are consumed: numbers, lists and names read at their place, so that
// every mistake is told where it stands, once, with what would be right there.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/problem/text.hpp"

namespace attest {

class LineReader {
public:
    struct Token {
        std::size_t begin = 0, end = 0;
    };

    /// wanted: what the line should be, "problem" or "case".
    LineReader(std::string_view line, std::string wanted);

    [[noreturn]] void fail(const Token& at, const std::string& what,
                           const std::string& remedy) const;

    std::string_view text(const Token& token) const {
        return line_.substr(token.begin, token.end - token.begin);
    }
    Token whole_line() const { return {0, line_.size()}; }
    bool done() const { return next_ >= tokens_.size(); }
    std::size_t consumed_end() const { return tokens_[next_ - 1].end; }

    /// The next word; where there is none, the last one "lacks its value".
    Token take(const std::string& remedy);
    bool take_if(std::string_view word);

    std::int64_t whole();
    std::uint64_t seed();
    double real();
    std::vector<std::int64_t> wholes();  ///< separated by commas, without blanks

    std::int64_t whole_in(const Token& token, const std::string& remedy) const;
    double real_in(const Token& token) const;

    /// Calls each(Token) for every part of a comma-separated word, blanks around it left out.
    template <typename Each>
    void parts(const Token& token, Each each) const {
        for (std::size_t begin = token.begin;;) {
            const std::size_t comma = std::min(line_.find(',', begin), token.end);
            Token part{begin, comma};
            while (part.begin < part.end && line_[part.begin] == ' ') ++part.begin;
            while (part.end > part.begin && line_[part.end - 1] == ' ') --part.end;
            each(part);
            if (comma == token.end) return;
            begin = comma + 1;
        }
    }

    /// The enumerator whose name the word is.
    template <typename Enum>
    Enum one_of(const Token& token, std::span<const std::string_view> names) const {
        return static_cast<Enum>(index_of(token, names));
    }

private:
    std::size_t index_of(const Token& token, std::span<const std::string_view> names) const;

    std::string_view line_;
    std::string wanted_;
    std::vector<Token> tokens_;
    std::size_t next_ = 0;
};

}  // namespace attest
