#pragma once
// A piece of an HTML page. It is made of literals, which are copied, and of values, which are
// escaped: a std::string that is not wrapped as Text does not compile, so nothing that a kernel
// says can become markup.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attest::ci {

/// A literal of our source.
struct Literal {
    std::string_view text;
    consteval Literal(const char* literal) : text(literal) {}
};

/// Text for a person, escaped; what is beyond `most` characters is cut.
struct Text {
    std::string_view text;
    std::size_t most = 300;
};

/// A coordinate of a drawing, with at most one decimal.
struct At {
    double value;
};

class Html {
public:
    Html& operator<<(Literal literal) {
        text_ += literal.text;
        return *this;
    }
    Html& operator<<(const Text& text);
    Html& operator<<(At coordinate);
    Html& operator<<(std::int64_t number);
    Html& operator<<(const Html& piece) {
        text_ += piece.text_;
        return *this;
    }
    bool empty() const noexcept { return text_.empty(); }
    const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
};

/// "16 791 525", with spaces that do not break.
Html count_of(std::int64_t count);

/// The mark of a verdict, a shape of its own; a screen reader hears the word.
Html mark_of(std::string_view verdict);

/// A line to copy into a shell.
Html command_of(std::string_view line);

/// A drawing of this size; `says` states what is to be seen in it.
Html drawing(double width, double height, const Html& inside, std::string_view says);

/// A label in a drawing; `anchor` is start, middle or end.
Html label(double x, double y, std::string_view text, Literal anchor = "start");

/// A picture of one pixel a digit, as a data URI: 0 is transparent, 1 to 6 pale to dark.
Html pixels(const std::vector<std::string>& rows, std::string_view says);

/// The whole page: style and script inside, and a policy that forbids every load.
std::string whole_page(std::string_view title, const Html& head, const Html& body);

}  // namespace attest::ci
