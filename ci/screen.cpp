#include "ci/screen.hpp"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <cstdlib>

namespace attest::ci {

namespace {

constexpr int width_min = 80, width_max = 200;

bool continues(char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Length of the escape sequence ESC [ ... m at a place; 0 if there is none.
std::size_t escape_length(std::string_view text, std::size_t at) {
    if (text[at] != '\x1b') return 0;
    const std::size_t end = text.find('m', at);
    return end == std::string_view::npos ? 0 : end - at + 1;
}

// Bytes of the valid UTF-8 character at a place; 0 if it is none: not in its shortest form, a
// surrogate, or beyond the last one.
std::size_t character_length(std::string_view text, std::size_t at) {
    const unsigned char lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = lead < 0x80                             ? 1
                               : (lead & 0xE0) == 0xC0 && lead >= 0xC2 ? 2
                               : (lead & 0xF0) == 0xE0                 ? 3
                               : (lead & 0xF8) == 0xF0 && lead <= 0xF4 ? 4
                                                                       : 0;
    if (length == 0 || at + length > text.size()) return 0;
    for (std::size_t n = 1; n < length; ++n)
        if (!continues(text[at + n])) return 0;
    const unsigned char second = length > 1 ? static_cast<unsigned char>(text[at + 1]) : 0;
    const bool wrong = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) ||
                       (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90);
    return wrong ? 0 : length;
}

// Never passed on: C0, DEL and C1, which some terminals obey as escapes; what turns the direction
// of the text around it; and the two codes that XML does not know.
bool is_control(std::string_view character) {
    if (character.size() == 1)
        return character[0] == 0x7F || static_cast<unsigned char>(character[0]) < 0x20;
    if (character.size() == 2) return character >= "\xC2\x80" && character < "\xC2\xA0";
    return character.size() == 3 &&
           ((character >= "\u202A" && character <= "\u202E") ||
            (character >= "\u2066" && character <= "\u2069") || character >= "\xEF\xBF\xBE");
}

// What our own texts hold beyond ASCII, and how it is written without.
std::string folded(std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 24> table{{
        {"≠", "!="},    {"≤", "<="}, {"≥", ">="},  {"−", "-"}, {"·", "."},  {"→", "->"},
        {"…", "..."},   {"’", "'"},  {"–", "-"},   {"σ", "s"}, {"τ", "t"},  {"Σ", "sum"},
        {"√", "sqrt"},  {"⟨", "<"},  {"⟩", ">"},   {"∘", "o"}, {"ᵀ", "^T"}, {"δ", "delta"},
        {"α", "alpha"}, {"±", "+-"}, {"∞", "inf"}, {"×", "x"}, {"é", "e"},  {"ü", "ue"},
    }};
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        if (static_cast<unsigned char>(text[at]) < 0x80) {
            out += text[at++];
            continue;
        }
        const std::size_t length = std::max<std::size_t>(1, character_length(text, at));
        const std::string_view one = text.substr(at, length);
        const auto known = std::find_if(table.begin(), table.end(),
                                        [&](const auto& entry) { return entry.first == one; });
        out += known == table.end() ? "?" : known->second;
        at += length;
    }
    return out;
}

}  // namespace

ScreenStyle style_of(int file_descriptor, const std::string& colour_when, bool ascii) {
    ScreenStyle style;
    const bool terminal = isatty(file_descriptor) != 0;
    winsize size{};
    if (terminal && ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        style.width = size.ws_col;
    else if (const char* columns = std::getenv("COLUMNS"))
        style.width = std::atoi(columns);
    style.width = std::clamp(style.width, width_min, width_max);
    const char* no_colour = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    style.colour = colour_when == "always" ||
                   (colour_when == "auto" && terminal && (!no_colour || *no_colour == '\0') &&
                    !(term && std::string_view(term) == "dumb"));
    std::setlocale(LC_CTYPE, "");
    style.unicode = !ascii && std::string_view(nl_langinfo(CODESET)) == "UTF-8";
    std::setlocale(LC_CTYPE, "C");
    return style;
}

std::string clean(std::string_view text, std::size_t most) {
    std::string out;
    std::size_t count = 0;
    for (std::size_t at = 0; at < text.size(); ++count) {
        if (count == most) return out + "...";
        const std::size_t length = character_length(text, at);
        if (length == 0 || is_control(text.substr(at, length)))
            out += '?';
        else
            out += text.substr(at, length);
        at += std::max<std::size_t>(1, length);
    }
    return out;
}

int columns_of(std::string_view text) {
    int columns = 0;
    for (std::size_t at = 0; at < text.size();) {
        if (const std::size_t escape = escape_length(text, at)) {
            at += escape;
            continue;
        }
        if (!continues(text[at])) ++columns;
        ++at;
    }
    return columns;
}

std::vector<std::string> wrap(std::string_view text, int width) {
    std::vector<std::string> lines;
    std::string current;
    int used = 0;
    std::size_t break_at = std::string::npos;  // a space in `current` to break at
    for (std::size_t at = 0; at < text.size();) {
        std::size_t length = escape_length(text, at);
        const bool escape = length != 0;
        if (!escape) length = std::max<std::size_t>(1, character_length(text, at));
        if (!escape && used == width) {
            if (text[at] == ' ') {
                while (at < text.size() && text[at] == ' ') ++at;
                lines.push_back(std::move(current));
                current.clear();
            } else if (break_at != std::string::npos) {
                std::string rest = current.substr(break_at + 1);
                current.resize(break_at);
                lines.push_back(std::move(current));
                current = std::move(rest);
            } else {
                lines.push_back(std::move(current));
                current.clear();
            }
            used = columns_of(current);
            break_at = std::string::npos;
            continue;
        }
        if (!escape && text[at] == ' ' && used > 0) break_at = current.size();
        current += text.substr(at, length);
        if (!escape) ++used;
        at += length;
    }
    lines.push_back(std::move(current));
    for (std::string& one : lines)
        while (!one.empty() && one.back() == ' ') one.pop_back();
    return lines;
}

std::string Screen::paint(std::string_view code, std::string_view text) const {
    if (!style_.colour || text.empty()) return std::string(text);
    return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string Screen::symbol(std::string_view unicode, std::string_view ascii) const {
    return std::string(style_.unicode ? unicode : ascii);
}

std::string Screen::mark(std::string_view verdict) const {
    if (verdict == "holds") return dim(symbol("●", "."));
    if (verdict == "violated") return bad(symbol("✕", "X"));
    if (verdict == "doubted") return warn(symbol("◇", "!"));
    if (verdict == "inconclusive") return warn(symbol("◐", "?"));
    if (verdict == "not_run") return dim(symbol("○", "o"));
    return dim(symbol("·", "-"));
}

std::string Screen::pad(std::string_view text, int width) const {
    return std::string(text) +
           std::string(static_cast<std::size_t>(std::max(0, width - columns_of(text))), ' ');
}

std::string Screen::pad_left(std::string_view text, int width) const {
    return std::string(static_cast<std::size_t>(std::max(0, width - columns_of(text))), ' ') +
           std::string(text);
}

std::string Screen::cut(std::string_view text, int width) const {
    const std::string shown = style_.unicode ? std::string(text) : folded(text);
    if (columns_of(shown) <= width) return shown;
    const std::string dots = symbol("…", "...");
    const int room = width - columns_of(dots);
    if (room <= 0) return dots.substr(0, static_cast<std::size_t>(std::max(0, width)));
    std::string out;
    bool coloured = false;
    for (std::size_t at = 0; at < shown.size() && columns_of(out) < room;) {
        const std::size_t escape = escape_length(shown, at);
        coloured = coloured || escape > 0;
        const std::size_t length =
            std::max<std::size_t>(1, escape > 0 ? escape : character_length(shown, at));
        out += shown.substr(at, length);
        at += length;
    }
    return out + (coloured ? "\x1b[0m" : "") + dots;
}

std::string Screen::bar(double fraction, int width) const {
    const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width);
    std::string on, off;
    for (int n = 0; n < full; ++n) on += symbol("━", "#");
    for (int n = full; n < width; ++n) off += symbol("─", ".");
    return on + dim(off);
}

void Screen::line(std::string_view text, int hanging) {
    const std::string shown = style_.unicode ? std::string(text) : folded(text);
    std::string indent;
    int room = style_.width;
    std::string rest = shown;
    do {
        const std::vector<std::string> lines = wrap(rest, room);
        text_ += indent + lines.front() + "\n";
        rest.clear();
        for (std::size_t n = 1; n < lines.size(); ++n) rest += (n > 1 ? " " : "") + lines[n];
        indent.assign(static_cast<std::size_t>(hanging), ' ');
        room = style_.width - hanging;
    } while (!rest.empty());
}

void Screen::to_copy(std::string_view key, std::string_view command, int key_width) {
    text_ += "  " + pad(dim(key), key_width) + this->command(command) + "\n";
}

void Screen::fact(std::string_view key, std::string_view value, int key_width) {
    const std::string shown = style_.unicode ? std::string(value) : folded(value);
    bool first = true;
    for (const std::string& part : wrap(shown, style_.width - key_width - 2)) {
        text_ += "  " + pad(first ? dim(key) : "", key_width) + part + "\n";
        first = false;
    }
}

}  // namespace attest::ci
