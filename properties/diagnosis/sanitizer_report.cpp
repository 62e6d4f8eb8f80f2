#include "properties/diagnosis/sanitizer_report.hpp"

#include <algorithm>
#include <array>

#include "reference/problem/text.hpp"

namespace attest::diagnosis {

namespace {

constexpr std::string_view mark = "=========";
constexpr std::string_view detail_indent = "     ";

/// Where in the device's code: "flash(int)+0xd0 in flash.cuh:88", "flash(int)+0xd0", "0xd0"; of
/// releases before 2021 "0xd0 in flash.cuh:88:flash(int)".
struct CodeLocation {
    std::string kernel, source;  ///< source: file:line without folders
};

bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_hex(std::string_view text) {
    return text.starts_with("0x") && text.size() > 2 &&
           text.find_first_not_of("0123456789abcdef", 2) == std::string_view::npos;
}

std::string_view without_folders(std::string_view path) {
    return path.substr(path.find_last_of("/\\") + 1);
}

std::optional<CodeLocation> location_of(std::string_view text) {
    const std::size_t in = text.starts_with("0x") ? text.find(" in ") : text.rfind(" in ");
    std::string_view code = text.substr(0, in);
    if (in == std::string_view::npos && text.starts_with("0x"))
        code = text.substr(0, text.find(' '));
    std::string_view place = in == std::string_view::npos ? "" : text.substr(in + 4);
    place = place.substr(0, place.find(" ["));  // "[4 hazards]"
    CodeLocation found;
    if (!is_hex(code)) {
        const std::size_t offset = std::max(code.rfind("+0x") + 1, code.rfind(":0x") + 1);
        if (offset == 0 || !is_hex(code.substr(offset))) return std::nullopt;
        found.kernel = code.substr(0, offset - 1);
    }
    const std::string_view file = without_folders(place.substr(0, place.find(')')));
    const std::size_t colon = file.find(':');
    const std::string_view rest = colon == std::string_view::npos ? "" : file.substr(colon + 1);
    const std::string_view line = rest.substr(0, rest.find(':'));
    if (is_number(line)) {
        found.source = file.substr(0, colon + 1 + line.size());
        if (found.kernel.empty() && line.size() < rest.size())
            found.kernel = place.substr(place.find(rest) + line.size() + 1);
    } else if (found.kernel.empty()) {
        found.kernel = place;
    }
    return found;
}

/// "headline at LOCATION" in two: the words before, and the place.
struct Placed {
    std::string words;
    CodeLocation at;
};

std::optional<Placed> placed(std::string_view line) {
    // Threads and blocks come first: "threads starting at (0,0,0) ... at flash()+0x2b0 in ...".
    for (std::size_t at = line.rfind("at "); at != std::string_view::npos;
         at = at == 0 ? std::string_view::npos : line.rfind("at ", at - 1)) {
        if (at != 0 && line[at - 1] != ' ') continue;
        auto found = location_of(line.substr(at + 3));
        if (!found) continue;
        const bool says_nothing = found->source.empty() && found->kernel.empty();
        const std::size_t words = at == 0 ? 0 : says_nothing ? line.size() : at - 1;
        return Placed{std::string(line.substr(0, words)), std::move(*found)};
    }
    return std::nullopt;
}

std::string with_source(const std::string& words, const CodeLocation& at) {
    return at.source.empty() ? words : words + " at " + at.source;
}

/// How the program ended: what replays it says that better.
bool is_of_the_end(std::string_view headline) {
    return headline == "Error: process didn't terminate successfully" ||
           headline == "Target application returned an error";
}

/// N of "ERROR SUMMARY: N errors" and "RACECHECK SUMMARY: N hazards displayed (...)".
std::optional<std::int64_t> summary_of(std::string_view headline) {
    for (std::string_view start : {"ERROR SUMMARY: ", "RACECHECK SUMMARY: "}) {
        if (!headline.starts_with(start)) continue;
        const std::string_view number = headline.substr(start.size());
        return parse_integer<std::uint32_t>(number.substr(0, number.find(' ')));
    }
    return std::nullopt;
}

/// One headline with the lines indented below it.
struct ReportBlock {
    std::string_view headline;
    std::vector<std::string_view> details;
};

std::vector<ReportBlock> blocks_of(std::string_view output) {
    std::vector<ReportBlock> blocks;
    while (!output.empty()) {
        std::string_view line = output.substr(0, output.find('\n'));
        output.remove_prefix(std::min(line.size() + 1, output.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!line.starts_with(mark)) continue;  // of the program that is checked
        line.remove_prefix(mark.size());
        const std::size_t text = std::min(line.find_first_not_of(' '), line.size());
        if (text == line.size()) continue;
        const bool detail = line.starts_with(detail_indent) && !blocks.empty();
        if (detail)
            blocks.back().details.push_back(line.substr(text));
        else
            blocks.push_back({line.substr(text), {}});
    }
    return blocks;
}

std::optional<SanitizerFinding> finding_of(const ReportBlock& block) {
    std::string_view headline = block.headline;
    if (headline.starts_with("Error: ")) headline.remove_prefix(7);
    std::optional<Placed> first = placed(headline);
    std::string says = first ? with_source(first->words, first->at) : std::string(headline);
    for (std::string_view detail : block.details) {
        if (detail.find("backtrace") != std::string_view::npos) break;
        const std::optional<Placed> next = placed(detail);
        // "at ..." says where; "and Read access at ..." names the other side of a race.
        if (next && !first && next->words.empty()) {
            first = next;
            says = with_source(says, next->at);
        } else if (next && first && next->words.starts_with("and ") && !next->at.kernel.empty()) {
            says.append(1, ' ').append(with_source(next->words, next->at));
        }
    }
    if (!first) return std::nullopt;
    return SanitizerFinding{std::move(says), std::move(first->at.kernel)};
}

}  // namespace

SanitizerReport read_sanitizer_report(std::string_view output) {
    SanitizerReport report;
    for (const ReportBlock& block : blocks_of(output)) {
        const std::string_view headline = block.headline;
        if (headline == "COMPUTE-SANITIZER" || is_of_the_end(headline)) continue;
        if (const auto errors = summary_of(headline)) {
            report.errors = *errors;
        } else if (auto finding = finding_of(block)) {
            if (std::ranges::find(report.findings, *finding) == report.findings.end())
                report.findings.push_back(std::move(*finding));
        } else if (report.trouble.empty()) {
            report.trouble = headline.starts_with("Error: ") ? headline.substr(7) : headline;
        }
    }
    return report;
}

std::string_view name(SanitizerEntry::Verdict verdict) noexcept {
    constexpr std::array<std::string_view, 3> names = {"found", "clean", "not_run"};
    return names[static_cast<std::size_t>(verdict)];
}

}  // namespace attest::diagnosis
