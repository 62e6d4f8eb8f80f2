#include "ci/ci_files.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "ci/ci_formats.hpp"
#include "ci/page.hpp"
#include "reference/problem/digest.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/file.hpp"

namespace attest::ci {

namespace {

namespace fs = std::filesystem;

// GitHub drops a summary above 1 MiB whole.
constexpr std::size_t summary_max = 900 * 1024;

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

bool on_github() {
    return variable("GITHUB_ACTIONS") == "true";
}

void prepare(const char* option, const std::string& path) {
    if (path.empty()) return;
    const fs::path folder = fs::path(path).parent_path();
    std::error_code error;
    if (!folder.empty() && !fs::is_directory(folder, error))
        throw BadInput(std::string(option) + " " + path + ": no folder " + folder.string(),
                       {"mkdir -p " + folder.string()});
    if (fs::is_directory(path, error))
        throw BadInput(std::string(option) + " " + path + ": is a folder", {"name a file in it"});
    // What is written takes the place of what is there.
    const fs::file_status there = fs::symlink_status(path, error);
    if (fs::exists(there) && !fs::is_regular_file(there))
        throw BadInput(std::string(option) + " " + path + ": is no plain file",
                       {"name a file elsewhere"});
    if (!std::ofstream(path))
        throw BadInput(std::string(option) + " " + path + ": cannot be written",
                       {"name a file elsewhere"});
    fs::remove(path, error);
}

/// Whole lines, up to so many bytes; what is left out is told.
std::string whole_lines(const std::string& text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) return text;
    const std::string last = "\n… and more, see the records\n";
    const std::size_t room = bytes_max - std::min(bytes_max, last.size());
    const std::size_t end = room == 0 ? text.npos : text.rfind('\n', room - 1);
    return end == text.npos ? "" : text.substr(0, end + 1) + last;
}

void append(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary | std::ios::app);
    file << text;
    if (!file.flush()) throw InternalError(path + ": cannot be written");
}

}  // namespace

void prepare_ci_files(const ReportFiles& files) {
    prepare("--junit", files.junit);
    prepare("--sarif", files.sarif);
    prepare("--code-quality", files.code_quality);
    prepare("--summary", files.summary);
}

void write_ci_files(const RunReport& report, const ReportFiles& files, const std::string& directory,
                    const std::string& page, const std::string& summary, const GateReport* gate) {
    const auto summary_of = [&](std::size_t bytes_max) {
        return summary.empty() ? draw_summary(report, directory, bytes_max)
                               : whole_lines(summary, bytes_max);
    };
    if (!files.junit.empty())
        write_file_atomically(files.junit, draw_junit(report, directory, gate));
    if (!files.sarif.empty())
        write_file_atomically(files.sarif, draw_sarif(report, directory, gate));
    if (!files.code_quality.empty())
        write_file_atomically(files.code_quality, draw_code_quality(report, directory, gate));
    if (!files.summary.empty()) write_file_atomically(files.summary, summary_of(summary_max));
    if (files.page) write_file_atomically(page, draw_page(report, directory));
    // Other steps may have written there too, so this one is not ours to replace.
    const std::string shared = variable("GITHUB_STEP_SUMMARY");
    if (!on_github() || shared.empty()) return;
    std::error_code error;
    const std::size_t there = fs::exists(shared, error) ? fs::file_size(shared, error) : 0;
    if (there < summary_max) append(shared, summary_of(summary_max - there) + "\n");
}

std::string printed(const RunReport& report, const std::string& screen,
                    const std::string& directory, const GateReport* gate) {
    if (!on_github()) return screen;
    // GitHub obeys commands wherever a line begins with one. A kernel's own words are on the
    // screen: while it is printed nothing is obeyed but a word that no kernel can know.
    std::random_device device;
    const std::string word = sha256_hex(std::to_string(device()) + std::to_string(device()));
    return "::stop-commands::" + word + "\n" + screen + "::" + word + "::\n" +
           draw_annotations(report, directory, gate);
}

}  // namespace attest::ci
