#include "ci/escape.hpp"

#include "ci/screen.hpp"

namespace attest::ci {

namespace {

bool is_alphanumeric(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string percent(char c) {
    constexpr const char* digits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    return {'%', digits[byte >> 4], digits[byte & 15]};
}

// Each character of `these` as %XX.
std::string encoded(std::string_view text, std::string_view these) {
    std::string out;
    for (const char c : text) out += these.find(c) == these.npos ? std::string(1, c) : percent(c);
    return out;
}

}  // namespace

std::string xml_escaped(std::string_view text, std::size_t most) {
    std::string out;
    for (const char c : clean(text, most)) switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&#39;";
                break;
            default:
                out += c;
        }
    return out;
}

std::string markdown_escaped(std::string_view text) {
    std::string out;
    for (const char c : clean(text)) {
        if (std::string_view("|`*_[]<>\\#&~").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

std::string annotation_escaped(std::string_view text) {
    return encoded(text, "%\r\n");
}

std::string annotation_property(std::string_view text) {
    return encoded(text, "%\r\n:,");
}

std::string uri_of(std::string_view path) {
    std::string out = path.starts_with("/") ? "file://" : "";
    if (path.starts_with("./")) path.remove_prefix(2);
    for (const char c : path)
        out += is_alphanumeric(c) || std::string_view("-._~/").find(c) != std::string_view::npos
                   ? std::string(1, c)
                   : percent(c);
    return out;
}

std::string shell_word(std::string_view text) {
    bool plain = !text.empty();
    for (const char c : text)
        plain = plain && (is_alphanumeric(c) ||
                          std::string_view("_-./:=@%+,").find(c) != std::string_view::npos);
    if (plain) return std::string(text);
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
    return out + "'";
}

}  // namespace attest::ci
