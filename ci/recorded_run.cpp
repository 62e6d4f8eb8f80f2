#include "ci/recorded_run.hpp"

#include <filesystem>

#include "ci/record.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

namespace fs = std::filesystem;

}  // namespace

std::string without_slashes(std::string path) {
    while (path.size() > 1 && path.ends_with("/")) path.pop_back();
    return path;
}

RunReport read_run(const std::string& result, std::string& directory) {
    const bool folder = fs::is_directory(result);
    const std::string path = folder ? without_slashes(result) + "/result.jsonl" : result;
    if (!fs::exists(path))
        throw BadInput(path + ": no such file",
                       {"a folder that attest check wrote, such as attest-out"});
    directory = folder ? without_slashes(result) : fs::path(path).parent_path().string();
    if (directory.empty()) directory = ".";
    RunReport report = read_records(path);
    report.sort();
    if (report.end) {  // what its line leaves out follows from the laws
        RunVerdict& verdict = report.end->verdict;
        const RunVerdict again = verdict_of(report, report.end->interrupted);
        verdict.reason = again.reason;
        verdict.cut = again.cut;
        verdict.discarded = again.discarded;
        return report;
    }
    RunEnd& end = report.end.emplace();  // it was cut: what it found so far
    end.interrupted = true;
    end.verdict = verdict_of(report, true);
    for (const search::LawReport& law : report.laws) end.seconds += law.seconds;
    return report;
}

}  // namespace attest::ci
