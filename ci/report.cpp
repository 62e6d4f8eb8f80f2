// `attest report`: the page and the CI files of runs that were recorded.

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "ci/ci_files.hpp"
#include "ci/commands.hpp"
#include "ci/page.hpp"
#include "ci/recorded_run.hpp"
#include "ci/screen.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/file.hpp"

namespace attest::ci {

namespace {

namespace fs = std::filesystem;

/// What is recorded besides runs.
struct OtherRecords {
    std::string file, noun;
    std::string (*page)(const std::string& path);
};
const OtherRecords other_records[] = {
    {"audit.jsonl", "an audit",
     [](const std::string& p) { return draw_audit_page(read_audit(p)); }},
    {"bench.jsonl", "a bench", [](const std::string& p) { return draw_bench_page(read_bench(p)); }},
};

/// The file of such records, or the one that a folder holds; null: it is a run.
const OtherRecords* other_named(const std::string& result, std::string& path) {
    path = result;
    for (const OtherRecords& other : other_records)
        if (fs::path(result).filename() == other.file) return &other;
    if (fs::exists(without_slashes(result) + "/result.jsonl")) return nullptr;
    for (const OtherRecords& other : other_records)
        if (path = without_slashes(result) + "/" + other.file; fs::exists(path)) return &other;
    return nullptr;
}

/// Where the page of a result in `directory` goes; no two are the same.
std::string page_of(const CommandOptions& options, const std::string& directory,
                    std::vector<std::string>& pages) {
    std::string page = directory + "/report.html";
    if (!options.out.empty()) {
        make_out_folder(options.out);
        const std::string stem = fs::path(directory).filename().string();
        page = options.out + "/" + (options.arguments.size() > 1 ? stem : "report") + ".html";
    }
    if (std::ranges::find(pages, page) != pages.end())
        throw BadInput(page + ": two of the results would be this page",
                       {"name folders that end differently"});
    pages.push_back(page);
    return page;
}

}  // namespace

int report_command(const CommandOptions& options) {
    if (options.arguments.empty())
        throw BadInput("report: no result named", {"attest report attest-out"});
    const ReportFiles& named = options.files;
    const bool files = !(named.junit + named.sarif + named.code_quality + named.summary).empty();
    if (files && options.arguments.size() > 1)
        throw BadInput("report: a file for CI is of one run, and " +
                           std::to_string(options.arguments.size()) + " are named",
                       {"once for each: attest report attest-out --junit junit.xml"});
    prepare_ci_files(named);
    std::vector<std::string> pages;
    for (const std::string& result : options.arguments) {
        std::string directory, page, path;
        if (const OtherRecords* other = other_named(result, path)) {
            if (files)
                throw BadInput("report: " + other->noun + " has a page, and no file for CI",
                               {"attest report " + path});
            directory = fs::path(path).parent_path().string();
            page = page_of(options, directory.empty() ? "." : directory, pages);
            write_file_atomically(page, other->page(path));
        } else {
            const RunReport report = read_run(result, directory);
            page = page_of(options, directory, pages);
            ReportFiles wanted = named;
            wanted.page = true;
            write_ci_files(report, wanted, directory, page);
        }
        Screen screen(style_of(STDOUT_FILENO, "auto", false));
        screen.line("page: " + clean(page));
        write_out(screen.text());
    }
    return exit_holds;
}

}  // namespace attest::ci
