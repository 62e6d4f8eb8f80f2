#pragma once
// A screen of text: lines that are never wider than the screen, but for commands to copy, painted
// in the sixteen named colours or not, in Unicode or in ASCII. Text from outside (kernel names,
// reasons, paths) goes through clean() before it is shown.

#include <string>
#include <string_view>
#include <vector>

namespace attest::ci {

struct ScreenStyle {
    int width = 80;       ///< columns; 80 is the least
    bool colour = false;  ///< ANSI escapes
    bool unicode = false;
    bool wide() const noexcept { return width >= 110; }
};

/// The style of a stream: its terminal's width, NO_COLOR, TERM and the locale; `colour_when` is
/// auto, always or never.
ScreenStyle style_of(int file_descriptor, const std::string& colour_when, bool ascii);

/// Control characters become '?', invalid UTF-8 too, and what is past so many characters is cut.
std::string clean(std::string_view text, std::size_t most = 300);

/// Columns a text takes: code points, escapes apart.
int columns_of(std::string_view text);

/// Lines of at most `width` columns, broken at spaces, or inside a word that is longer.
std::vector<std::string> wrap(std::string_view text, int width);

class Screen {
public:
    explicit Screen(ScreenStyle style) : style_(style) {}
    const ScreenStyle& style() const noexcept { return style_; }

    std::string bold(std::string_view text) const { return paint("1", text); }
    std::string bad(std::string_view text) const { return paint("1;31", text); }
    std::string warn(std::string_view text) const { return paint("33", text); }
    std::string dim(std::string_view text) const { return paint("2", text); }
    std::string command(std::string_view text) const { return paint("36", text); }
    std::string symbol(std::string_view unicode, std::string_view ascii) const;
    std::string mark(std::string_view verdict) const;  ///< one column: ● ✕ ◐ ○ ·

    std::string pad(std::string_view text, int width) const;       ///< left-aligned
    std::string pad_left(std::string_view text, int width) const;  ///< right-aligned
    std::string cut(std::string_view text, int width) const;       ///< with "..." where too long
    std::string bar(double fraction, int width) const;

    /// One line; what does not fit goes on further lines, indented by `hanging`.
    void line(std::string_view text = {}, int hanging = 8);
    /// "  key             value", the value wrapped into its own column.
    void fact(std::string_view key, std::string_view value, int key_width = 16);
    /// A command behind its key, in one line however wide, so that it can be copied.
    void to_copy(std::string_view key, std::string_view command, int key_width = 16);

    const std::string& text() const noexcept { return text_; }

private:
    std::string paint(std::string_view code, std::string_view text) const;
    ScreenStyle style_;
    std::string text_;
};

}  // namespace attest::ci
