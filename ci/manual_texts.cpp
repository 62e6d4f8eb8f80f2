#include "ci/manual_texts.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "ci/embedded.hpp"

namespace attest::ci {

namespace {

std::string in_small_letters(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

/// A folder's README speaks for the folder, another file for itself.
std::string subject_of(const EmbeddedFile& file) {
    const std::filesystem::path path(file.path);
    return in_small_letters(path.stem() == "README" ? path.parent_path().filename() : path.stem());
}

/// How many # a line begins with that is a heading; 0: it is none.
std::size_t level_of(const std::string& line) {
    const std::size_t marks = std::min(line.find_first_not_of('#'), line.size());
    return marks < line.size() && line[marks] == ' ' ? marks : 0;
}

bool has_word(const std::string& heading, const std::string& word) {
    std::istringstream words(in_small_letters(heading));
    for (std::string each; words >> each;)
        if (each == word) return true;
    return false;
}

/// From the first heading with that word to the next that is not below it.
std::string section_of(std::string_view text, const std::string& word) {
    std::istringstream lines{std::string(text)};
    std::string section;
    std::size_t of = 0;
    for (std::string line; std::getline(lines, line);) {
        const std::size_t level = level_of(line);
        if (of > 0 && level > 0 && level <= of) break;
        if (of == 0 && level > 0 && has_word(line, word)) of = level;
        if (of > 0) section += line + "\n";
    }
    return section;
}

}  // namespace

std::vector<std::string> manual_subjects() {
    std::vector<std::string> subjects;
    for (const EmbeddedFile& file : embedded_manuals()) subjects.push_back(subject_of(file));
    return subjects;
}

std::optional<std::string> manual_text(const std::string& subject) {
    const auto named = std::ranges::find(embedded_manuals(), subject, subject_of);
    if (named != embedded_manuals().end()) return std::string(named->text);
    for (const EmbeddedFile& file : embedded_manuals()) {
        std::string section = section_of(file.text, in_small_letters(subject));
        if (!section.empty()) return section;
    }
    return std::nullopt;
}

}  // namespace attest::ci
